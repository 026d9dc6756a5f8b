"""Log predictives of the last rows of a stream on arrival, to rank other rows among."""

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats
from bnpstream.mixture.saved import require

MOST = 1024
"""Rows remembered: enough for one in a thousand, few enough to follow the stream."""


class Arrivals:
    """Log predictives of the last rows of a stream, each one step ahead.

    Parameters
    ----------
    log_evidence : ndarray, optional
        Those of the rows so far, oldest first.
    """

    def __init__(self, log_evidence: Floats | None = None) -> None:
        self.log_evidence = np.empty(0) if log_evidence is None else log_evidence

    def add(self, log_evidence: Floats) -> None:
        """Remember absorbed rows."""
        self.log_evidence = np.append(self.log_evidence, log_evidence)[-MOST:]

    def quantiles(self, log_predictives: Floats) -> Floats:
        """Return, for each row, the share of the remembered rows that were more probable.

        The row itself counts among them. So if it comes from the same source, the probability of
        a share above 1 - p is at most p, however few rows are remembered.
        """
        known = np.sort(self.log_evidence)
        likelier = known.size - np.searchsorted(known, log_predictives, side="right")
        return likelier / (known.size + 1)

    def quantiles_of_next(self, log_evidence: Floats) -> Floats:
        """Return the same for the rows that came next, each ranked among the last before it.

        Parameters
        ----------
        log_evidence : ndarray of shape (n,)
            Their log predictives, each one step ahead.
        """
        every, first = np.append(self.log_evidence, log_evidence), self.log_evidence.size
        shares = np.empty(log_evidence.size)
        for i, own in enumerate(log_evidence):
            before = every[max(0, first + i - MOST) : first + i]
            shares[i] = np.count_nonzero(before > own) / (before.size + 1)
        return shares

    @classmethod
    def load_from(cls, array: NDArray[np.float64], n_rows: int) -> "Arrivals":
        """Return those of a snapshot; ValueError if they do not fit a stream of this many rows."""
        require("arrivals", array.dtype == np.float64 and array.ndim == 1)
        require("arrivals", array.size <= min(MOST, n_rows) and not np.isnan(array).any())
        return cls(array)
