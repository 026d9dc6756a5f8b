"""Predictive scores of a row in every cluster, compiled (twins: ``bnpstream.likelihoods``)."""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bnpstream.kernels.arrays import N_CLUSTERS, ROUNDING, Clusters, Floats, Scratch, SparseRows
from bnpstream.kernels.dispatch import specialize
from bnpstream.kernels.special import (
    SERIES_UP_TO,
    STIRLING_FROM,
    add_logs,
    log_rising,
    move_exponents,
    subtract_log_rising,
)

RENORMALIZE_EVERY = 8
"""A double spans 1e-308 to 1e308: with every factor in [1e-30, 1e30], eight cannot leave it."""
LONG_RUN = 24.0
"""From this count on one log-rising-factorial is cheaper than its factors one by one."""


@singledispatch
def add_log_predictive(
    likelihood: Any, clusters: Clusters, rows: Any, i: int, scratch: Scratch
) -> None:
    """Add log p(x_i | cluster k) without log h(x_i) to scratch.log_scores[:K + 1]."""
    raise TypeError(f"no compiled likelihood for parameters of type {type(likelihood).__name__}")


class DirichletMultinomialParameters(NamedTuple):
    """Parameters of ``bnpstream.likelihoods.DirichletMultinomial``."""

    alpha: Floats
    """(1,) for a symmetric base measure, else (V,)."""
    total: float
    """A = sum_w alpha_w."""


@njit(cache=True)
def multiply_one(mantissas: Floats, base: float, row: Floats, slots: int) -> None:
    """Multiply one token's factor into every cluster's product."""
    for k in range(slots):
        mantissas[k] *= base + row[k]


@njit(cache=True)
def multiply_four(mantissas: Floats, table: Floats, words: Any, bases: Floats, slots: int) -> None:
    """Multiply four tokens' factors into every cluster's product: one load and store for four."""
    r0, r1, r2, r3 = table[words[0]], table[words[1]], table[words[2]], table[words[3]]
    b0, b1, b2, b3 = bases[0], bases[1], bases[2], bases[3]
    for k in range(slots):
        mantissas[k] *= ((b0 + r0[k]) * (b1 + r1[k])) * ((b2 + r2[k]) * (b3 + r3[k]))


@specialize(add_log_predictive, DirichletMultinomialParameters)
def _dirichlet_multinomial(likelihood, clusters, rows, i, scratch):  # type: ignore[no-untyped-def]
    """Score document i: a product over its tokens, one logarithm a cluster.

    The last entry of a row is the document's length N, in the column of totals; the others are
    words. The numerator prod_w prod_{j < x_w} (alpha_w + S_kw + j) is kept as mantissa and
    exponent, so it needs no logarithm until the end. Stored word-major, one word's clusters
    lie side by side, and four tokens at a time are one vectorised sweep over four contiguous
    rows: what is read is what the memory floor reads.
    """
    slots = clusters.counters[N_CLUSTERS] + 1
    table = clusters.statistics.T
    mantissas, exponents, log_scores = scratch.mantissas, scratch.exponents, scratch.log_scores
    words, bases = scratch.words, scratch.bases
    mantissas[:slots] = 1.0
    exponents[:slots] = np.uint64(0)
    stride = 0 if likelihood.alpha.size == 1 else 1
    pending, since, moves = 0, 0, 0
    last = rows.indptr[i + 1] - 1
    for j in range(rows.indptr[i], last):
        word, count = rows.indices[j], rows.values[j]
        base = likelihood.alpha[word * stride]
        if count >= LONG_RUN:
            row = table[word]
            for k in range(slots):
                log_scores[k] += log_rising(base + row[k], count)
            continue
        for repeat in range(int(count)):
            words[pending] = word
            bases[pending] = base + repeat
            pending += 1
            if pending == 4:
                multiply_four(mantissas, table, words, bases, slots)
                pending, since = 0, since + 4
                if since == RENORMALIZE_EVERY:
                    move_exponents(mantissas, exponents, slots)
                    since, moves = 0, moves + 1
    for p in range(pending):
        multiply_one(mantissas, bases[p], table[words[p]], slots)
    move_exponents(mantissas, exponents, slots)
    add_logs(mantissas, exponents, moves + 1, 1.0, log_scores, slots)
    length, lengths, x = rows.values[last], table[rows.indices[last]], scratch.responsibilities
    smallest = np.inf
    for k in range(slots):
        x[k] = likelihood.total + lengths[k]
        smallest = min(smallest, x[k])
    if smallest >= max(STIRLING_FROM, length / SERIES_UP_TO):
        subtract_log_rising(x, length, log_scores, slots, mantissas, exponents)
    else:
        for k in range(slots):
            log_scores[k] -= log_rising(x[k], length)


@njit(cache=True)
def add_sparse_row(clusters: Clusters, rows: SparseRows, i: int, k: int, weight: float) -> None:
    """Add `weight` times row i to the statistics of cluster k."""
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        clusters.statistics[k, rows.indices[j]] += weight * rows.values[j]


@njit(cache=True)
def take_out_sparse_row(clusters: Clusters, rows: SparseRows, i: int, k: int, share: float) -> None:
    """Subtract `share` times row i from the statistics of cluster k; rounding left is zero."""
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        before = clusters.statistics[k, rows.indices[j]]
        after = before - share * rows.values[j]
        if abs(after) <= ROUNDING * abs(before):
            after = 0.0
        clusters.statistics[k, rows.indices[j]] = after
