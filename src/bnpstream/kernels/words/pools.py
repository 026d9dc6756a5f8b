"""Log odds of clusters of words for compiled loops: what joining counts is worth."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.jit.decorators import entry, inlined
from bnpstream.kernels.special import stirling_tail

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
STEPS, TABLE_UP_TO = 128, 64
"""log Gamma(1 + z) is known at so many points a unit, up to here. A cubic through four of them,
h = 1/128 apart, is off by 9/384 h^4 times the largest fourth derivative, 6.5: below 6e-10."""
TABLE = np.array([math.lgamma(1.0 + j / STEPS) for j in range(-1, STEPS * TABLE_UP_TO + 3)])
TINY, HUGE = 1e-150, 1e150
"""Products of arguments stay between, but for one more argument."""


class WordRows(NamedTuple):
    """Counts of words in compressed rows; a row lies anywhere."""

    columns: NDArray[np.int32]
    values: Floats
    own: Floats
    """log Gamma(alpha + value) - log Gamma(alpha) of every entry."""
    starts: Integers
    sizes: Integers


@inlined
def log_gamma_plus(z: float) -> Any:
    """Return log Gamma(1 + z) for z >= 0: by the table, or by Stirling's series."""
    if z >= TABLE_UP_TO:
        y = z + 1.0
        return (y - 0.5) * math.log(y) - y + HALF_LOG_2_PI + stirling_tail(y)
    at = z * STEPS
    j = np.int64(at)
    t = at - j
    a, b, c, d = TABLE[j], TABLE[j + 1], TABLE[j + 2], TABLE[j + 3]
    # Newton's form of the cubic through t = -1, 0, 1, 2.
    first, second, third = b - a, c - 2.0 * b + a, d - 3.0 * (c - b) - a
    return a + (t + 1.0) * (first + t * (0.5 * second + (t - 1.0) * third * (1 / 6)))


@entry
def fill_log_gammas(x: Any, out: Any) -> None:
    """Fill `out` with log Gamma of every x."""
    for j in range(x.size):
        out[j] = log_gamma_plus(x[j]) - math.log(x[j])


@entry
def word_odds(rows: WordRows, i: int, others: Any, alpha: Any, out: Any) -> None:
    """Fill `out` with the words' part of log m(i+k) - log m(i) - log m(k), for k in `others`.

    Only words that both have make a difference:

        log Gamma(a + x + y) + log Gamma(a) - log Gamma(a + x) - log Gamma(a + y).

    log Gamma(z) is log Gamma(1 + z) - log z, and one logarithm does for the z of many words.
    """
    left, left_own = np.zeros(alpha.size), np.empty(alpha.size)
    columns, values, own = rows.columns, rows.values, rows.own
    for e in range(rows.starts[i], rows.starts[i] + rows.sizes[i]):
        w = columns[e]
        left[w] = alpha[w] + values[e]
        left_own[w] = log_gamma_plus(left[w]) - math.log(left[w])
    for at in range(others.size):
        k, total, product = others[at], 0.0, 1.0
        for e in range(rows.starts[k], rows.starts[k] + rows.sizes[k]):
            w = columns[e]
            if left[w] > 0.0:
                z = left[w] + values[e]
                total += log_gamma_plus(z) - left_own[w] - own[e]
                product *= z
                if not TINY < product < HUGE:
                    total -= math.log(product)
                    product = 1.0
        out[at] = total - math.log(product)


@entry
def group_gains(shapes: Any, log_gammas: Any, columns: Any, values: Any, out: Any) -> None:
    """Fill `out` with sum_w log Gamma(a_gw + x_w) - log Gamma(a_gw) for every group g.

    `shapes` holds a_gw = alpha_w + S_gw as (V, n), so that one word's groups lie side by side.
    """
    out[:] = 0.0
    products = np.ones(out.size)
    for j in range(columns.size):
        w, x = columns[j], values[j]
        for g in range(out.size):
            z = shapes[w, g] + x
            out[g] += log_gamma_plus(z) - log_gammas[w, g]
            products[g] *= z
            if not TINY < products[g] < HUGE:
                out[g] -= math.log(products[g])
                products[g] = 1.0
    for g in range(out.size):
        out[g] -= math.log(products[g])
