"""Validation of whole, non-negative counts."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from bnpstream.likelihoods.errors import RowError
from bnpstream.likelihoods.frames import as_array, check_table

LARGEST_COUNT = 2**53
"""A double holds every whole number up to this."""


def as_counts(X: Any) -> csr_array:
    """Return X as a canonical csr_array of whole float64 counts; ValueError names a bad entry.

    Parameters
    ----------
    X : array-like or sparse of shape (n, V)
        Counts. Never modified.

    Returns
    -------
    counts : csr_array of shape (n, V)
        Sorted columns, no duplicates, no stored zeros.
    """
    given: Any = _as_matrix(X)  # whole numbers stay integers: as a float, 2^53 + 1 is 2^53
    bad = np.flatnonzero(
        ~((given.data >= 0) & (given.data <= LARGEST_COUNT)) | (given.data != np.trunc(given.data))
    )
    if bad.size:
        first = int(bad[0])
        row = int(np.searchsorted(given.indptr, first, side="right")) - 1
        value = given.data[first]
        raise RowError(
            row,
            f"column {given.indices[first]} is {value if given.dtype.kind == 'f' else int(value)}: "
            f"{reason(value)}; counts must be whole numbers >= 0",
        )
    matrix: csr_array = csr_array(given, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _as_matrix(X: Any) -> csr_array:
    X = as_array(X)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    if not issparse(X):
        X = np.asarray(X)
    if X.dtype.kind == "O" and not issparse(X):
        X = _as_numbers(X)
    check_table(X)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, got dtype {X.dtype}")
    return csr_array(X)


def _as_numbers(X: Any) -> Any:
    """Return an array of Python objects as numbers; None becomes NaN."""
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers: {error}") from None


def reason(value: Any) -> str:
    """Return why a number is not a count."""
    if np.isnan(value):
        return "NaN is not a count"
    if value < 0:
        return "a count cannot be negative"
    if value > LARGEST_COUNT:
        return f"a count cannot be larger than {LARGEST_COUNT}"
    return "a count cannot be a fraction (for texts, use CountVectorizer, not TfidfVectorizer)"
