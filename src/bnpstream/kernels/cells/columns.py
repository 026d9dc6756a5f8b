"""Rows of cells: blocks of columns, each of one family (twins: ``bnpstream.likelihoods``).

A row is a few numbers, one a column; NaN is a missing cell, which is integrated out. Columns are
grouped into blocks of one family each, independent given the cluster, so that one loop serves
every family and any product of them. Statistics are pairs of doubles
(``kernels.statistics.pairs``): the high parts of a cluster's row come first, then the low ones.

`Derived` holds what a score needs of a cluster: means, inverse factors, constants. It is made anew
from the statistics of a cluster whenever these change, so it can be rebuilt to the last bit and no
error grows. It lies cluster by cluster in every row: loops over clusters read it in order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats, Integers

KIND, CELL, CELLS, STATISTIC, DERIVED, PARAMETER = 0, 1, 2, 3, 4, 5


class Columns(NamedTuple):
    """Parameters of the families of ``bnpstream.likelihoods`` that have columns."""

    blocks: Integers
    """(blocks, 6): kind (``kernels.cells.blocks``), first cell, cells, and where statistics,
    derived numbers and parameters begin. A categorical block has one cell; what CELLS says there
    is its levels."""
    parameters: Floats
    n_statistics: int
    """Pairs of a cluster."""
    n_derived: int


class Cells(NamedTuple):
    """A batch of rows."""

    values: Floats
    """(n, columns): NaN where a cell is missing; a categorical cell is the level's number."""
    complete: NDArray[np.bool_]
    """(n,): whether no cell is missing."""
    log_base: Floats
    """(n,): log h(x) of every row."""
    weights: Floats
    """(n,): how many rows a row counts for."""


class Derived(NamedTuple):
    """What scores need, made from the statistics; free slots hold the prior's."""

    values: Floats
    """(n_derived, capacity + 8): the eight keep rows from falling into the same cache lines."""
    prior: Floats
    """(n_derived,): of an empty cluster."""
    uneven: NDArray[np.bool_]
    """(capacity,): whether some cells of a cluster were missing more often than others."""
    made: Floats
    """(n_derived,): working space."""


class Work(NamedTuple):
    """Working space of a family's scores."""

    summed: Floats
    """(capacity,): squared distances, or the mantissas of products."""
    part: Floats
    """(capacity,): one coordinate of a distance."""
    exponents: Integers
    """(capacity,): of the products."""
    apart: Floats
    """(most cells of a block, capacity): the row less the clusters' means."""
