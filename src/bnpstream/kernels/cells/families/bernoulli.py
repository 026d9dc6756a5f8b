"""Columns of yes or no (twin: ``bnpstream.likelihoods.bernoulli``)."""

import math
from typing import Any

from bnpstream.kernels.cells.columns import Work
from bnpstream.kernels.cells.moments import add_sums
from bnpstream.kernels.jit.decorators import inlined


@inlined
def derive(p: Any, cells: int, row: Any, s: int, pairs: int, out: Any) -> bool:
    """Parameters a (cells), b (cells); log of the probabilities of one and of zero."""
    for j in range(cells):
        n, ones = row[s + j], row[s + cells + j]
        total = p[j] + p[cells + j] + n
        out[j] = math.log((p[j] + ones) / total)
        out[cells + j] = math.log((p[cells + j] + max(n - ones, 0.0)) / total)
    return False


@inlined
def score(
    v: Any, at: int, x: Any, cells: int, width: int, even: bool, scores: Any, work: Work
) -> None:
    """Add the log probabilities of the cells that are there."""
    for j in range(cells):
        if not math.isnan(x[j]):
            log_probability = v[at + (j if x[j] > 0.0 else cells + j)]
            for k in range(width):
                scores[k] += log_probability[k]


add = add_sums
