"""Standard streams as they are found: JSON for machines, tables for people."""

import io
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import orjson
from rich.console import Console
from rich.table import Table


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


def print_numbers(numbers: dict[str, Any]) -> None:
    """Print names and numbers, those that are not known left out; words as they are."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in numbers.items():
        if value is not None:
            table.add_row(name.replace("_", " "), _shown(value))
    Page().print(table)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
