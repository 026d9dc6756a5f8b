"""The times of records: numbers of seconds, or ISO 8601."""

import math
from datetime import UTC, datetime
from typing import Any

from bnpstream.sources.records import UnusableError

__all__ = ["time_in_cell", "time_of"]


def time_of(value: Any, name: str) -> float:
    """Return the time that a field has, in seconds; UnusableError if it has none.

    A time without a zone is UTC.

    Examples
    --------
    >>> time_of(1.5, "at"), time_of("1970-01-02T00:00:00+01:00", "at")
    (1.5, 82800.0)
    """
    if type(value) is str:
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise _unusable(value, name) from None
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _unusable(value, name)
    return float(value)


def time_in_cell(cell: str, name: str) -> float:
    """Return the time in a cell of a CSV file: what can be a number is one."""
    try:
        number = float(cell)
    except ValueError:
        return time_of(cell, name)
    return time_of(number, name)


def _unusable(value: Any, name: str) -> UnusableError:
    if value is None or value == "":
        return UnusableError(f"has no time {name!r}")
    shown = str(value)[:40]
    return UnusableError(f"its time {name!r} is {shown!r}, neither seconds nor ISO 8601")
