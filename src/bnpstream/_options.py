"""Fields of records of settings, and what people are told of them.

A record of settings is a dataclass. It is the only place that knows the names, types, defaults and
explanations of its settings: the command line, files of settings and models are made from it.
"""

import dataclasses
from typing import Any, NamedTuple


class Told(NamedTuple):
    """What people are told of a setting."""

    help: str
    default: str | None
    """What its absence comes to, where None stands for that."""
    least: float | None
    flag: str | None
    """Of the command line, where that is not the name."""


def option(
    help: str,
    default: str | None = None,
    *,
    value: Any = None,
    least: float | None = None,
    flag: str | None = None,
) -> Any:
    """Return a field with a value that it has unless it is given, and with what `Told` says."""
    return dataclasses.field(default=value, metadata={"told": Told(help, default, least, flag)})
