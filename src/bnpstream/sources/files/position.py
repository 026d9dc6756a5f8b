"""Positions in files."""

import zlib
from typing import Any, NamedTuple, Self


class Position(NamedTuple):
    """How far files have been read: all that is needed to continue from there."""

    records: int = 0
    """Records read in all files, including rejects."""
    file: int = 0
    """Files read completely."""
    in_file: int = 0
    """Records read in the current file."""
    line: int = 0
    """Lines read in the current file; 0 if unknown: records are then skipped."""
    offset: int | None = None
    """Bytes read in the current file, if reading can start there; None: read and skip."""
    head: int | None = None
    """Checksum of the first of these bytes, which identifies the file; earlier versions saved
    none."""

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return a position from JSON, None for the beginning; ValueError if invalid.

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
"""Most bytes used to identify a file."""


def head_of(first: bytes, offset: int) -> int:
    """Return a checksum of the first bytes of a file, up to an offset.

    A last line without line end counts as if it had one, so the offset may be one larger.
    """
    return zlib.crc32((first + b"\n")[: min(offset, HEAD_BYTES)])


def too_short(path: str, n: int, what: str, n_before: int) -> ValueError:
    """Return an error about a file that is shorter than what was read of it before."""
    return ValueError(
        f"{path}: has {n} {what}, but {n_before} were read before: it is not the same file; "
        "start a new run"
    )


def another_file(path: str) -> ValueError:
    """Return an error about a file that starts with other bytes than before."""
    return ValueError(
        f"{path}: does not start as it did when it was read before: it is not the same file; "
        "start a new run"
    )
