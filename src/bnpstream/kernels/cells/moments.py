"""Statistics of cells, as pairs of doubles in a cluster's row: reading one, and adding to it."""

import math
from typing import Any

from bnpstream.kernels.jit.decorators import inlined
from bnpstream.kernels.statistics.pairs import add_product, two_product

LOG_PI = math.log(math.pi)


@inlined
def pair(row: Any, s: int, pairs: int) -> tuple[float, float]:
    """Return statistic s of a cluster's row."""
    return row[s], row[s + pairs]


@inlined
def put(row: Any, s: int, pairs: int, share: float, value: float, rest: float) -> None:
    """Add share times the pair (value, rest) to statistic s of a cluster's row."""
    row[s], row[s + pairs] = add_product(row[s], row[s + pairs], share, value, rest)


@inlined
def add_sums(row: Any, s: int, pairs: int, x: Any, cells: int, share: float) -> None:
    """Add counts and sums of the cells that are there."""
    for j in range(cells):
        if not math.isnan(x[j]):
            put(row, s + j, pairs, share, 1.0, 0.0)
            put(row, s + cells + j, pairs, share, x[j], 0.0)


@inlined
def add_squares(row: Any, s: int, pairs: int, x: Any, cells: int, share: float) -> None:
    """Add counts, sums and squares of the cells that are there."""
    add_sums(row, s, pairs, x, cells, share)
    for j in range(cells):
        if not math.isnan(x[j]):
            square, rest = two_product(x[j], x[j])
            put(row, s + 2 * cells + j, pairs, share, square, rest)
