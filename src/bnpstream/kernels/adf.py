"""The step that every algorithm shares, compiled.

Twins: ``mixture.predict`` (`log_joint`), ``inference.response`` (`respond`) and
``MixtureState.add`` (`absorb`).
"""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.arrays import (
    LOG_AUXILIARY,
    N_CLUSTERS,
    NEXT_ID,
    NO_MASS,
    ROUNDING,
    TOTAL_MASS,
    Clusters,
    Floats,
    Options,
    Scratch,
    SparseRows,
    make_scratch,
)
from bnpstream.kernels.compiling import entry, inlined, inner
from bnpstream.kernels.levels import Screen
from bnpstream.kernels.likelihoods import log_predictive_of, log_predictive_of_new
from bnpstream.kernels.priors import Rule, log_weight, rule_of
from bnpstream.kernels.screen import (
    bound,
    is_screened,
    update_levels,
    weigh_cluster,
)
from bnpstream.kernels.table import Table, claim, has_room, locate, with_room

LARGEST_BELOW_ONE = 1.0 - 2.0**-53
"""q = 1 is common; its log vacancy would be -inf, which nothing could be subtracted from."""
MARGIN = 1e-6
"""Nats that bounds are given for the rounding of scores."""

NEGLIGIBLE = -45.0
"""exp(-45) is 3e-20: ten thousand such weights do not change a double that is at least one."""

make_scratch_compiled = inner(make_scratch)


@inner
def longest_row(rows: SparseRows, start: int, stop: int) -> int:
    """Return the number of entries of the longest of some rows."""
    longest = 0
    for i in range(start, stop):
        longest = max(longest, rows.indptr[i + 1] - rows.indptr[i])
    return longest


@inlined
def weigh(prior: Any, clusters: Clusters) -> Rule:
    """Return the prior's rule; where no row is left behind the posterior, the next one opens."""
    if clusters.totals[TOTAL_MASS] > NO_MASS:
        return rule_of(prior, clusters)
    return Rule(np.inf, 1.0, 0.0, clusters.totals[LOG_AUXILIARY])


@inlined
def score(
    likelihood: Any,
    clusters: Clusters,
    screen: Screen,
    rows: Any,
    i: int,
    weights: Floats,
    rule: Rule,
    log_cut: float,
    scratch: Scratch,
) -> int:
    """Score the clusters that may come within `log_cut` of the best; return how many.

    Fills scratch.slots and scratch.log_scores, ascending, the new cluster last. The screen says
    which clusters need no exact score; it takes it that `weights`, of which the rule takes its
    discount, are not larger than the masses.
    """
    K, bounds, table, entries = (
        clusters.counters[N_CLUSTERS],
        scratch.bounds,
        clusters.table,
        scratch.entries,
    )
    predictive = log_predictive_of_new(likelihood, rows, i)
    new = log_weight(rule.new, rule) + predictive
    best, top, top_score = new, -1, -np.inf
    if is_screened(screen, rows, i) and log_cut > -np.inf and K > 0:
        top = bound(screen, rows, i, K, predictive - rule.log_total, scratch)
        top_score = log_weight(weights[top] - rule.discount, rule)
        top_score += log_predictive_of(likelihood, table, rows, i, top, entries)
        best = max(best, top_score)
    else:
        bounds[:K] = np.inf
    found = 0
    for k in range(K):
        if bounds[k] >= best + log_cut - MARGIN:
            exact = top_score
            if k != top:
                exact = log_weight(weights[k] - rule.discount, rule)
                exact += log_predictive_of(likelihood, table, rows, i, k, entries)
            best = max(best, exact)
            scratch.slots[found], scratch.log_scores[found] = k, exact
            found += 1
    scratch.slots[found], scratch.log_scores[found] = K, new
    return found + 1


