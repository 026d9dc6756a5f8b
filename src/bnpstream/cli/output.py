"""Standard output: JSON for machines."""

import sys
from typing import Any

import orjson


def write_json(value: Any) -> None:
    """Write one JSON document to standard output."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
