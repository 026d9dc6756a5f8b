"""Validates arrays of a saved posterior before use, because compiled loops check nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.likelihoods import Batch, Likelihood

Arrays = dict[str, NDArray[Any]]
MOST = 2.0**53
"""More rows than there are; a double does not hold every larger whole number."""


def require(name: str, holds: bool | np.bool_) -> None:
    """Raise ValueError, with the name of an array, unless a condition holds."""
    if not holds:
        raise ValueError(f"the array {name} is not valid")


def require_ends(name: str, ends: NDArray[Any], size: int) -> None:
    """Raise ValueError unless these are the ends of consecutive rows."""
    require(name, ends.dtype.kind == "i" and ends.ndim == 1 and ends.size > 0)
    require(name, ends[0] == 0 and ends[-1] == size and (ends[1:] >= ends[:-1]).all())


def require_numbers(name: str, array: NDArray[Any], shape: tuple[int, ...], least: float) -> None:
    """Raise ValueError unless these are finite numbers >= `least`, with this shape."""
    require(name, array.dtype == np.float64 and array.shape == shape)
    require(name, (np.isfinite(array) & (array >= least)).all())


def named(arrays: Arrays, start: str) -> Arrays:
    """Return the arrays whose names have this prefix, without it."""
    return {name[len(start) :]: x for name, x in arrays.items() if name.startswith(start)}


def rows_from(arrays: Arrays, start: str, likelihood: Likelihood, n_statistics: int) -> Batch:
    """Return encoded rows, as `Batch.arrays` describes them; ValueError if they are not valid.

    Parameters
    ----------
    arrays : dict
        All arrays of a snapshot.
    start : str
        Prefix of their names.
    likelihood : Likelihood
        Likelihood that encoded them.
    n_statistics : int
        Columns of the posterior that they belong to.
    """
    rows = named(arrays, start)
    table = next((rows[name] for name in ("statistics", "cells", "values") if name in rows), None)
    if "indptr" in rows:
        n = _require_sparse(rows, start, n_statistics)
    else:
        require(f"{start}rows", table is not None and table.ndim == 2)
        assert table is not None
        n = table.shape[0]
        require(f"{start}rows", table.dtype.kind == "f" and not np.isinf(table).any())
    for name, least in (("log_base", -np.inf), ("factors", -np.inf), ("weights", 0.0)):
        if name in rows:
            require_numbers(f"{start}{name}", rows[name], (n,), least)
            require(f"{start}{name}", (rows[name] <= MOST).all())
    batch = likelihood.batch_of(rows)
    require(f"{start}rows", len(batch) == n and batch.n_statistics == n_statistics)
    return batch


def _require_sparse(rows: Arrays, start: str, n_statistics: int) -> int:
    """Return the number of compressed rows; ValueError if their arrays do not fit."""
    columns, values = ("indices", "data") if "indices" in rows else ("columns", "values")
    places = rows[columns]
    require(f"{start}{columns}", places.dtype.kind == "i" and places.ndim == 1)
    require(f"{start}{columns}", ((places >= 0) & (places < n_statistics)).all())
    require_ends(f"{start}indptr", rows["indptr"], places.size)
    steps = np.diff(places, prepend=-1)
    inside = rows["indptr"][:-1]
    steps[inside[inside < places.size]] = 1  # from one row to the next
    require(f"{start}{columns}", (steps > 0).all())
    require_numbers(f"{start}{values}", rows[values], places.shape, -MOST)
    require(f"{start}{values}", (rows[values] <= MOST).all())
    n = rows["indptr"].size - 1
    if "shape" in rows:
        require(f"{start}shape", rows["shape"].tolist() == [n, n_statistics])
    if columns == "columns":  # the last entry of a document is its length
        require(f"{start}indptr", (np.diff(rows["indptr"]) >= 1).all())
    return n
