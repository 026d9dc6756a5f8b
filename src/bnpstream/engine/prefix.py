"""The first rows of a stream, kept until there are enough to learn unset parameters."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.text.bags import Bags
from bnpstream.likelihoods.cells import WrongWidthError


class Prefix:
    """Rows in order of arrival, as given.

    Attributes
    ----------
    n_rows : int
        Number of rows so far.
    n_last : int
        Number of rows in the last call.
    """

    def __init__(self) -> None:
        self.n_rows = self.n_last = 0
        self._parts: list[Any] = []
        self._weights: list[Floats] = []
        self._stamps: list[Floats] = []

    def with_rows(self, rows: Any, weights: Floats | None, stamps: Floats | None) -> Self:
        """Return the prefix with the rows of one more call; this one does not change.

        Parameters
        ----------
        rows : array, sparse or sequence
            Rows of the same kind as before; copied.
        weights : ndarray of shape (n,) or None
            Number of rows that each counts for.
        stamps : ndarray of shape (n,) or None
            Their times, if they have any.
        """
        n = n_rows(rows)
        if self._parts and not isinstance(rows, Sequence):
            expected = self._parts[0].shape[1]
            if rows.shape[1] != expected:
                raise WrongWidthError(
                    f"X has {rows.shape[1]} columns, but earlier rows had {expected}"
                )
        other = type(self)()
        other.n_rows, other.n_last = self.n_rows + n, n
        other._parts = [*self._parts, rows.copy()]
        other._weights = [*self._weights, np.ones(n) if weights is None else weights.copy()]
        other._stamps = [*self._stamps, *([] if stamps is None else [stamps.copy()])]
        return other

    def last(self) -> Any:
        """Return the rows of the last call."""
        return self._parts[-1]

    def rows(self) -> Any:
        """Return all rows."""
        if all(isinstance(part, Bags) for part in self._parts):
            return Bags.joined(self._parts)
        if isinstance(self._parts[0], Sequence):
            return [row for part in self._parts for row in part]
        if any(issparse(part) for part in self._parts):
            return vstack([csr_array(part) for part in self._parts], format="csr")
        return self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts)

    def first(self, n: int) -> Any:
        """Return the first n rows that count; rows of weight zero must leave no trace."""
        places, rows = self.counted()[:n], self.rows()
        return [rows[i] for i in places.tolist()] if isinstance(rows, Sequence) else rows[places]

    def weights(self) -> Floats | None:
        """Return the weights of all rows, or None if all are one."""
        weights = np.concatenate(self._weights)
        return None if (weights == 1.0).all() else weights

    def stamps(self) -> Floats | None:
        """Return the times of all rows, or None if not all have one."""
        return np.concatenate(self._stamps) if len(self._stamps) == len(self._parts) else None

    def counted(self) -> NDArray[np.intp]:
        """Return which rows count."""
        return np.flatnonzero(np.concatenate([np.empty(0), *self._weights]))


def n_rows(rows: Any) -> int:
    """Return the number of rows in a matrix or a sequence."""
    return len(rows) if isinstance(rows, Sequence) else int(rows.shape[0])
