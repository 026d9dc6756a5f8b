"""Columns with one variance (twin: ``bnpstream.likelihoods.spherical``)."""

import math
from typing import Any

from bnpstream.kernels.cells.columns import Work
from bnpstream.kernels.cells.moments import LOG_PI, add_squares, pair
from bnpstream.kernels.jit.decorators import inlined
from bnpstream.kernels.special import log_gamma_ratio
from bnpstream.kernels.statistics.pairs import deviation, quotient


@inlined
def derive(p: Any, cells: int, row: Any, s: int, pairs: int, out: Any) -> bool:
    """Parameters m (cells), kappa, a, b.

    Derived: posterior means, weights kappa'/(2 b' (kappa' + 1)), their half logarithms; a' last.
    """
    kappa, shape, rate = p[cells], p[cells + 1], p[cells + 2]
    for j in range(cells):
        n, sums = pair(row, s + j, pairs), pair(row, s + cells + j, pairs)
        squares, m, mean = pair(row, s + 2 * cells + j, pairs), p[j], p[j]
        if n[0] > 0.0:
            centre = quotient(sums, n)
            mean = centre[0]
            rate += 0.5 * max(deviation(squares, centre, sums), 0.0)
        strength = kappa + n[0]
        rate += 0.5 * kappa * n[0] / strength * (mean - m) * (mean - m)
        shape += 0.5 * n[0]
        out[j] = m + n[0] / strength * (mean - m)
        out[cells + j] = strength / (strength + 1.0)
    for j in range(cells):
        out[cells + j] /= 2.0 * rate
        out[2 * cells + j] = 0.5 * (math.log(out[cells + j]) - LOG_PI)
    out[3 * cells] = shape
    return False


@inlined
def score(
    v: Any, at: int, x: Any, cells: int, width: int, even: bool, scores: Any, work: Work
) -> None:
    """Add the log density of Student's t with one variance over the columns that are there."""
    observed, summed = 0, work.summed
    summed[:width] = 0.0
    for j in range(cells):
        if not math.isnan(x[j]):
            observed += 1
            mean, weight, constant = v[at + j], v[at + cells + j], v[at + 2 * cells + j]
            for k in range(width):
                apart = x[j] - mean[k]
                summed[k] += apart * apart * weight[k]
                scores[k] += constant[k]
    shape = v[at + 3 * cells]
    if observed > 0:
        for k in range(width):
            scores[k] += log_gamma_ratio(shape[k], 0.5 * observed)
            scores[k] -= (shape[k] + 0.5 * observed) * math.log1p(summed[k])


add = add_squares
