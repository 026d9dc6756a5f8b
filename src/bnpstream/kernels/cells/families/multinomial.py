"""A few columns of counts of words (twin: ``bnpstream.likelihoods.product``)."""

import math
from typing import Any

from bnpstream.kernels.cells.columns import Work
from bnpstream.kernels.cells.moments import put
from bnpstream.kernels.jit.decorators import inlined
from bnpstream.kernels.special import log_rising


@inlined
def derive(p: Any, cells: int, row: Any, s: int, pairs: int, out: Any) -> bool:
    """Parameters alpha (cells), A; alpha + S, A + S.."""
    for j in range(cells + 1):
        out[j] = p[j] + row[s + j]
    return False


@inlined
def score(
    v: Any, at: int, x: Any, cells: int, width: int, even: bool, scores: Any, work: Work
) -> None:
    """Add the log probability of the counts: the urn drawn word by word."""
    length = 0.0
    for j in range(cells):
        value = x[j]
        if not math.isnan(value):
            length += value
            if value > 0.0:
                base = v[at + j]
                for k in range(width):
                    scores[k] += log_rising(base[k], value)
    total = v[at + cells]
    for k in range(width):
        scores[k] -= log_rising(total[k], length)


@inlined
def add(row: Any, s: int, pairs: int, x: Any, cells: int, share: float) -> None:
    """Add counts and their sum."""
    length = 0.0
    for j in range(cells):
        value = x[j]
        if not math.isnan(value):
            put(row, s + j, pairs, share, value, 0.0)
            length += value
    put(row, s + cells, pairs, share, length, 0.0)
