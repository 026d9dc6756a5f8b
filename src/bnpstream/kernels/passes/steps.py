"""The step that every algorithm shares, compiled.

Twins: ``mixture.predict`` (`log_joint`) and ``inference.response`` (`respond`).
"""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.arrays import (
    LOG_AUXILIARY,
    N_CLUSTERS,
    NO_LIMIT,
    NO_MASS,
    TOTAL_MASS,
    Clusters,
    Floats,
    Options,
)
from bnpstream.kernels.jit.decorators import entry, inlined, inner
from bnpstream.kernels.measures.rules import Rule, rule_of
from bnpstream.kernels.passes.kinds import make_scratch, n_columns, score
from bnpstream.kernels.statistics.table import Table, grow_row, has_room
from bnpstream.kernels.words.dirichlet import log_predictive_of, log_predictive_of_new

LARGEST_BELOW_ONE = 1.0 - 2.0**-53
"""q = 1 is common; its log vacancy would be -inf, which nothing could be subtracted from."""
NEGLIGIBLE = -45.0
"""exp(-45) is 3e-20: ten thousand such weights do not change a double that is at least one."""


@inlined
def weigh(prior: Any, clusters: Clusters, space: Any) -> Rule:
    """Return the prior's rule; where no row is left, the next one opens."""
    if clusters.totals[TOTAL_MASS] > NO_MASS:
        return rule_of(prior, clusters, space)
    return Rule(np.inf, 1.0, 0.0, clusters.totals[LOG_AUXILIARY])


@inner
def limit(log_scores: Floats, n: int, most: int, work: Floats) -> tuple[float, int]:
    """Return the score that the `most` best of n > `most` are not below, and how many are at it.

    Work holds the best so far, descending.
    """
    filled = 0
    for c in range(n):
        at = min(filled, most - 1)
        if filled == most and not log_scores[c] > work[at]:
            continue
        while at > 0 and work[at - 1] < log_scores[c]:
            work[at] = work[at - 1]
            at -= 1
        work[at] = log_scores[c]
        filled = min(filled + 1, most)
    least, level = work[most - 1], 0
    for at in range(most):
        level += work[at] == least
    return least, level


@inlined
def respond(candidates: int, options: Options, scratch: Any) -> tuple[int, float, bool, float]:
    """Turn candidates into responsibilities.

    Return how many are left, log evidence, opening, and the new cluster's responsibility.

    Eq. (15) over the candidates that pass the cut, and of existing clusters the best of these: of
    equal ones those in the first slots. Without opening, the responsibilities are normalised over
    the existing clusters only and the new one is left out.
    """
    slots, log_scores, shares = scratch.slots, scratch.log_scores, scratch.shares
    best, last = -np.inf, candidates - 1
    for c in range(candidates):
        best = max(best, log_scores[c])
    floor = best + options.log_min_responsibility
    new = math.exp(log_scores[last] - best) if log_scores[last] >= floor else 0.0
    level = candidates
    if last > options.most_responsibilities:
        least, at_least = limit(log_scores, last, options.most_responsibilities, shares)
        if least >= floor:
            floor, level = least, at_least
    old, kept = 0.0, 0
    for c in range(last):
        if log_scores[c] > floor or (log_scores[c] == floor and level > 0):
            level -= log_scores[c] == floor
            share = math.exp(log_scores[c] - best)
            old += share
            slots[kept], shares[kept] = slots[c], share
            kept += share > 0.0
    total = old + new
    opens = new > options.new_cluster_threshold * total
    if opens:
        slots[kept], shares[kept] = slots[last], new
        kept += 1
    normalizer = total if opens else old
    for c in range(kept):
        shares[c] /= normalizer
    unseen = math.exp(log_scores[last] - best)  # also where the cut takes it for none
    return kept, best + math.log(total), opens, unseen / (old + unseen)


@inlined
def fits(table: Table, rows: Any, i: int, slots: Any, kept: int) -> bool:
    """Return whether row i can be added to `kept` clusters as they are stored."""
    columns = n_columns(rows, i)
    room = True
    for c in range(kept):
        room = room and has_room(table, slots[c], columns)
    return room


@inner
def make_fit(table: Table, rows: Any, i: int, slots: Any, kept: int) -> int:
    """Make room for row i in the clusters that it is added to; return 0.

    Where the table has no space, return how many entries are wanted (`lengthened`).
    """
    columns, wanted = n_columns(rows, i), 0
    for c in range(kept):
        if wanted == 0 and not has_room(table, slots[c], columns):
            wanted = grow_row(table, slots[c], columns)
    return wanted


@entry
def log_joint_rows(
    likelihood: Any,
    clusters: Clusters,
    cache: Any,
    rows: Any,
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
    scratch = make_scratch(rows, start, stop, clusters.masses.size)
    for i in range(start, stop):
        found = score(
            cache, likelihood, clusters, rows, i, weights, rule, log_cut, NO_LIMIT, scratch
        )
        out[i] = -np.inf
        for c in range(found):
            out[i, scratch.slots[c]] = rows.log_base[i] + scratch.log_scores[c]


@entry
def log_joint_pairs(
    likelihood: Any, clusters: Clusters, rows: Any, log_weights: Floats, wanted: Any, out: Floats
) -> None:
    """Fill out[wanted] with log(weight x predictive) of rows whose scores need no cache."""
    new = clusters.counters[N_CLUSTERS]
    scratch = make_scratch(rows, 0, len(out), clusters.masses.size)
    for i in range(len(out)):
        for k in range(new):
            if wanted[i, k]:
                predictive = log_predictive_of(
                    likelihood, clusters.table, rows, i, k, scratch.entries
                )
                out[i, k] = log_weights[k] + predictive + rows.log_base[i]
        if wanted[i, new]:
            predictive = log_predictive_of_new(likelihood, rows, i)
            out[i, new] = log_weights[new] + predictive + rows.log_base[i]
