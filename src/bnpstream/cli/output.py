"""Standard streams; JSON for machines, numbers for people."""

import io
import os
import re
import sys
from pathlib import Path
from typing import Any

from bnpstream._visible import visible

_RAW_CONTROL = re.compile(rb"\x7f|\xc2[\x80-\x9f]")
"""Control characters that JSON leaves as they are, in UTF-8; see `visible`."""


def prepare_streams() -> None:
    """Make sure that the standard streams exist and can take any text."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed; this order gives them their own numbers
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str = "", *, err: bool = False) -> None:
    """Print a line for people; with `err`, on standard error. Control characters are escaped."""
    print(visible(text), file=sys.stderr if err else sys.stdout, flush=err)


def print_json(value: Any) -> None:
    """Write one JSON document to standard output."""
    sys.stdout.buffer.write(json_bytes(value, indent=True) + b"\n")
    sys.stdout.buffer.flush()


def write_line(value: Any) -> None:
    """Write a line of JSON to standard output."""
    sys.stdout.buffer.write(json_bytes(value) + b"\n")


def json_bytes(value: Any, *, indent: bool = False) -> bytes:
    r"""Return JSON with all control characters escaped, even those that JSON allows.

    Examples
    --------
    >>> json_bytes("a\x1b\x9b")
    b'"a\\u001b\\u009b"'
    """
    import orjson  # here, as --help does not need it

    layout = orjson.OPT_INDENT_2 if indent else 0
    return escaped_controls(orjson.dumps(value, option=layout))


def escaped_controls(text: bytes) -> bytes:
    """Escape the control characters that JSON allows."""
    if b"\x7f" not in text and b"\xc2" not in text:  # many times as fast as the pattern
        return text
    return _RAW_CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def print_numbers(numbers: dict[str, Any]) -> None:
    """Print names and numbers, without unknown ones; words as they are."""
    shown = {
        name.replace("_", " "): _shown(value)
        for name, value in numbers.items()
        if value is not None
    }
    names, values = max(map(len, shown)), max(map(len, shown.values()))
    for name, value in shown.items():
        say(f"{name:{names}}  {value:>{values}}")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
