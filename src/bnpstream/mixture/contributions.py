"""What rows added to their clusters, kept if that depends on the cluster."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats, Integers


class Contributions:
    """The values that sites have added, row by row, growing at the end.

    A row in k clusters has k lines, each as long as the row has columns: what a responsibility and
    a weight of one added to the cluster. So the weight of a row may change, as when it fades, while
    the values stay.

    Parameters
    ----------
    indptr : ndarray of shape (n + 1,), optional
        Where the values of each row start; by default there are no rows.
    values : ndarray of shape (indptr[-1],), optional
        The lines of all rows, one after the other.
    """

    def __init__(self, indptr: Integers | None = None, values: Floats | None = None) -> None:
        self._indptr = np.zeros(1, np.int64) if indptr is None else indptr
        self._values = np.empty(0) if values is None else values
        self.n_rows = self._indptr.size - 1

    @classmethod
    def joined(cls, parts: Iterable["Contributions | None"]) -> Self | None:
        """Return those of several blocks of rows, in order; None if there are none."""
        every = None
        for part in parts:
            if part is not None:
                every = cls() if every is None else every
                every.extend(part)
        return every

    @property
    def indptr(self) -> Integers:
        """Return where the values of each row start, shape (n + 1,) (a view)."""
        return self._indptr[: self.n_rows + 1]

    @property
    def values(self) -> Floats:
        """Return the lines of all rows, one after the other (a view)."""
        return self._values[: self.indptr[-1]]

    def row(self, i: int, n_clusters: int) -> Floats:
        """Return the lines of row i, shape (n_clusters, columns) (a view)."""
        lines = self._values[self._indptr[i] : self._indptr[i + 1]]
        return lines.reshape(n_clusters, lines.size // max(1, n_clusters))

    def make_room(self, rows: int, values: int) -> None:
        """Grow, by doubling, until `rows` rows fit and `values` more values."""
        self._indptr = _with_room(self._indptr, rows + 1)
        self._values = _with_room(self._values, int(self.indptr[-1]) + values)

    def arrays(self) -> tuple[Integers, Floats]:
        """Return the ends of rows and the values, including spare space, for compiled loops."""
        return self._indptr, self._values

    def append(self, lines: Floats) -> None:
        """Add those of the next row, shape (clusters, columns)."""
        self.extend(Contributions(np.array([0, lines.size]), lines.ravel()))

    def extend(self, other: "Contributions") -> None:
        """Add those of more rows."""
        start, n = int(self.indptr[-1]), self.n_rows
        self.make_room(n + other.n_rows, other.values.size)
        self._indptr[n + 1 : n + other.n_rows + 1] = start + other.indptr[1:]
        self._values[start : start + other.values.size] = other.values
        self.n_rows += other.n_rows

    def part(self, start: int, stop: int) -> Self:
        """Return a copy of those of rows start..stop-1."""
        ends = self.indptr[start : stop + 1]
        return type(self)(ends - ends[0], self._values[ends[0] : ends[-1]].copy())

    def discard(self, start: int) -> None:
        """Drop the values from row `start` on, which are the only ones left, but not the rows."""
        self.indptr[start:] = 0


def _with_room(part: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array with, by doubling, space for this many entries."""
    if size <= part.size:
        return part
    longer = np.empty(max(size, 2 * part.size), part.dtype)
    longer[: part.size] = part
    return longer
