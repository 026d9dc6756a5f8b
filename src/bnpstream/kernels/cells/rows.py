"""Rows of cells: the loops over rows for columns of any family (see ``kernels.passes.kinds``)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import N_CLUSTERS, PAIR_ROUNDING, Floats, Integers
from bnpstream.kernels.cells.blocks import add_cells, derive, score_cells
from bnpstream.kernels.cells.columns import Cells, Columns, Derived, Work
from bnpstream.kernels.jit.decorators import entry, inlined, inner
from bnpstream.kernels.jit.dispatch import specialize
from bnpstream.kernels.measures.rules import log_weight
from bnpstream.kernels.passes.kinds import (
    add_row,
    make_scratch,
    move_cluster,
    n_columns,
    score,
    take_out_row,
)
from bnpstream.kernels.statistics.table import Table, take_row

LANES = 8
"""Sweeps over clusters are a multiple of this wide."""


class CellScratch(NamedTuple):
    """Working space of one pass over rows of cells."""

    scores: Floats
    """(capacity,): log predictives of all slots."""
    work: Work
    """Of the families' scores."""
    entries: NDArray[np.uint64]
    """(0,)."""
    slots: Integers
    """(capacity,): the candidates, ascending."""
    log_scores: Floats
    """(capacity,): of the candidates."""
    shares: Floats
    """(capacity,): responsibilities of the candidates."""


@inner
def make_cell_scratch(capacity: int, cells: int) -> CellScratch:
    """Allocate the working space for `capacity` slots and rows of so many cells."""
    return CellScratch(
        np.empty(capacity),
        Work(
            np.empty(capacity),
            np.empty(capacity),
            np.empty(capacity, np.int64),
            np.empty((cells, capacity)),
        ),
        np.empty(0, np.uint64),
        np.empty(capacity, np.int64),
        np.empty(capacity),
        np.empty(capacity),
    )


@specialize(n_columns, Cells, inline=True)
def _n_columns(rows, i):  # type: ignore[no-untyped-def]
    return 0


@specialize(make_scratch, Cells)
def _make_scratch(rows, start, stop, capacity):  # type: ignore[no-untyped-def]
    return make_cell_scratch(capacity, rows.values.shape[1])


@specialize(score, Derived, inline=True)
def _score(  # type: ignore[no-untyped-def]
    derived, columns, clusters, rows, i, weights, rule, log_cut, most, scratch
):
    """Score all clusters; slot K is the prior, so the new one is no special case."""
    K = clusters.counters[N_CLUSTERS]
    width = (K + LANES) // LANES * LANES
    score_cells(columns, derived, rows, i, width, scratch.scores, scratch.work)
    for k in range(K):
        scratch.slots[k] = k
        log_prior = log_weight(weights[k] - rule.discount, rule)
        scratch.log_scores[k] = log_prior + scratch.scores[k]
    scratch.slots[K], scratch.log_scores[K] = K, log_weight(rule.new, rule) + scratch.scores[K]
    return K + 1


@inlined
def put_derived(derived: Derived, k: int, made: Floats) -> None:
    """Let slot k have these derived numbers; a slice would bring an error message to compile."""
    for v in range(made.size):
        derived.values[v, k] = made[v]


@inlined
def update(derived: Derived, columns: Columns, table: Table, k: int) -> None:
    """Derive what scores need of cluster k from its statistics."""
    start, made = table.starts[k], derived.made
    row = table.values[start : start + 2 * columns.n_statistics]
    derived.uneven[k] = derive(columns, row, made)
    put_derived(derived, k, made)


@specialize(add_row, Derived, inline=True)
def _add_row(derived, columns, clusters, rows, i, k, q, entries):  # type: ignore[no-untyped-def]
    table = clusters.table
    start = table.starts[k]
    clusters.masses[k] += q
    add_cells(columns, table.values[start:], rows.values[i], q)
    update(derived, columns, table, k)


@specialize(take_out_row, Derived)
def _take_out_row(  # type: ignore[no-untyped-def]
    derived, columns, clusters, rows, i, k, share, entries
):
    table, pairs = clusters.table, columns.n_statistics
    start = table.starts[k]
    row = table.values[start : start + 2 * pairs]
    before = row[:pairs].copy()
    clusters.masses[k] = max(clusters.masses[k] - share, 0.0)
    add_cells(columns, row, rows.values[i], -share)
    for s in range(pairs):
        if abs(row[s]) <= PAIR_ROUNDING * abs(before[s]):
            row[s] = row[s + pairs] = 0.0
    update(derived, columns, table, k)


@specialize(move_cluster, Derived)
def _move_cluster(derived, clusters, k, last):  # type: ignore[no-untyped-def]
    take_row(clusters.table, k, last)
    clusters.masses[k] = clusters.masses[last]
    for v in range(derived.prior.size):
        derived.values[v, k] = derived.values[v, last]
    put_derived(derived, last, derived.prior)
    derived.uneven[k] = derived.uneven[last]
    derived.uneven[last] = False


@entry
def derive_all(columns: Columns, table: Table, n_clusters: int, derived: Derived) -> None:
    """Derive what scores need of all clusters; all free slots are the prior."""
    derive(columns, np.zeros(2 * columns.n_statistics), derived.prior)
    for k in range(derived.uneven.size):
        put_derived(derived, k, derived.prior)
    for k in range(n_clusters):
        update(derived, columns, table, k)


@entry
def add_up(columns: Columns, rows: Cells, indptr: Any, slots: Any, shares: Any, out: Any) -> None:
    """Add every row, with its shares, to the statistics `out` of its clusters."""
    for i in range(indptr.size - 1):
        for j in range(indptr[i], indptr[i + 1]):
            add_cells(columns, out[slots[j]], rows.values[i], shares[j])
