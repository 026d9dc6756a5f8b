"""The step that every algorithm shares, compiled.

Twins: ``mixture.predict`` (`log_joint`), ``inference.response`` (`respond`) and
``MixtureState.add`` (`absorb`).
"""

import math
from typing import Any

import numpy as np
from numba import njit

from bnpstream.kernels.arrays import (
    LOG_AUXILIARY,
    N_CLUSTERS,
    NEXT_ID,
    NO_MASS,
    TOTAL_MASS,
    Clusters,
    Floats,
    Options,
    Scratch,
    SparseRows,
    make_scratch,
)
from bnpstream.kernels.likelihoods import add_log_predictive, add_sparse_row
from bnpstream.kernels.priors import log_prior_weights

LARGEST_BELOW_ONE = 1.0 - 2.0**-53
"""q = 1 is common; its log vacancy would be -inf, which nothing could be subtracted from."""

make_scratch_compiled = njit(cache=True)(make_scratch)


@njit(cache=True)
def log_joint(
    prior: Any, likelihood: Any, clusters: Clusters, rows: Any, i: int, scratch: Scratch
) -> float:
    """Fill scratch.log_scores[:K + 1] with log weight + log predictive; return log auxiliary.

    Where no row is left behind the posterior, the next one opens a cluster.
    """
    if clusters.totals[TOTAL_MASS] > NO_MASS:
        log_auxiliary = log_prior_weights(prior, clusters, scratch.log_scores)
    else:
        log_auxiliary = clusters.totals[LOG_AUXILIARY]
        new = clusters.counters[N_CLUSTERS]
        scratch.log_scores[:new] = -np.inf
        scratch.log_scores[new] = 0.0
    add_log_predictive(likelihood, clusters, rows, i, scratch)
    return log_auxiliary


@njit(cache=True)
def respond(slots: int, options: Options, scratch: Scratch) -> tuple[float, bool]:
    """Turn scratch.log_scores into responsibilities; return log evidence and whether to open.

    Eq. (15) over the candidates that pass the cut. Without opening, the responsibilities are
    normalised over the existing clusters only and the new one's is zero.
    """
    log_scores, responsibilities = scratch.log_scores, scratch.responsibilities
    best = -np.inf
    for k in range(slots):
        best = max(best, log_scores[k])
    floor = best + options.log_min_responsibility
    old = 0.0
    for k in range(slots - 1):
        kept = log_scores[k] >= floor
        responsibilities[k] = math.exp(log_scores[k] - best) if kept else 0.0
        old += responsibilities[k]
    new = math.exp(log_scores[slots - 1] - best) if log_scores[slots - 1] >= floor else 0.0
    total = old + new
    opens = new > options.new_cluster_threshold * total
    responsibilities[slots - 1] = new if opens else 0.0
    normalizer = total if opens else old
    for k in range(slots):
        responsibilities[k] /= normalizer
    return best + math.log(total), opens


@njit(cache=True)
def absorb(clusters: Clusters, rows: SparseRows, i: int, opens: bool, q: Floats) -> int:
    """Add row i with responsibilities q to the posterior, Eq. (18); return the likeliest slot."""
    if opens:
        slot = clusters.counters[N_CLUSTERS]
        clusters.ids[slot] = clusters.counters[NEXT_ID]
        clusters.counters[NEXT_ID] += 1
        clusters.counters[N_CLUSTERS] += 1
    likeliest = 0
    for k in range(clusters.counters[N_CLUSTERS]):
        if q[k] > 0.0:
            add_sparse_row(clusters, rows, i, k, q[k])
            clusters.masses[k] += q[k]
            clusters.log_vacancy[k] += math.log1p(-min(q[k], LARGEST_BELOW_ONE))
        if q[k] > q[likeliest]:
            likeliest = k
    clusters.totals[TOTAL_MASS] += 1.0
    return likeliest


@njit(cache=True)
def log_predictive_rows(likelihood: Any, clusters: Clusters, rows: SparseRows, out: Floats) -> None:
    """Fill out[i, :K + 1] with the log predictive of every row, log h(x) included."""
    slots = clusters.counters[N_CLUSTERS] + 1
    scratch = make_scratch_compiled(clusters.masses.size)
    for i in range(rows.log_base.size):
        scratch.log_scores[:slots] = rows.log_base[i]
        add_log_predictive(likelihood, clusters, rows, i, scratch)
        out[i] = scratch.log_scores[:slots]
