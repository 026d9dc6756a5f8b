"""One sweep of the collapsed Gibbs sampler, compiled (twin: ``bnpstream.inference.gibbs``)."""

import math
from typing import Any

from bnpstream.kernels.arrays import (
    GONE,
    N_CLUSTERS,
    NEXT_ID,
    NO_LIMIT,
    TOTAL_MASS,
    Clusters,
    Floats,
    Integers,
)
from bnpstream.kernels.jit.decorators import entry, inner
from bnpstream.kernels.measures.rules import make_space, weights_of
from bnpstream.kernels.passes.kinds import add_row, make_scratch, score, take_out_row
from bnpstream.kernels.passes.steps import (
    NEGLIGIBLE,
    fits,
    make_fit,
    weigh,
)
from bnpstream.kernels.passes.visits import drop


@inner
def draw(candidates: int, uniform: float, scratch: Any) -> int:
    """Return the slot at quantile `uniform` of the candidates' distribution."""
    log_scores = scratch.log_scores
    best = log_scores[:candidates].max()
    total = 0.0
    for c in range(candidates):
        total += math.exp(log_scores[c] - best)
    target, reached = uniform * total, 0.0
    for c in range(candidates):
        reached += math.exp(log_scores[c] - best)
        if reached > target:
            return scratch.slots[c]
    return scratch.slots[candidates - 1]


@entry
def sweep(
    prior: Any,
    likelihood: Any,
    clusters: Clusters,
    cache: Any,
    rows: Any,
    assignments: Integers,
    uniforms: Floats,
    reached: Integers,
) -> int:
    """Reassign rows from reached[0] on, the next one at last; fewer if room runs out.

    Return the entries that the table has to be `lengthened` by, or 0. A row that waits for that has
    been taken out, its assignment is GONE.
    """
    capacity, n, start = clusters.masses.size, assignments.size, reached[0]
    scratch, space = make_scratch(rows, start, n, capacity), make_space(prior, capacity)
    weights = weights_of(prior, clusters, space)
    for i in range(start, n):
        reached[0] = i
        if clusters.counters[N_CLUSTERS] + 1 == capacity:
            return 0
        old = assignments[i]
        if old != GONE:
            take_out_row(cache, likelihood, clusters, rows, i, old, 1.0, scratch.entries)
            assignments[i] = GONE
            clusters.totals[TOTAL_MASS] -= 1.0
            if clusters.masses[old] < 0.5:
                moved = drop(clusters, cache, old)
                for j in range(n):
                    if assignments[j] == moved:
                        assignments[j] = old
        rule = weigh(prior, clusters, space)
        candidates = score(
            cache, likelihood, clusters, rows, i, weights, rule, NEGLIGIBLE, NO_LIMIT, scratch
        )
        scratch.slots[0] = draw(candidates, uniforms[i], scratch)
        if not fits(clusters.table, rows, i, scratch.slots, 1):
            wanted = make_fit(clusters.table, rows, i, scratch.slots, 1)
            if wanted > 0:
                return wanted
        chosen = scratch.slots[0]
        if chosen == clusters.counters[N_CLUSTERS]:
            clusters.ids[chosen] = clusters.counters[NEXT_ID]
            clusters.counters[NEXT_ID] += 1
            clusters.counters[N_CLUSTERS] += 1
        add_row(cache, likelihood, clusters, rows, i, chosen, 1.0, scratch.entries)
        clusters.totals[TOTAL_MASS] += 1.0
        assignments[i] = chosen
    reached[0] = n
    return 0
