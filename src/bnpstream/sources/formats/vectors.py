"""Rows that are vectors: arrays of numbers of equal length, in a field that the user names."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.sources.records import UnusableError

_NUMBERS = frozenset({int, float})


def commonest_length(lengths: Iterable[int]) -> int | None:
    """Return the most frequent length of vectors, the first in a tie; None if all are empty.

    Examples
    --------
    >>> commonest_length([0, 0, 3, 4, 4])
    4
    """
    counts = Counter(length for length in lengths if length > 0)
    return counts.most_common(1)[0][0] if counts else None


def vector_of(cell: Any, name: str, length: int) -> NDArray[Any]:
    """Return the vector in a field: a list becomes float64, an array stays as it is.

    Raises
    ------
    UnusableError
        If it is not a vector, has another length, or contains anything but finite numbers.

    Examples
    --------
    >>> vector_of([1, 0.5], "vector", 2)
    array([1. , 0.5])
    >>> vector_of([1, None], "vector", 2)
    Traceback (most recent call last):
    bnpstream.sources.records.UnusableError: column 'vector' has None at 1, not a finite number
    """
    if not isinstance(cell, list | np.ndarray):
        what = "is missing" if cell is None else f"has {str(cell)[:40]!r}, not an array of numbers"
        raise UnusableError(f"column {name!r} {what}")
    if len(cell) != length:
        raise UnusableError(f"column {name!r} has {len(cell)} numbers, not {length}")
    if isinstance(cell, np.ndarray):
        row = cell
    elif _NUMBERS.issuperset(map(type, cell)):
        row = np.array(cell, dtype=np.float64)
    else:
        row = np.array([x if type(x) in _NUMBERS else np.nan for x in cell], dtype=np.float64)
    is_sound = np.isfinite(row)
    if not is_sound.all():
        at = int(np.argmin(is_sound))
        raise UnusableError(
            f"column {name!r} has {str(cell[at])[:40]} at {at}, not a finite number"
        )
    return row


def gather_vectors(rows: list[NDArray[Any]], length: int) -> NDArray[Any]:
    """Return vectors as rows of a matrix; with no vectors it has the narrowest type."""
    return np.stack(rows) if rows else np.empty((0, length), dtype=np.float16)
