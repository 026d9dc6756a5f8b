"""Predictive scores of a row in every cluster, compiled (twins: ``bnpstream.likelihoods``)."""

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bnpstream.kernels.arrays import N_CLUSTERS, ROUNDING, Clusters, Floats, Scratch, SparseRows
from bnpstream.kernels.dispatch import specialize
from bnpstream.kernels.special import log_rising

LOG_2 = math.log(2.0)
EXPONENT_BITS = np.uint64(52)
EXPONENT_BIAS = 1023
MANTISSA_MASK = np.uint64((1 << 52) - 1)
ONE_BITS = np.uint64(EXPONENT_BIAS << 52)
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
def multiply_in(mantissas: Floats, base: float, row: Floats, slots: int) -> None:
    """Multiply one token's factor into every cluster's product."""
    for k in range(slots):
        mantissas[k] *= base + row[k]


@njit(cache=True)
def move_exponents(mantissas: Floats, exponents: Any, slots: int) -> None:
    """Move the binary exponent of every product into `exponents` (biased), leaving [1, 2)."""
    bits = mantissas.view(np.uint64)
    for k in range(slots):
        exponents[k] += bits[k] >> EXPONENT_BITS
        bits[k] = (bits[k] & MANTISSA_MASK) | ONE_BITS


@specialize(add_log_predictive, DirichletMultinomialParameters)
def _dirichlet_multinomial(likelihood, clusters, rows, i, scratch):  # type: ignore[no-untyped-def]
    """Score document i: a product over its tokens, one logarithm a cluster.

    The last entry of a row is the document's length N, in the column of totals; the others are
    words. The numerator prod_w prod_{j < x_w} (alpha_w + S_kw + j) is kept as mantissa and
    exponent, so it needs no logarithm until the end. Stored word-major, one word's clusters
    lie side by side and every factor is one contiguous, vectorised sweep.
    """
    slots = clusters.counters[N_CLUSTERS] + 1
    table = clusters.statistics.T
    mantissas, exponents, log_scores = scratch.mantissas, scratch.exponents, scratch.log_scores
    for k in range(slots):
        mantissas[k] = 1.0
        exponents[k] = np.uint64(0)
    stride = 0 if likelihood.alpha.size == 1 else 1
    pending, moves = 0, 0
    last = rows.indptr[i + 1] - 1
    for j in range(rows.indptr[i], last):
        word, count = rows.indices[j], rows.values[j]
        row, base = table[word], likelihood.alpha[word * stride]
        if count >= LONG_RUN:
            for k in range(slots):
                log_scores[k] += log_rising(base + row[k], count)
            continue
        for repeat in range(int(count)):
            multiply_in(mantissas, base + repeat, row, slots)
            pending += 1
            if pending == RENORMALIZE_EVERY:
                move_exponents(mantissas, exponents, slots)
                pending, moves = 0, moves + 1
    lengths, length = table[rows.indices[last]], rows.values[last]
    for k in range(slots):
        exponent = np.int64(exponents[k]) - EXPONENT_BIAS * moves
        log_scores[k] += math.log(mantissas[k]) + LOG_2 * exponent
        log_scores[k] -= log_rising(likelihood.total + lengths[k], length)


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
