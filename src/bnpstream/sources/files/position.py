"""How far files have been read."""

from typing import Any, NamedTuple, Self

__all__ = ["Position", "too_short"]


class Position(NamedTuple):
    """How far files have been read: all that is needed to go on from there."""

    records: int = 0
    """Records behind it in all files, rejected ones included."""
    file: int = 0
    """Files behind it."""
    in_file: int = 0
    """Records of the present file behind it."""
    line: int = 0
    """Lines of the present file behind it; 0 where that is not known: records are skipped."""
    offset: int | None = None
    """Bytes of the present file behind it, if it can be entered there; None: read and skip."""

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return a position from JSON, None for the beginning; ValueError if it is none.

        Examples
        --------
        >>> Position.of({"records": 7, "file": 0, "in_file": 7, "line": 9, "offset": None}).line
        9
        >>> Position.of({"records": "7"})
        Traceback (most recent call last):
        ...
        ValueError: {'records': '7'} is not a position in files: restore it from a copy, ...
        """
        if value is None:
            return cls()
        if isinstance(value, dict) and set(cls._fields) <= set(value):
            found = cls(*(value[name] for name in cls._fields))
            counts = found if found.offset is not None else found[:-1]
            if all(type(count) is int and count >= 0 for count in counts):
                return found
        raise ValueError(
            f"{value!r} is not a position in files: restore it from a copy, or start again"
        )


def too_short(path: str, n: int, what: str, n_before: int) -> ValueError:
    """Say that a file has less than was read of it before, as an error to raise."""
    return ValueError(
        f"{path}: it has {n} {what}, but {n_before} were read before: it is not the same file; "
        "start afresh"
    )
