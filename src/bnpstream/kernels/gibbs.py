"""One sweep of the collapsed Gibbs sampler, compiled (twin: ``bnpstream.inference.gibbs``)."""

import math
from typing import Any

import numpy as np
from numba import njit

from bnpstream.kernels.adf import log_joint, make_scratch_compiled
from bnpstream.kernels.arrays import (
    N_CLUSTERS,
    NEXT_ID,
    TOTAL_MASS,
    Clusters,
    Floats,
    Integers,
    SparseRows,
)
from bnpstream.kernels.likelihoods import add_sparse_row
from bnpstream.kernels.visits import drop


@njit(cache=True)
def move(clusters: Clusters, rows: SparseRows, i: int, k: int, sign: float) -> None:
    """Add row i to cluster k, or take it out."""
    add_sparse_row(clusters, rows, i, k, sign)
    clusters.masses[k] += sign
    clusters.totals[TOTAL_MASS] += sign


@njit(cache=True)
def draw(log_scores: Floats, slots: int, uniform: float) -> int:
    """Return the slot at quantile `uniform` of the distribution with these log scores."""
    best = -np.inf
    for k in range(slots):
        best = max(best, log_scores[k])
    total = 0.0
    for k in range(slots):
        total += math.exp(log_scores[k] - best)
    target, reached = uniform * total, 0.0
    for k in range(slots):
        reached += math.exp(log_scores[k] - best)
        if reached > target:
            return k
    return slots - 1


@njit(cache=True)
def sweep(
    prior: Any,
    likelihood: Any,
    clusters: Clusters,
    rows: SparseRows,
    assignments: Integers,
    uniforms: Floats,
    start: int,
) -> int:
    """Reassign rows from `start` on, or fewer if the slots run out; return the next row."""
    capacity = clusters.masses.size
    scratch = make_scratch_compiled(capacity)
    for i in range(start, assignments.size):
        if clusters.counters[N_CLUSTERS] + 1 == capacity:
            return i
        old = assignments[i]
        move(clusters, rows, i, old, -1.0)
        if clusters.masses[old] < 0.5:
            moved = drop(clusters, old)
            for j in range(assignments.size):
                if assignments[j] == moved:
                    assignments[j] = old
        slots = clusters.counters[N_CLUSTERS] + 1
        log_joint(prior, likelihood, clusters, rows, i, scratch)
        chosen = draw(scratch.log_scores, slots, uniforms[i])
        if chosen == slots - 1:
            clusters.ids[chosen] = clusters.counters[NEXT_ID]
            clusters.counters[NEXT_ID] += 1
            clusters.counters[N_CLUSTERS] += 1
        move(clusters, rows, i, chosen, 1.0)
        assignments[i] = chosen
    return assignments.size
