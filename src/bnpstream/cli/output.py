"""Standard streams as they are found: JSON for machines, tables for people."""

import io
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import orjson
from rich.console import Console


def prepare_streams() -> None:
    """Make sure that there are standard streams, and that any text can be written to them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed; in this order they get their own numbers
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write_json(value: Any) -> None:
    """Write one JSON document to standard output."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


class Page(Console):
    """Standard output for people; a reader that has gone is no failure."""

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command."""
        raise BrokenPipeError
