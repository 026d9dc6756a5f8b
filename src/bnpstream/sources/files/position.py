"""How far files have been read."""

import zlib
from typing import Any, NamedTuple, Self

__all__ = ["HEAD_BYTES", "Position", "another_file", "head_of", "too_short"]


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
    head: int | None = None
    """Checksum of the first of these bytes, by which the file is known again; earlier versions
    have saved none."""

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
        if isinstance(value, dict) and set(cls._fields[:-1]) <= set(value):
            given: dict[str, Any] = {name: value.get(name) for name in cls._fields}
            found = cls(**given)
            counts = [*found[:4], *(count for count in found[4:] if count is not None)]
            if all(type(count) is int and count >= 0 for count in counts):
                return found
        raise ValueError(
            f"{value!r} is not a position in files: restore it from a copy, or start again"
        )


HEAD_BYTES = 1024
"""Bytes at most by which a file is known again."""


def head_of(first: bytes, offset: int) -> int:
    """Return a checksum of the first bytes of a file, up to an offset.

    A last line without its end counts as if it had one, so that the offset may be one larger.
    """
    return zlib.crc32((first + b"\n")[: min(offset, HEAD_BYTES)])


def too_short(path: str, n: int, what: str, n_before: int) -> ValueError:
    """Say that a file has less than was read of it before, as an error to raise."""
    return ValueError(
        f"{path}: it has {n} {what}, but {n_before} were read before: it is not the same file; "
        "start afresh"
    )


def another_file(path: str) -> ValueError:
    """Say that a file begins with other bytes than were read of it before, as an error to raise."""
    return ValueError(
        f"{path}: it does not begin as it did when it was read before: it is not the same file; "
        "start afresh"
    )
