"""Log odds of clusters of words for compiled loops: what joining counts is worth."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.jit.decorators import entry, inlined
from bnpstream.kernels.special import stirling_tail

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
STEPS, NEAR = 128, 64
FAR_STEPS, FAR = 4, 2048
"""log Gamma(1 + z) is known at so many points a unit up to NEAR, and at fewer from there to FAR. A
cubic through four of them, h apart, is off by 9/384 h^4 times the largest fourth derivative, which
is 6.5 up to NEAR and 8e-6 above: below 7e-10 in both."""


def _cubics(start: int, stop: int, steps: int) -> Floats:
    """Return the coefficients of these cubics in t, 0 <= t < 1 from one point to the next."""
    points = range(start * steps - 1, stop * steps + 3)
    known = np.array([math.lgamma(1.0 + j / steps) for j in points])
    a, b, c, d = known[:-3], known[1:-2], known[2:-1], known[3:]
    third = (d - 3.0 * (c - b) - a) / 6.0
    second = 0.5 * (c - 2.0 * b + a)
    return np.ascontiguousarray(np.stack([b, b - a + second - third, second, third], axis=1))


CUBICS, FAR_CUBICS = _cubics(0, NEAR, STEPS), _cubics(NEAR, FAR, FAR_STEPS)
TINY, HUGE = 1e-150, 1e150
"""Products of arguments stay between, but for one more argument."""
NONE = -1
"""Where a cluster does not have a word."""


class Holders(NamedTuple):
    """The clusters that hold every word, word by word."""

    starts: Integers
    """(V,): where the clusters of a word begin."""
    sizes: Integers
    """(V,): how many there are."""
    slots: NDArray[np.int32]
    values: Floats
    """Counts of the word in these clusters."""
    own: Floats
    """log Gamma(alpha + value) - log Gamma(alpha) of every count."""


@inlined
def log_gamma_plus(z: float) -> Any:
    """Return log Gamma(1 + z) for z >= 0: by the tables, or by Stirling's series."""
    if z < NEAR:
        at = z * STEPS
        j = np.int64(at)
        t = at - j
        return CUBICS[j, 0] + t * (CUBICS[j, 1] + t * (CUBICS[j, 2] + t * CUBICS[j, 3]))
    if z < FAR:
        at = (z - NEAR) * FAR_STEPS
        j = np.int64(at)
        t = at - j
        far = FAR_CUBICS
        return far[j, 0] + t * (far[j, 1] + t * (far[j, 2] + t * far[j, 3]))
    y = z + 1.0
    return (y - 0.5) * math.log(y) - y + HALF_LOG_2_PI + stirling_tail(y)


@entry
def fill_log_gammas(x: Any, out: Any) -> None:
    """Fill `out` with log Gamma of every x."""
    for j in range(x.size):
        out[j] = log_gamma_plus(x[j]) - math.log(x[j])


@inlined
def add_holders(holders: Holders, w: int, left: float, least: int, out: Any, products: Any) -> None:
    """Add what it is worth to join a count of word w, alpha + x = `left`, with those of others.

    log Gamma(z) is log Gamma(1 + z) - log z, and one logarithm does for the z of many words.
    """
    alone = log_gamma_plus(left) - math.log(left)
    for e in range(holders.starts[w], holders.starts[w] + holders.sizes[w]):
        k = holders.slots[e]
        if k >= least:
            z = left + holders.values[e]
            out[k] += log_gamma_plus(z) - alone - holders.own[e]
            products[k] *= z
            if not TINY < products[k] < HUGE:
                out[k] -= math.log(products[k])
                products[k] = 1.0


@entry
def word_odds(
    holders: Holders, columns: Any, values: Any, alpha: Any, least: int, out: Any
) -> None:
    """Fill `out` with the words' part of log m(i+k) - log m(i) - log m(k).

    `columns` and `values` are the words of i and their counts; k is every slot from `least` on.
    Only words that both have make a difference:

        log Gamma(a + x + y) + log Gamma(a) - log Gamma(a + x) - log Gamma(a + y).
    """
    out[:] = 0.0
    products = np.ones(out.size)
    for j in range(columns.size):
        w = columns[j]
        add_holders(holders, w, alpha[w] + values[j], least, out, products)
    for k in range(least, out.size):
        out[k] -= math.log(products[k])


