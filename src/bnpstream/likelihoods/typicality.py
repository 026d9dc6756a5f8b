"""How typical of its cluster a record is, given how well the stream before it predicted it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats

NATS_PER_TOKEN = 12.0
"""Cost of a token if nothing is known: about 160 000 equally likely words."""
TOKENS_OF_DOUBT = 50.0
"""The gain of a short document is shrunk, as if it had this many more tokens without gain."""
COST_OF_GAP = 1e3
"""Rows with missing cells come after all complete ones."""


class Typicality(NamedTuple):
    """Turns log evidence into typicality: (log evidence + offset) / divisor."""

    offsets: Floats
    """(n,)"""
    divisors: Floats
    """(n,)"""

    def scores(self, log_evidence: Floats) -> Floats:
        """Return how typical each row is."""
        return (log_evidence + self.offsets) / self.divisors


def of_rows(rows: Any) -> Typicality:
    """Return typicality by log evidence, with incomplete rows last.

    Parameters
    ----------
    rows : array-like or sparse of shape (n, D)
        Cells.
    """
    if issparse(rows):
        matrix: Any = rows
        matrix = csr_array(matrix)
        n_missing = row_sums(np.isnan(matrix.data), matrix.indptr)
    elif getattr(rows, "dtype", np.dtype(object)).kind in "biuf":
        n_missing = np.count_nonzero(np.isnan(rows), axis=1)
    else:
        missing = [[cell is None or cell != cell for cell in row] for row in rows]
        n_missing = np.array(missing).sum(axis=1)
    return Typicality(-COST_OF_GAP * n_missing, np.ones(n_missing.size))


class Entries(NamedTuple):
    """Word counts of documents, one document after the other."""

    counts: Floats
    """(entries,)"""
    ends: NDArray[np.integer]
    """(n + 1,): start of each document, and end of the last."""

    def log_orders(self) -> Floats:
        """Return log N! - sum_w log x_w! for each document."""
        factorials = row_sums(log_factorial(self.counts), self.ends)
        return gammaln(row_sums(self.counts, self.ends) + 1.0) - factorials

    def typicality(self) -> Typicality:
        """Return typicality by the mean gain per token over knowing nothing.

        With N tokens, it is (log evidence - log h(x) + 12 N) / (N + 50).
        """
        lengths = row_sums(self.counts, self.ends)
        offsets = NATS_PER_TOKEN * lengths - self.log_orders()
        return Typicality(offsets, lengths + TOKENS_OF_DOUBT)


def row_sums(values: NDArray[Any], ends: NDArray[np.integer]) -> Floats:
    """Return the sums of consecutive rows, each computed by itself."""
    columns: Any = np.zeros(values.size, np.int64)
    matrix: Any = csr_array((values, columns, ends), shape=(len(ends) - 1, 1))
    return np.asarray(matrix.sum(axis=1), np.float64)


_SMALL = gammaln(np.arange(256) + 1.0)


def log_factorial(counts: Floats) -> Floats:
    """Return log x! of whole numbers, from a table if they are small."""
    found: Floats = _SMALL[np.minimum(counts, 255.0).astype(np.int64)]
    large = counts > 255.0
    if large.any():
        found[large] = gammaln(counts[large] + 1.0)
    return found
