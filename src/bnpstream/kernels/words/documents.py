"""Documents: the loops over rows for counts of words (see ``kernels.passes.kinds``)."""

import numpy as np

from bnpstream.kernels.arrays import N_CLUSTERS, ROUNDING, SparseRows
from bnpstream.kernels.arrays import make_scratch as make_document_scratch
from bnpstream.kernels.jit.decorators import inner
from bnpstream.kernels.jit.dispatch import specialize
from bnpstream.kernels.measures.rules import log_weight
from bnpstream.kernels.passes.kinds import (
    add_line,
    add_row,
    make_scratch,
    move_cluster,
    n_columns,
    score,
    take_out_line,
    take_out_row,
)
from bnpstream.kernels.statistics.table import claim, locate, take_row
from bnpstream.kernels.words.dirichlet import log_predictive_of, log_predictive_of_new
from bnpstream.kernels.words.levels import LANES, Screen
from bnpstream.kernels.words.screen import (
    any_above,
    bound,
    clear_cluster,
    fill_cluster,
    is_screened,
    lead,
    update_levels,
    weigh_cluster,
)

MARGIN = 1e-6
"""Nats that bounds are given for the rounding of scores."""
LEADERS, MOST_LEADERS = 4, 64
"""Clusters that are scored first, where any number may be wanted, and where few are."""

allocate = inner(make_document_scratch)


@specialize(n_columns, SparseRows, inline=True)
def _n_columns(rows, i):  # type: ignore[no-untyped-def]
    return rows.indptr[i + 1] - rows.indptr[i]


@specialize(make_scratch, SparseRows)
def _make_scratch(rows, start, stop, capacity):  # type: ignore[no-untyped-def]
    longest = 0
    for i in range(start, stop):
        longest = max(longest, rows.indptr[i + 1] - rows.indptr[i])
    return allocate(capacity, longest)


@specialize(score, Screen, inline=True)
def _score(  # type: ignore[no-untyped-def]
    screen, likelihood, clusters, rows, i, weights, rule, log_cut, most, scratch
):
    """Bound all clusters by the screen, and score those that it cannot rule out.

    The leaders, those with the largest bounds, come first. What is bound to be below the cut, or
    below the worst of `most` clusters, is not wanted; and if the weakest leader is not, no other
    cluster is.
    """
    K, bounds, table, entries = (
        clusters.counters[N_CLUSTERS],
        scratch.bounds,
        clusters.table,
        scratch.entries,
    )
    leaders, leader_scores = scratch.leaders, scratch.leader_scores
    predictive = log_predictive_of_new(likelihood, rows, i)
    new = log_weight(rule.new, rule) + predictive
    best, worst, last, n_leaders = new, -np.inf, np.inf, 0
    if is_screened(screen, rows, i) and (log_cut > -np.inf or most < K) and K > 0:
        bound(screen, rows, i, K, predictive - rule.log_total, scratch)
        n_leaders = min(K, most if most <= MOST_LEADERS else LEADERS)
        last = lead(bounds, K, n_leaders, leaders)
        top = 0
        for c in range(1, n_leaders):
            if bounds[leaders[c]] > bounds[leaders[top]]:
                top = c
        least, n_scored = np.inf, 0
        for d in range(n_leaders):
            c = top if d == 0 else d - 1 if d <= top else d
            k, exact = leaders[c], -np.inf
            if d == 0 or bounds[k] >= best + log_cut - MARGIN:
                exact = log_weight(weights[k] - rule.discount, rule)
                exact += log_predictive_of(likelihood, table, rows, i, k, entries)
                best, least = max(best, exact), min(least, exact)
                n_scored += 1
            leader_scores[c] = exact
        if n_scored == most:
            worst = least
    else:
        bounds[:K] = np.inf
    found, c = 0, 0
    if n_leaders == K or last < max(best + log_cut, worst) - MARGIN:
        for c in range(n_leaders):
            if leader_scores[c] > -np.inf:
                scratch.slots[found], scratch.log_scores[found] = leaders[c], leader_scores[c]
                found += 1
    else:
        for start in range(0, K, LANES):
            stop, wanted = min(start + LANES, K), max(best + log_cut, worst) - MARGIN
            led = c < n_leaders and leaders[c] < stop
            if n_leaders > 0 and not led and not any_above(bounds, start, wanted):
                continue
            for k in range(start, stop):
                exact = -np.inf
                if c < n_leaders and leaders[c] == k:
                    exact = leader_scores[c]
                    c += 1
                elif bounds[k] > max(best + log_cut, worst) - MARGIN:
                    exact = log_weight(weights[k] - rule.discount, rule)
                    exact += log_predictive_of(likelihood, table, rows, i, k, entries)
                    best = max(best, exact)
                if exact > -np.inf:
                    scratch.slots[found], scratch.log_scores[found] = k, exact
                    found += 1
    scratch.slots[found], scratch.log_scores[found] = K, new
    return found + 1