@entry
def pair_odds(
    starts: Any, columns: Any, values: Any, own: Any, alpha: Any, pairs: Any, out: Any
) -> None:
    """Fill `out` with the words' part of the log odds of pairs of rows (see `word_odds`).

    Rows are compressed, `own` is log Gamma(alpha + value) - log Gamma(alpha) of every entry. The
    first row of a pair is written out, once for all pairs that follow each other with it.
    """
    left, left_own, written = np.zeros(alpha.size), np.empty(alpha.size), NONE
    for p in range(out.size):
        i, j = pairs[0, p], pairs[1, p]
        if i != written:
            if written != NONE:
                left[columns[starts[written] : starts[written + 1]]] = 0.0
            for e in range(starts[i], starts[i + 1]):
                w = columns[e]
                left[w] = alpha[w] + values[e]
                left_own[w] = log_gamma_plus(left[w]) - math.log(left[w])
            written = i
        total, product = 0.0, 1.0
        for e in range(starts[j], starts[j + 1]):
            w = columns[e]
            if left[w] > 0.0:
                z = left[w] + values[e]
                total += log_gamma_plus(z) - left_own[w] - own[e]
                product *= z
                if not TINY < product < HUGE:
                    total -= math.log(product)
                    product = 1.0
        out[p] = total - math.log(product)


@inlined
def raise_holders(
    holders: Holders, w: int, before: float, after: float, step: float, out: Any, products: Any
) -> None:
    """Add what it is worth that alpha + x of word w rises, `step` in log Gamma(1 + x)."""
    ratio = before / after
    for e in range(holders.starts[w], holders.starts[w] + holders.sizes[w]):
        k, z = holders.slots[e], holders.values[e]
        out[k] += log_gamma_plus(after + z) - log_gamma_plus(before + z) - step
        products[k] *= ratio * ((after + z) / (before + z))
        if products[k] < TINY:
            out[k] -= math.log(products[k])
            products[k] = 1.0


@inlined
def holder(holders: Holders, w: int, k: int) -> Any:
    """Return where word w has the count of cluster k, which holds it."""
    e = holders.starts[w]
    while holders.slots[e] != k:
        e += 1
    return e


@entry
def join_words(
    holders: Holders,
    i: int,
    columns: Any,
    values: Any,
    j: int,
    more_columns: Any,
    more: Any,
    alpha: Any,
    is_new: Any,
    out: Any,
) -> None:
    """Add the words of cluster j to those of cluster i.

    `out` is filled with how the words' part of the odds of i with every slot changes. Only words of
    j make a difference: where i had x of a word, j has y and another cluster z,

        log Gamma(a+x+y+z) - log Gamma(a+x+z) - log Gamma(a+x+y) + log Gamma(a+x).

    `values` and the holders follow; `is_new` says which words of j cluster i did not have.
    """
    at = np.full(alpha.size, NONE)
    for e in range(columns.size):
        at[columns[e]] = e
    out[:] = 0.0
    products = np.ones(out.size)
    for f in range(more.size):
        w = more_columns[f]
        e, there = at[w], holder(holders, w, j)
        is_new[f] = e == NONE
        if is_new[f]:
            add_holders(holders, w, alpha[w] + more[f], 0, out, products)
            holders.slots[there] = i
            continue
        before, after = alpha[w] + values[e], alpha[w] + values[e] + more[f]
        step = log_gamma_plus(after) - log_gamma_plus(before)
        raise_holders(holders, w, before, after, step, out, products)
        values[e] += more[f]
        here, last = holder(holders, w, i), holders.starts[w] + holders.sizes[w] - 1
        holders.values[here] = values[e]
        holders.own[here] += step - math.log(after / before)
        holders.slots[there] = holders.slots[last]
        holders.values[there] = holders.values[last]
        holders.own[there] = holders.own[last]
        holders.sizes[w] -= 1
    for k in range(out.size):
        out[k] -= math.log(products[k])


@entry
def group_gains(
    shapes: Any,
    log_gammas: Any,
    columns: Any,
    values: Any,
    alpha: Any,
    home: int,
    some: Any,
    out: Any,
) -> None:
    """Fill `out` with sum_w log Gamma(a_gw + x_w) - log Gamma(a_gw) for some groups g.

    `shapes` holds a_gw = alpha_w + S_gw as (V, n), so that one word's groups lie side by side. The
    counts x are part of the group `home`, and are taken out of it first.
    """
    out[:] = 0.0
    products = np.ones(out.size)
    for j in range(columns.size):
        w, x = columns[j], values[j]
        for at in range(some.size):
            g = some[at]
            if g == home:  # what a subtraction leaves of alpha may be rounding only
                z = max(shapes[w, g] - x, alpha[w])
                out[at] += log_gammas[w, g] - log_gamma_plus(z)
                products[at] /= z
            else:
                z = shapes[w, g] + x
                out[at] += log_gamma_plus(z) - log_gammas[w, g]
                products[at] *= z
            if not TINY < products[at] < HUGE:
                out[at] -= math.log(products[at])
                products[at] = 1.0
    for at in range(some.size):
        out[at] -= math.log(products[at])
