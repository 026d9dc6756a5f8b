"""Columns of counts (twin: ``bnpstream.likelihoods.poisson``)."""

import math
from typing import Any

from bnpstream.kernels.cells.columns import Work
from bnpstream.kernels.cells.moments import add_sums
from bnpstream.kernels.jit.decorators import inlined
from bnpstream.kernels.special import log_rising


@inlined
def derive(p: Any, cells: int, row: Any, s: int, pairs: int, out: Any) -> bool:
    """Parameters a (cells), b (cells); a' = a + S, a' log(b'/(b' + 1)), -log(b' + 1)."""
    for j in range(cells):
        shape, rate = p[j] + row[s + cells + j], p[cells + j] + row[s + j]
        out[j], out[2 * cells + j] = shape, -math.log1p(rate)
        out[cells + j] = -shape * math.log1p(1.0 / rate)
    return False


@inlined
def score(
    v: Any, at: int, x: Any, cells: int, width: int, even: bool, scores: Any, work: Work
) -> None:
    """Add the log probabilities of the counts that are there."""
    for j in range(cells):
        value = x[j]
        if not math.isnan(value):
            shape, constant, slope = v[at + j], v[at + cells + j], v[at + 2 * cells + j]
            for k in range(width):
                scores[k] += log_rising(shape[k], value) + constant[k] + value * slope[k]


add = add_sums