@specialize(add_row, Screen, inline=True)
def _add_row(screen, likelihood, clusters, rows, i, k, q, entries):  # type: ignore[no-untyped-def]
    table = clusters.table
    clusters.masses[k] += q
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    columns, x, values = rows.indices, rows.values, table.values
    claim(table, k, columns, first, last + 1, entries)
    for j in range(last + 1 - first):
        values[entries[j]] += q * x[first + j]
    if screen.levels.shape[0] > 0:
        update_levels(screen, rows, i, k, values, entries)
        weigh_cluster(screen, k, clusters.masses[k], values[entries[last - first]])


@specialize(take_out_row, Screen)
def _take_out_row(  # type: ignore[no-untyped-def]
    screen, likelihood, clusters, rows, i, k, share, entries
):
    table = clusters.table
    clusters.masses[k] = max(clusters.masses[k] - share, 0.0)
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    columns, x, values = rows.indices, rows.values, table.values
    locate(table, k, columns, first, last + 1, entries)
    for j in range(last + 1 - first):
        before = values[entries[j]]
        after = before - share * x[first + j]
        values[entries[j]] = 0.0 if abs(after) <= ROUNDING * abs(before) else after
    if screen.levels.shape[0] > 0:
        update_levels(screen, rows, i, k, values, entries)
        weigh_cluster(screen, k, clusters.masses[k], values[entries[last - first]])


@specialize(add_line, Screen)
def _add_line(  # type: ignore[no-untyped-def]
    screen, likelihood, clusters, rows, i, k, q, line, entries
):
    clusters.masses[k] += q
    values = clusters.table.values
    claim(clusters.table, k, rows.indices, rows.indptr[i], rows.indptr[i + 1], entries)
    for j in range(line.size):
        values[entries[j]] += q * line[j]
    if screen.levels.shape[0] > 0:
        update_levels(screen, rows, i, k, values, entries)
        weigh_cluster(screen, k, clusters.masses[k], values[entries[line.size - 1]])


@specialize(take_out_line, Screen)
def _take_out_line(  # type: ignore[no-untyped-def]
    screen, likelihood, clusters, rows, i, k, share, line, entries
):
    clusters.masses[k] = max(clusters.masses[k] - share, 0.0)
    values = clusters.table.values
    locate(clusters.table, k, rows.indices, rows.indptr[i], rows.indptr[i + 1], entries)
    for j in range(line.size):
        before = values[entries[j]]
        after = before - share * line[j]
        values[entries[j]] = 0.0 if abs(after) <= ROUNDING * abs(before) else after
    if screen.levels.shape[0] > 0:
        update_levels(screen, rows, i, k, values, entries)
        weigh_cluster(screen, k, clusters.masses[k], values[entries[line.size - 1]])


@specialize(move_cluster, Screen)
def _move_cluster(screen, clusters, k, last):  # type: ignore[no-untyped-def]
    screened = screen.levels.shape[0] > 0
    if screened:
        clear_cluster(screen, clusters.table, k)
        clear_cluster(screen, clusters.table, last)
    take_row(clusters.table, k, last)
    clusters.masses[k] = clusters.masses[last]
    if screened and k != last:
        fill_cluster(screen, clusters.table, clusters.masses, k)
