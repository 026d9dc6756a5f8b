"""Rows of a table: cells that are numbers, truth values or labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnpstream.sources.records import UnusableError

__all__ = ["CellTypes", "gather_cells"]

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "truth": (bool,),
    "label": (str,),
}
_REMEMBERED = 1000


class CellTypes:
    """Checks the types of the cells of rows.

    Parameters
    ----------
    names, types : sequence of str
        Of the columns.

    Examples
    --------
    >>> CellTypes(("size", "colour"), ("number", "label")).check(["red", "red"])
    Traceback (most recent call last):
    bnpstream.sources.records.UnusableError: column 'size' has 'red', not a number
    """

    def __init__(self, names: Sequence[str], types: Sequence[str]) -> None:
        self._names, self._types = names, types
        # Few combinations of types ever come, so that most rows take one look.
        self._sound: set[tuple[type, ...]] = set()

    def check(self, cells: list[Any]) -> list[Any]:
        """Return the cells of a row, None where missing; UnusableError if a type is wrong."""
        found = tuple(map(type, cells))
        if found not in self._sound:
            for name, type_, cell in zip(self._names, self._types, cells, strict=True):
                if cell is not None and type(cell) not in _PYTHON_TYPES[type_]:
                    raise UnusableError(f"column {name!r} has {str(cell)[:40]!r}, not a {type_}")
            if len(self._sound) < _REMEMBERED:
                self._sound.add(found)
        return cells


def gather_cells(rows: list[list[Any]], types: Sequence[str]) -> Any:
    """Return rows as an array of float, NaN where a cell is missing, if all are numbers.

    Otherwise it is one of objects: float, bool, str, or None.

    Examples
    --------
    >>> gather_cells([[3, 0.5], [None, 1]], ("number", "number"))
    array([[3. , 0.5],
           [nan, 1. ]])
    >>> gather_cells([[3, "red"], [None, "blue"]], ("number", "label"))
    array([[3.0, 'red'],
           [None, 'blue']], dtype=object)
    """
    shape = (len(rows), len(types))
    if set(types) == {"number"}:
        return np.array(rows, dtype=np.float64).reshape(shape)
    gathered = np.empty(shape, dtype=object)
    for column, type_ in enumerate(types):
        cells = [row[column] for row in rows]
        if type_ == "number":
            cells = [None if cell is None else float(cell) for cell in cells]
        gathered[:, column] = cells
    return gathered
