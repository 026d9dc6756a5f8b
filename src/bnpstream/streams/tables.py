"""Rows of a table: cells that are numbers, truth values or labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnpstream.streams.records import UnusableError

__all__ = ["TableRows"]

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "truth": (bool,),
    "label": (str,),
}
_KNOWN_COMBINATIONS = 1000


class TableRows:
    """Checks and gathers the cells of a table.

    Parameters
    ----------
    names, types : sequence of str
        Of the columns.

    Examples
    --------
    >>> rows = TableRows(("size", "colour"), ("number", "label"))
    >>> rows([rows.check([3, "red"]), rows.check([None, "blue"])])
    array([[3.0, 'red'],
           [None, 'blue']], dtype=object)
    """

    def __init__(self, names: Sequence[str], types: Sequence[str]) -> None:
        self._names, self._types = names, types
        self._all_numbers = set(types) == {"number"}
        self._sound: set[tuple[type, ...]] = set()

    def check(self, cells: list[Any]) -> list[Any]:
        """Return the cells of a row, None where missing; UnusableError if a type is wrong."""
        found = tuple(map(type, cells))
        if found not in self._sound:
            for name, type_, cell in zip(self._names, self._types, cells, strict=True):
                if cell is not None and type(cell) not in _PYTHON_TYPES[type_]:
                    raise UnusableError(f"column {name!r} has {str(cell)[:40]!r}, not a {type_}")
            if len(self._sound) < _KNOWN_COMBINATIONS:
                self._sound.add(found)
        return cells

    def __call__(self, rows: list[list[Any]]) -> Any:
        """Return an array of float, NaN where a cell is missing, if all columns are numbers.

        Otherwise it is one of objects: float, bool, str, or None.
        """
        shape = (len(rows), len(self._names))
        if self._all_numbers:
            return np.array(rows, dtype=np.float64).reshape(shape)
        gathered = np.empty(shape, dtype=object)
        for column, type_ in enumerate(self._types):
            cells = [row[column] for row in rows]
            if type_ == "number":
                cells = [None if cell is None else float(cell) for cell in cells]
            gathered[:, column] = cells
        return gathered
