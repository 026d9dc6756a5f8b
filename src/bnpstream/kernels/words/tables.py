"""Documents that repeat their words: how many of them a cluster is told of, compiled.

A document has word probabilities of its own, from Dir(s theta), around theta ~ Dir(b), those of its
cluster. A word that occurs x times was then drawn t times from theta, 1 <= t <= x, and repeated
otherwise: t are the tables of the Chinese restaurant. Summed over documents they are the counts of
the cluster, b = alpha + T. With C the total of b, and S1 the Stirling numbers of the first kind,

    p(t | x) = prod_w |S1(x_w, t_w)| s^t_w  b_w (b_w + 1) ... (b_w + t_w - 1)
               / [C (C + 1) ... (C + t. - 1)] / normaliser.

Twin: ``bnpstream.likelihoods.bursty``.
"""

from typing import Any

import numpy as np

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.jit.decorators import inner, shared
from bnpstream.kernels.special import STIRLING_FROM

LONG_RUN = 24.0
"""From this count on one log-rising-factorial is cheaper than its factors one by one, and tables
are found by a fixed point in place of a sum."""
ROUNDS = 4
"""Times that the tables of a document are found, given how many there are in all."""
FIXED_POINT = 12
"""Steps towards the tables of a word that occurs often."""
NO_REPEATS = 1e12
"""A word so common that all x of its tokens are drawn anew: but for x^2 in so many. Products of
`LONG_RUN` smaller factors are within the range of a double."""


def stirling_numbers(size: int) -> Floats:
    """Return |S1(x, t)| for x, t < size."""
    numbers = np.zeros((size, size))
    numbers[0, 0] = 1.0
    for x in range(size - 1):
        numbers[x + 1, 1:] = x * numbers[x, 1:] + numbers[x, :-1]
    return numbers


STIRLING = stirling_numbers(int(LONG_RUN))


@shared
def damping(total: float, burstiness: float) -> float:
    """Return g = s / (s + C + 1): what a document sees of counts whose total is C.

    A document with word probabilities from Dir(s theta), theta from Dir(b) of total C, has the mean
    and the covariances of one from Dir(g b): 1/(1 + g C) = 1 - s/(1 + s) C/(1 + C).
    """
    return 1.0 / (1.0 + (total + 1.0) * burstiness)


@shared
def digamma_rise(u: Any, x: Any) -> Any:
    """Return psi(u + x) - psi(u) for u > 0 and x >= 12, to 1e-12, without subtracting them.

    Twelve terms 1/(u + j), then differences of the asymptotic series.
    """
    head = 0.0
    for j in range(int(STIRLING_FROM)):
        head = head + 1.0 / (u + j)
    z, y = u + STIRLING_FROM, u + x
    series = asymptotic_tail(z) - asymptotic_tail(y)
    return head + np.log1p((x - STIRLING_FROM) / z) + series


@shared
def asymptotic_tail(z: Any) -> Any:
    """Return log z - psi(z) for z >= 12."""
    r = 1.0 / z
    s = r * r
    return 0.5 * r + s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s / 240)))


@inner
def tables_of(x: float, base: float, rate: float) -> float:
    """Return E[t | x], where p(t) is proportional to |S1(x, t)| rate^t base ... (base + t - 1).

    Few are summed. For many, the mean given s theta_w = u is u (psi(u + x) - psi(u)), taken where
    the density of log u is largest, u = rate (base + t).
    """
    if rate * (base + LONG_RUN) > NO_REPEATS:
        return x
    if x >= LONG_RUN:
        t = x
        for _ in range(FIXED_POINT):
            u = rate * (base + t)
            t = u * digamma_rise(u, x)
        return t
    n, term, total, summed = int(x), 1.0, 0.0, 0.0
    for t in range(1, n + 1):
        weight = STIRLING[n, t] * term
        total += weight
        summed += t * weight
        term *= rate * (base + t)
    return summed / total
