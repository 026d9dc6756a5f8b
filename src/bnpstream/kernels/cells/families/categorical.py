"""One column of labels (twin: ``bnpstream.likelihoods.categorical``).

The block has one cell, the number of its level; `cells` is how many levels there are.
"""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.cells.columns import Work
from bnpstream.kernels.cells.moments import put
from bnpstream.kernels.jit.decorators import inlined


@inlined
def derive(p: Any, cells: int, row: Any, s: int, pairs: int, out: Any) -> bool:
    """Parameters alpha (levels); logarithms of the levels' probabilities."""
    total = 0.0
    for j in range(cells):
        total += p[j] + row[s + j]
    for j in range(cells):
        out[j] = math.log((p[j] + row[s + j]) / total)
    return False


@inlined
def score(
    v: Any, at: int, x: Any, cells: int, width: int, even: bool, scores: Any, work: Work
) -> None:
    """Add the log probability of the cell if it is there."""
    if not math.isnan(x[0]):
        log_probability = v[at + np.int64(x[0])]
        for k in range(width):
            scores[k] += log_probability[k]


@inlined
def add(row: Any, s: int, pairs: int, x: Any, cells: int, share: float) -> None:
    """Add one to the cell's level if it is there."""
    if not math.isnan(x[0]):
        put(row, s + np.int64(x[0]), pairs, share, 1.0, 0.0)
