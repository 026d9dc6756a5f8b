"""Log odds of clusters of words for compiled loops: what joining counts is worth."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.compiling import entry, inlined
from bnpstream.kernels.special import stirling_tail

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
SERIES_FROM = 8.0
"""From here on the first term left out of Stirling's series is below 1e-12."""


class WordRows(NamedTuple):
    """Counts of words in compressed rows; a row lies anywhere."""

    columns: NDArray[np.int32]
    values: Floats
    own: Floats
    """log Gamma(alpha + value) - log Gamma(alpha) of every entry."""
    starts: Integers
    sizes: Integers


@inlined
def log_gamma(x: float) -> Any:
    """Return log Gamma(x) for x > 0: small arguments are shifted to where the series holds."""
    product = 1.0
    while x < SERIES_FROM:
        product *= x
        x += 1.0
    return (x - 0.5) * math.log(x) - x + HALF_LOG_2_PI + stirling_tail(x) - math.log(product)


@entry
def fill_log_gammas(x: Any, out: Any) -> None:
    """Fill `out` with log Gamma of every x."""
    for j in range(x.size):
        out[j] = log_gamma(x[j])


@entry
def word_odds(rows: WordRows, i: int, others: Any, alpha: Any, out: Any) -> None:
    """Fill `out` with the words' part of log m(i+k) - log m(i) - log m(k), for k in `others`.

    Only words that both have make a difference:

        log Gamma(a + x + y) + log Gamma(a) - log Gamma(a + x) - log Gamma(a + y).
    """
    left, left_own = np.zeros(alpha.size), np.empty(alpha.size)
    for e in range(rows.starts[i], rows.starts[i] + rows.sizes[i]):
        w = rows.columns[e]
        left[w] = alpha[w] + rows.values[e]
        left_own[w] = log_gamma(left[w])
    for at in range(others.size):
        k, total = others[at], 0.0
        for e in range(rows.starts[k], rows.starts[k] + rows.sizes[k]):
            w = rows.columns[e]
            if left[w] > 0.0:
                total += log_gamma(left[w] + rows.values[e]) - left_own[w] - rows.own[e]
        out[at] = total


@entry
def group_gains(shapes: Any, log_gammas: Any, columns: Any, values: Any, out: Any) -> None:
    """Fill `out` with sum_w log Gamma(a_gw + x_w) - log Gamma(a_gw) for every group g.

    `shapes` holds a_gw = alpha_w + S_gw as (V, n), so that one word's groups lie side by side.
    """
    out[:] = 0.0
    for j in range(columns.size):
        w, x = columns[j], values[j]
        for g in range(out.size):
            out[g] += log_gamma(shapes[w, g] + x) - log_gammas[w, g]
