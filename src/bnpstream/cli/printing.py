"""How results are printed: one JSON document, or names and numbers side by side."""

import sys
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table


def write_json(value: Any) -> None:
    """Write one JSON document to standard output."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def print_numbers(numbers: dict[str, Any]) -> None:
    """Print names and numbers, those that are not known left out; words as they are."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in numbers.items():
        if value is not None:
            table.add_row(name.replace("_", " "), _shown(value))
    Console().print(table)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
