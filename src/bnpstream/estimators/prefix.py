"""The first rows of a stream, kept until there are enough to learn a base measure from."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from bnpstream.likelihoods import Likelihood

Floats = NDArray[np.float64]


class Prefix:
    """Rows in order of arrival, as they were given.

    Parameters
    ----------
    likelihood : Likelihood
        Leaves something open, to be taken from the rows.

    Attributes
    ----------
    n_rows : int
        Rows so far.
    n_last : int
        Of these, rows of the last call.
    provisional : estimator or None
        A throw-away model of these rows, made when somebody asks.
    """

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood = likelihood
        self.n_rows = self.n_last = 0
        self.provisional: Any = None
        self._parts: list[Any] = []
        self._weights: list[Floats] = []
        self._stamps: list[Floats] = []

    def append(self, rows: Any, weights: Floats | None, stamps: Floats | None = None) -> None:
        """Add the rows of a call, with their times if they have any."""
        if stamps is not None:
            self._stamps.append(stamps.copy())
        self._parts.append(rows.copy())
        self.n_last = int(rows.shape[0])
        self._weights.append(np.ones(self.n_last) if weights is None else weights.copy())
        self.n_rows += self.n_last
        self.provisional = None

    def copy(self) -> Self:
        """Return an independent copy; the rows themselves never change."""
        other = type(self)(self.likelihood)
        other.n_rows, other.n_last = self.n_rows, self.n_last
        other._parts, other._weights = list(self._parts), list(self._weights)
        other._stamps = list(self._stamps)
        return other

    def last(self) -> Any:
        """Return the rows of the last call."""
        return self._parts[-1]

    def rows(self) -> Any:
        """Return all rows."""
        if any(issparse(part) for part in self._parts):
            return vstack([csr_array(part) for part in self._parts], format="csr")
        return np.concatenate(self._parts)

    def weights(self) -> Floats | None:
        """Return the weights of all rows, or None if all are one."""
        weights = np.concatenate(self._weights)
        return None if (weights == 1.0).all() else weights

    def stamps(self) -> Floats | None:
        """Return the times of all rows, or None if not all have one."""
        return np.concatenate(self._stamps) if len(self._stamps) == len(self._parts) else None

    def counted(self) -> NDArray[np.intp]:
        """Return the rows that count: those of weight zero are to leave no trace."""
        return np.flatnonzero(np.concatenate(self._weights))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "provisional": None}
