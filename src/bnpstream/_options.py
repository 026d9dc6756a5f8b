"""Options: fields of settings classes, with their help texts.

A settings class is a dataclass, and the only place that knows the names, types, defaults and help
texts of its settings; the command line, settings files and models are derived from it.
"""

import dataclasses
from typing import Any, NamedTuple


class Told(NamedTuple):
    """Help about a setting."""

    help: str
    default: str | None
    """The default in words, if the value is None by default."""
    least: float | None
    flag: str | None
    """Flag on the command line, if it differs from the name."""


def option(
    help: str,
    default: str | None = None,
    *,
    value: Any = None,
    least: float | None = None,
    flag: str | None = None,
) -> Any:
    """Return a dataclass field with a default value and the help in `Told`."""
    return dataclasses.field(default=value, metadata={"told": Told(help, default, least, flag)})
