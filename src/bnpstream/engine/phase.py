"""Phases of a stream."""

from enum import Enum


class Phase(Enum):
    """Phases of a stream."""

    EMPTY = "empty"
    """No rows yet."""
    PREFIX = "prefix"
    """The first rows are kept: unset parameters will be learnt from them."""
    RUNNING = "running"
    """Rows are absorbed as they come."""
