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
LANES = 16
"""Sweeps over clusters are a multiple of this wide, so that no scalar remainder is left; the
capacity is a multiple of it too."""
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
def multiply_one(mantissas: Floats, base: float, row: Floats, width: int) -> None:
    """Multiply one token's factor into every cluster's product."""
    for k in range(width):
        mantissas[k] *= base + row[k]


@njit(cache=True)
def multiply_four(
    mantissas: Floats, table: Floats, words: Any, j: int, alpha: Floats, stride: int, width: int
) -> None:
    """Multiply the first tokens of words j..j+3 into every cluster's product.

    One load and store of the products for four rows of the table.
    """
    w0, w1, w2, w3 = words[j], words[j + 1], words[j + 2], words[j + 3]
    b0, b1, b2, b3 = (
        alpha[w0 * stride],
        alpha[w1 * stride],
        alpha[w2 * stride],
        alpha[w3 * stride],
    )
    r0, r1, r2, r3 = table[w0], table[w1], table[w2], table[w3]
    for k in range(width):
        mantissas[k] *= ((b0 + r0[k]) * (b1 + r1[k])) * ((b2 + r2[k]) * (b3 + r3[k]))


@specialize(add_log_predictive, DirichletMultinomialParameters)
def _dirichlet_multinomial(likelihood, clusters, rows, i, scratch):  # type: ignore[no-untyped-def]
    """Score document i: a product over its tokens, one logarithm a cluster.

    The last entry of a row is the document's length N, in the column of totals; the others are
    words. The numerator prod_w prod_{j < x_w} (alpha_w + S_kw + j) is kept as mantissa and
    exponent, so it needs no logarithm until the end. Stored word-major, one word's clusters
    lie side by side, and the first tokens of four words are one vectorised sweep over four
    contiguous rows: what is read is what the memory floor reads. Words that occur again find
    their rows in the cache. Free slots are zero, so sweeps are as wide as whole vectors.
    """
    slots = clusters.counters[N_CLUSTERS] + 1
    width = (slots + LANES - 1) // LANES * LANES
    table, alpha = clusters.statistics.T, likelihood.alpha
    mantissas, exponents, log_scores = scratch.mantissas, scratch.exponents, scratch.log_scores
    stride = 0 if alpha.size == 1 else 1
    mantissas[:width] = 1.0
    exponents[:width] = np.uint64(0)
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    fours = first + (last - first) // 4 * 4
    moves, since = 0, 0
    for j in range(first, fours, 4):
        multiply_four(mantissas, table, rows.indices, j, alpha, stride, width)
        since += 4
        if since == RENORMALIZE_EVERY:
            move_exponents(mantissas, exponents, width)
            since, moves = 0, moves + 1
    for j in range(first, last):
        word, count = rows.indices[j], rows.values[j]
        done = 1.0 if j < fours else 0.0
        if count - done >= LONG_RUN:
            for k in range(slots):
                base = alpha[word * stride] + table[word, k]
                log_scores[k] += log_rising(base + done, count - done)
            continue
        while done < count:
            multiply_one(mantissas, alpha[word * stride] + done, table[word], width)
            done, since = done + 1.0, since + 1
            if since >= RENORMALIZE_EVERY:
                move_exponents(mantissas, exponents, width)
                since, moves = 0, moves + 1
    move_exponents(mantissas, exponents, width)
    add_logs(mantissas, exponents, moves + 1, 1.0, log_scores, width)
    length, lengths, x = rows.values[last], table[rows.indices[last]], scratch.responsibilities
    smallest = np.inf
    for k in range(width):
        x[k] = likelihood.total + lengths[k]
    for k in range(slots):
        smallest = min(smallest, x[k])
    if smallest >= max(STIRLING_FROM, length / SERIES_UP_TO):
        subtract_log_rising(x, length, log_scores, width, mantissas, exponents)
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
