"""Columns with a variance each (twin: ``bnpstream.likelihoods.diagonal``)."""

import math
from typing import Any

from bnpstream.kernels.cells.columns import Work
from bnpstream.kernels.cells.moments import LOG_PI, add_squares, pair
from bnpstream.kernels.jit.decorators import inlined, inner
from bnpstream.kernels.special import LOG_2, log_gamma_ratio, split
from bnpstream.kernels.statistics.pairs import deviation, quotient


@inlined
def derive(p: Any, cells: int, row: Any, s: int, pairs: int, out: Any) -> bool:
    """Parameters m (cells), kappa, a, b (cells).

    Derived: posterior means, weights kappa'/(2 b' (kappa' + 1)), a' + 1/2, constants; the sum of
    the constants last. Return whether counts differ.
    """
    kappa, a, total, uneven = p[cells], p[cells + 1], 0.0, False
    for j in range(cells):
        n, sums = pair(row, s + j, pairs), pair(row, s + cells + j, pairs)
        squares, m = pair(row, s + 2 * cells + j, pairs), p[j]
        scatter, mean = 0.0, m
        if n[0] > 0.0:
            centre = quotient(sums, n)
            mean, scatter = centre[0], max(deviation(squares, centre, sums), 0.0)
        strength, shape = kappa + n[0], a + 0.5 * n[0]
        apart = kappa * n[0] / strength * (mean - m) * (mean - m)
        rate = p[cells + 2 + j] + 0.5 * (scatter + apart)
        out[j] = m + n[0] / strength * (mean - m)
        out[cells + j] = strength / (2.0 * rate * (strength + 1.0))
        out[2 * cells + j] = shape + 0.5
        constant = log_gamma_ratio(shape, 0.5) + 0.5 * (math.log(out[cells + j]) - LOG_PI)
        out[3 * cells + j] = constant
        total += constant
        uneven = uneven or n[0] != row[s]
    out[4 * cells] = total
    return uneven


@inlined
def score(
    v: Any, at: int, x: Any, cells: int, width: int, even: bool, scores: Any, work: Work
) -> None:
    """Add the log densities of Student's t over the columns that are there."""
    if even:
        score_even(v, at, x, cells, width, scores, work.summed, work.exponents)
    else:
        score_uneven(v, at, x, cells, width, scores)


@inner
def score_even(
    v: Any, at: int, x: Any, cells: int, width: int, scores: Any, mantissas: Any, exponents: Any
) -> None:
    """Add the log densities of Student's t, columns of equal counts: one logarithm a cluster."""
    mantissas[:width] = 1.0
    exponents[:width] = 0
    for j in range(cells):
        mean, weight = v[at + j], v[at + cells + j]
        for k in range(width):
            apart = x[j] - mean[k]
            mantissa, exponent = split(mantissas[k] * (1.0 + apart * apart * weight[k]))
            mantissas[k] = mantissa
            exponents[k] += exponent
    half, constant = v[at + 2 * cells], v[at + 4 * cells]
    for k in range(width):
        log_product = math.log(mantissas[k]) + LOG_2 * exponents[k]
        scores[k] += constant[k] - half[k] * log_product


@inner
def score_uneven(v: Any, at: int, x: Any, cells: int, width: int, scores: Any) -> None:
    """Add the log densities of Student's t over the columns that are there."""
    for j in range(cells):
        if not math.isnan(x[j]):
            mean, weight = v[at + j], v[at + cells + j]
            half, constant = v[at + 2 * cells + j], v[at + 3 * cells + j]
            for k in range(width):
                apart = x[j] - mean[k]
                scores[k] += constant[k] - half[k] * math.log1p(apart * apart * weight[k])


add = add_squares
