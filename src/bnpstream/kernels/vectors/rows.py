"""Dense vectors with a scale per row: the loops over rows (see ``kernels.passes.kinds``)."""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.arrays import N_CLUSTERS, ROUNDING, Floats
from bnpstream.kernels.jit.decorators import entry, inner
from bnpstream.kernels.jit.dispatch import specialize
from bnpstream.kernels.measures.rules import log_weight
from bnpstream.kernels.passes.contributions import contribution_of
from bnpstream.kernels.passes.kinds import (
    add_line,
    make_scratch,
    move_cluster,
    n_columns,
    score,
    take_out_line,
)
from bnpstream.kernels.statistics.table import Table, take_row
from bnpstream.kernels.vectors.families import (
    LEVELS,
    SCALES,
    WORK,
    Directions,
    Scales,
    fill_pairs,
    log_sum,
)
from bnpstream.kernels.vectors.screen import (
    BLOCK,
    FEWEST,
    LINES,
    LOG_SCALES,
    MARGIN,
    NEVER_MADE,
    STOP,
    Lengths,
    Vectors,
    VectorScratch,
    bound,
    fill_row,
    forget,
    height,
    multiplied,
    note,
    precision_of,
    product,
    product_with,
    square_of,
    update,
)
from bnpstream.kernels.words.dirichlet import log_predictive_of, log_predictive_of_new

REMEMBERED = SCALES + 3
"""Numbers at the end of the working space: scores of a pair each, their sum, slot, and row."""


@specialize(n_columns, Vectors, inline=True)
def _n_columns(rows, i):  # type: ignore[no-untyped-def]
    return SCALES + rows.values.shape[1]


@specialize(make_scratch, Vectors)
def _make_scratch(rows, start, stop, capacity):  # type: ignore[no-untyped-def]
    D, block = rows.values.shape[1], np.zeros(7, np.int64)
    block[STOP] = stop
    return VectorScratch(
        np.full(WORK + D + REMEMBERED, -1.0),
        np.empty(capacity, np.int64),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        block,
        np.zeros((BLOCK, D), np.float32),
        np.zeros((BLOCK, D), np.float32),
        np.empty((BLOCK, capacity + 2), np.float32),
        np.empty((BLOCK, BLOCK), np.float32),
    )


@entry
def update_all(
    lengths: Lengths, family: Any, table: Table, masses: Floats, n_clusters: int
) -> None:
    """Find what scores need of all clusters; all free slots are the prior."""
    lengths.prior[0], lengths.prior[1] = product(family.base, family.base), family.precision
    for k in range(lengths.squares.size):
        lengths.squares[k], lengths.precisions[k] = lengths.prior[0], lengths.prior[1]
        lengths.made[k] = NEVER_MADE
    for k in range(n_clusters):
        update(lengths, family, table, masses, k)
    forget(lengths)


@entry
def fill_norms(values: Any, out: Floats) -> None:
    """Fill `out` with the lengths of rows: row by row, so that no batch rounds differently."""
    for i in range(out.size):
        total = 0.0
        for j in range(values.shape[1]):
            x = np.float64(values[i, j])
            total += x * x
        out[i] = math.sqrt(total)


@inner
def exact_score(
    lengths: Lengths, family: Any, k: int, square: float, dot: float, work: Any
) -> float:
    """Return log p(x | cluster k) of a row with this squared length and eta . x."""
    fill_pairs(family, lengths.squares[k], lengths.precisions[k], dot, square, work[:WORK])
    return log_sum(work, SCALES)


@inner
def remember(work: Any, i: int, k: int, total: float) -> None:
    """Keep the scores of row i in cluster k, found last: it is likely to be added there."""
    for g in range(SCALES):
        work[work.size - REMEMBERED + g] = work[g]
    work[work.size - 3], work[work.size - 2], work[work.size - 1] = total, k, i


@specialize(score, Lengths, inline=True)
def _score(  # type: ignore[no-untyped-def]
    lengths, family, clusters, rows, i, weights, rule, log_cut, most, scratch
):
    """Bound all clusters and score those that may be wanted, the one with the top line first.

    Slot K is the prior, so the new cluster is scored as all others are.
    """
    K, work, table = clusters.counters[N_CLUSTERS], scratch.entries, clusters.table
    x, bounds = work[WORK : work.size - REMEMBERED], scratch.bounds
    fill_row(family, rows, i, x)
    square, ahead = product(x, x), product(family.base, x)
    new = log_weight(rule.new, rule)
    new += exact_score(lengths, family, K, square, ahead, work)
    best, leader, leading, screens = new, -1, -np.inf, log_cut > -np.inf and K >= FEWEST
    if screens:
        leader = multiplied(lengths, family, clusters, rows, i, square, ahead, scratch)
        leading = log_weight(weights[leader] - rule.discount, rule)
        dot = ahead + product_with(table, leader, x)
        total = exact_score(lengths, family, leader, square, dot, work)
        leading += total
        remember(work, i, leader, total)
        best = max(best, leading)
        bound(lengths, K, scratch)
    more, found = LOG_SCALES - rule.log_total + MARGIN, 0
    for k in range(K):
        exact = leading
        if k != leader:
            if screens:
                if bounds[k] + more < best + log_cut:
                    continue
                top = height(lengths, k, scratch.products[k]) + lengths.log_masses[k]
                if top + more < best + log_cut:
                    continue
            exact = log_weight(weights[k] - rule.discount, rule)
            dot = ahead + product_with(table, k, x)
            exact += exact_score(lengths, family, k, square, dot, work)
            best = max(best, exact)
        scratch.slots[found], scratch.log_scores[found] = k, exact
        found += 1
    scratch.slots[found], scratch.log_scores[found] = K, new
    return found + 1


