"""Weakly informative base measures from the scale of the first rows."""

import numpy as np

from bnpstream.likelihoods.base import Floats

WITHIN = 0.1
"""Share of a column's variance that is expected within a cluster."""
LEAST_VARIANCE = 1e-12
"""Of the squared size of a column: a constant one has to have some variance."""


def location_and_scale(cells: Floats) -> tuple[Floats, Floats]:
    """Return a centre, and the variance expected within a cluster, of every column.

    Parameters
    ----------
    cells : ndarray of shape (n, D)
        The first rows; NaN where a cell is missing.

    Returns
    -------
    mean, variance : ndarray of shape (D,)
    """
    there = ~np.isnan(cells)
    count = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, cells, 0.0).sum(axis=0) / count
    variance = (np.where(there, cells - mean, 0.0) ** 2).sum(axis=0) / count
    size = LEAST_VARIANCE * mean**2
    variance = np.where(variance > size, variance, np.where(size > 0.0, size, 1.0))
    return mean, WITHIN * variance