@inlined
def respond(candidates: int, options: Options, scratch: Scratch) -> tuple[int, float, bool]:
    """Turn candidates into responsibilities; return how many are left, log evidence, opening.

    Eq. (15) over the candidates that pass the cut. Without opening, the responsibilities are
    normalised over the existing clusters only and the new one is left out.
    """
    slots, log_scores, shares = scratch.slots, scratch.log_scores, scratch.shares
    best = log_scores[:candidates].max()
    floor = best + options.log_min_responsibility
    old, kept = 0.0, 0
    for c in range(candidates - 1):
        if log_scores[c] >= floor:
            share = math.exp(log_scores[c] - best)
            old += share
            slots[kept], shares[kept] = slots[c], share
            kept += share > 0.0
    last = candidates - 1
    new = math.exp(log_scores[last] - best) if log_scores[last] >= floor else 0.0
    total = old + new
    opens = new > options.new_cluster_threshold * total
    if opens:
        slots[kept], shares[kept] = slots[last], new
        kept += 1
    normalizer = total if opens else old
    for c in range(kept):
        shares[c] /= normalizer
    return kept, best + math.log(total), opens


@inlined
def add_row(
    clusters: Clusters, screen: Screen, rows: SparseRows, i: int, k: int, q: float, entries: Any
) -> None:
    """Add q times row i to the mass and the statistics of cluster k, Eq. (18)."""
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


@inner
def take_out_row(
    clusters: Clusters, screen: Screen, rows: SparseRows, i: int, k: int, share: float, entries: Any
) -> None:
    """Subtract `share` times row i from cluster k; rounding left of a statistic is zero."""
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


@inlined
def fits(table: Table, rows: SparseRows, i: int, slots: Any, kept: int) -> bool:
    """Return whether row i can be added to `kept` clusters as they are stored."""
    columns = rows.indptr[i + 1] - rows.indptr[i]
    room = True
    for c in range(kept):
        room = room and has_room(table, slots[c], columns)
    return room


@inner
def make_fit(clusters: Clusters, rows: SparseRows, i: int, slots: Any, kept: int) -> Clusters:
    """Return the clusters with room for row i in those that it is added to."""
    table, columns = clusters.table, rows.indptr[i + 1] - rows.indptr[i]
    for c in range(kept):
        if not has_room(table, slots[c], columns):
            table = with_room(table, slots[c], columns)
    return Clusters(
        table,
        clusters.masses,
        clusters.log_vacancy,
        clusters.ids,
        clusters.counters,
        clusters.totals,
    )


@inlined
def absorb(
    clusters: Clusters,
    screen: Screen,
    rows: SparseRows,
    i: int,
    opens: bool,
    kept: int,
    scratch: Scratch,
) -> int:
    """Add row i with its responsibilities to the posterior, Eq. (18); return the likeliest slot."""
    slots, shares = scratch.slots, scratch.shares
    if opens:
        new = clusters.counters[N_CLUSTERS]
        clusters.ids[new] = clusters.counters[NEXT_ID]
        clusters.counters[NEXT_ID] += 1
        clusters.counters[N_CLUSTERS] += 1
    likeliest = 0
    for c in range(kept):
        k, q = slots[c], shares[c]
        add_row(clusters, screen, rows, i, k, q, scratch.entries)
        clusters.log_vacancy[k] += math.log1p(-min(q, LARGEST_BELOW_ONE))
        if q > shares[likeliest]:
            likeliest = c
    clusters.totals[TOTAL_MASS] += 1.0
    return slots[likeliest]


@entry
def log_joint_rows(
    likelihood: Any,
    clusters: Clusters,
    screen: Screen,
    rows: SparseRows,
    weights: Floats,
    rule: Rule,
    log_cut: float,
    start: int,
    stop: int,
    out: Floats,
) -> None:
    """Fill out[start:stop] with log(weight x predictive), log h(x) included, of the candidates.

    What is farther than `log_cut` below the best of its row may be -inf.
    """
    scratch = make_scratch_compiled(clusters.masses.size, longest_row(rows, start, stop))
    for i in range(start, stop):
        found = score(likelihood, clusters, screen, rows, i, weights, rule, log_cut, scratch)
        out[i] = -np.inf
        for c in range(found):
            out[i, scratch.slots[c]] = rows.log_base[i] + scratch.log_scores[c]