@inner
def contribute(
    family: Any, table: Table, rows: Vectors, i: int, k: int, work: Any, line: Any
) -> None:
    """Fill `line` with the probabilities of every scale, and the row times the mean scale.

    A row that was scored just before is in the working space, perhaps with its scores in k.
    """
    pairs, x = work[:WORK], work[WORK : work.size - REMEMBERED]
    if work[work.size - 1] == i and work[work.size - 2] == k:
        pairs, log_p = work[work.size - REMEMBERED :], work[work.size - 3]
    else:
        fill_row(family, rows, i, x)
        dot = product(family.base, x) + product_with(table, k, x)
        squares, precision = square_of(family, table, k), precision_of(family, table, k)
        fill_pairs(family, squares, precision, dot, product(x, x), pairs)
        log_p = log_sum(pairs, SCALES)
    mean = 0.0
    for g in range(SCALES):
        line[g] = math.exp(pairs[g] - log_p)
        mean += line[g] * family.grid[g]
    for j in range(x.size):
        line[SCALES + j] = mean * x[j]


@specialize(log_predictive_of, Directions)
@specialize(log_predictive_of, Scales)
def _log_predictive_of(family, table, rows, i, k, work):  # type: ignore[no-untyped-def]
    x = work[WORK : work.size - REMEMBERED]
    fill_row(family, rows, i, x)
    dot = product(family.base, x) + product_with(table, k, x)
    squares, precision = square_of(family, table, k), precision_of(family, table, k)
    fill_pairs(family, squares, precision, dot, product(x, x), work[:WORK])
    return log_sum(work, SCALES)


@specialize(log_predictive_of_new, Directions)
@specialize(log_predictive_of_new, Scales)
def _log_predictive_of_new(family, rows, i):  # type: ignore[no-untyped-def]
    pairs, x = np.empty(WORK), np.empty(rows.values.shape[1])
    fill_row(family, rows, i, x)
    squares, dot = product(family.base, family.base), product(family.base, x)
    fill_pairs(family, squares, family.precision, dot, product(x, x), pairs)
    return log_sum(pairs, SCALES)


@specialize(contribution_of, Directions)
def _contribute_directions(  # type: ignore[no-untyped-def]
    family, table, rows, i, k, entries, line
):
    contribute(family, table, rows, i, k, entries, line)


@specialize(contribution_of, Scales)
def _contribute_scales(family, table, rows, i, k, entries, line):  # type: ignore[no-untyped-def]
    contribute(family, table, rows, i, k, entries, line)


@specialize(add_line, Lengths)
def _add_line(  # type: ignore[no-untyped-def]
    lengths, family, clusters, rows, i, k, q, line, entries
):
    clusters.masses[k] += q
    start = clusters.table.starts[k]
    values = clusters.table.values[start : start + line.size]
    for j in range(line.size):
        values[j] += q * line[j]
    note(lengths, family, i, k, q, line)
    update(lengths, family, clusters.table, clusters.masses, k)


@specialize(take_out_line, Lengths)
def _take_out_line(  # type: ignore[no-untyped-def]
    lengths, family, clusters, rows, i, k, share, line, entries
):
    clusters.masses[k] = max(clusters.masses[k] - share, 0.0)
    start = clusters.table.starts[k]
    values = clusters.table.values[start : start + line.size]
    for j in range(line.size):
        after = values[j] - share * line[j]
        values[j] = 0.0 if abs(after) <= ROUNDING * abs(values[j]) else after
    note(lengths, family, i, k, -share, line)
    update(lengths, family, clusters.table, clusters.masses, k)


@specialize(move_cluster, Lengths)
def _move_cluster(lengths, clusters, k, last):  # type: ignore[no-untyped-def]
    take_row(clusters.table, k, last)
    clusters.masses[k] = clusters.masses[last]
    lengths.squares[k], lengths.precisions[k] = lengths.squares[last], lengths.precisions[last]
    lengths.squares[last], lengths.precisions[last] = lengths.prior[0], lengths.prior[1]
    lengths.radii[k], lengths.log_masses[k] = lengths.radii[last], lengths.log_masses[last]
    for v in range(LINES):
        lengths.constants[v, k] = lengths.constants[v, last]
        lengths.slopes[v, k] = lengths.slopes[v, last]
    for t in range(LEVELS):
        lengths.levels[t, k] = lengths.levels[t, last]
        lengths.heights[t, k] = lengths.heights[t, last]
    lengths.leading[0, k] = lengths.leading[0, last]
    lengths.leading[1, k] = lengths.leading[1, last]
    lengths.made[k], lengths.made[last] = lengths.made[last], NEVER_MADE
    forget(lengths)
