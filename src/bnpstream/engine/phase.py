"""How far a stream has come."""

from enum import Enum


class Phase(Enum):
    """How far a stream has come."""

    EMPTY = "empty"
    """No row has come."""
    PREFIX = "prefix"
    """The first rows are kept: what is left open will be learnt from them."""
    RUNNING = "running"
    """Rows are absorbed as they come."""
