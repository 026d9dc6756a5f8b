"""log c(r), the normaliser of von Mises and Fisher's density, and exact differences of it.

With D columns, v = D/2 - 1 and I_v the modified Bessel function,

    vMF(x | m, r) = c(r) exp(r m . x),    c(r) = r^v / ((2 pi)^(v+1) I_v(r)).

Debye's expansion in s = sqrt(v^2 + r^2) and p = v/s has no log r in it, so that r = 0 is no special
case (Abramowitz & Stegun 9.7.7):

    log I_v(r) - v log r = s - v log(v + s) - log(2 pi s)/2 + sum_k s^-k L_k(p^2).

L_k are the polynomials of its logarithm. Eight of them leave 2e-15 from v = 31 on (D = 64), and
fewer do for more columns. Smaller orders are reached by the recurrence, downwards, where it is
stable: with t_v = r I_{v+1} / I_v,

    I_v / r^v = (2(v+1) + t_{v+1}) I_{v+1} / r^(v+1),    t_v = r^2 / (2(v+1) + t_{v+1}).

A score needs log c(r) - log c(r'), of which s - s' and log(v + s) - log(v + s') would cancel: they
are taken from r'^2 - r^2 instead.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from bnpstream.kernels.jit.decorators import shared

LEAST_ORDER = 31.0
"""From this order on the expansion is used as it is."""
TERMS = 8
LANES = 12
"""Of `fill_tails`: nine lengths, and three more for whole lanes of four."""

Polynomial = list[Fraction]


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    product = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return product


def _plus(a: Polynomial, b: Polynomial, factor: Fraction = Fraction(1)) -> Polynomial:
    longer = max(len(a), len(b))
    padded = [part + [Fraction(0)] * (longer - len(part)) for part in (a, b)]
    return [x + factor * y for x, y in zip(*padded, strict=True)]


def _debye(n: int) -> tuple[list[Polynomial], list[Polynomial]]:
    """Return U_0..U_n of I_v and V_0..V_n of its derivative (Abramowitz & Stegun 9.3.9, 9.3.13)."""
    one, half = Fraction(1), Fraction(1, 2)
    U, V = [[one]], [[one]]
    for _ in range(n):
        u = U[-1]
        slope = [i * x for i, x in enumerate(u)][1:] or [Fraction(0)]
        inner = _times(u, [Fraction(1, 8), Fraction(0), Fraction(-5, 8)])
        integral = [Fraction(0)] + [x / (i + 1) for i, x in enumerate(inner)]
        squared = _times([Fraction(0), Fraction(0), one, Fraction(0), -one], slope)
        U.append(_plus(integral, squared, half))
        less = _plus(_times([Fraction(0), half, Fraction(0), -half], u), squared)
        V.append(_plus(U[-1], less, -one))
    return U, V


def _logarithm(series: list[Polynomial]) -> list[Polynomial]:
    """Return the logarithm of a series 1 + a_1/v + ...: k l_k = k a_k - sum_j j l_j a_k-j."""
    logs: list[Polynomial] = [[Fraction(0)]]
    for k in range(1, len(series)):
        total = [k * x for x in series[k]]
        for j in range(1, k):
            total = _plus(total, _times(logs[j], series[k - j]), Fraction(-j))
        logs.append([x / k for x in total])
    return logs


def _coefficients(logs: list[Polynomial]) -> Any:
    """Return those of L_k(p^2) = l_k(p) / p^k, shape (TERMS, TERMS + 1)."""
    table = np.zeros((TERMS, TERMS + 1))
    for k in range(1, TERMS + 1):
        kept = logs[k][k::2]
        table[k - 1, : len(kept)] = [float(x) for x in kept[: TERMS + 1]]
    return table


_U, _V = _debye(TERMS)
TAIL = _coefficients(_logarithm(_U))
"""Of log(1 + sum_k U_k(p) / v^k)."""
SLOPE = _coefficients(_logarithm(_V)) - TAIL
"""Of the logarithm of r I'_v(r) / (s I_v(r))."""


@shared
def n_terms(order: float) -> int:
    """Return how many terms leave less than 3e-15 where s is at least the order."""
    return 8 if order < 130.0 else 6 if order < 240.0 else 5


@shared
def series(table: Any, p: Any, s: Any, terms: int) -> Any:
    """Return sum_k s^-k L_k(p^2)."""
    square, total, small = p * p, 0.0 * s, 1.0 / s
    for k in range(terms - 1, -1, -1):
        term = table[k, k + 1] + 0.0 * square
        for j in range(k, -1, -1):
            term = term * square + table[k, j]
        total = (total + term) * small
    return total


def tails_of(terms: int) -> Callable[[float, Any, Any], None]:
    """Return a function that fills tails with `series` of TAIL for some s, LANES at a time.

    The number of terms is its own, so that the compiler has nothing but lanes to loop over.
    """

    @shared
    def fill(top: float, roots: Any, tails: Any) -> None:
        for i in range(LANES):
            p = top / roots[i]
            square, total, small = p * p, 0.0, 1.0 / roots[i]
            for k in range(terms - 1, -1, -1):
                term = TAIL[k, k + 1]
                for j in range(k, -1, -1):
                    term = term * square + TAIL[k, j]
                total = (total + term) * small
            tails[i] = total

    found: Callable[[float, Any, Any], None] = fill
    return found


fill_8_terms, fill_6_terms, fill_5_terms = tails_of(8), tails_of(6), tails_of(5)


@shared
def fill_tails(top: float, roots: Any, tails: Any) -> None:
    """Fill tails with sum_k s^-k L_k(p^2) for some s, with as many terms as `log_c_fall` takes."""
    terms = n_terms(top)
    if terms == 8:
        fill_8_terms(top, roots, tails)
    elif terms == 6:
        fill_6_terms(top, roots, tails)
    else:
        fill_5_terms(top, roots, tails)


@shared
def log_c(order: float, squares: Any) -> Any:
    """Return log c(r) of r^2, a number or an array."""
    shift = max(0, int(np.ceil(LEAST_ORDER - order)))
    top = order + shift
    s = np.sqrt(top * top + squares)
    p = top / s
    found = (
        top * np.log(top + s) - s + 0.5 * np.log(2.0 * np.pi * s) - series(TAIL, p, s, n_terms(top))
    )
    t = s * np.exp(series(SLOPE, p, s, n_terms(top))) - top
    for j in range(shift, 0, -1):
        whole = 2.0 * (order + j) + t
        found = found - np.log(whole)
        t = squares / whole
    return found - (order + 1.0) * np.log(2.0 * np.pi)


@shared
def log_c_fall(order: float, squares: Any, more: Any, most: int = TERMS) -> Any:
    """Return log c(r) - log c(r') of r^2 and r'^2 - r^2, numbers or arrays."""
    shift = max(0, int(np.ceil(LEAST_ORDER - order)))
    top = order + shift
    terms = min(n_terms(top), most)
    others = np.maximum(squares + more, 0.0)
    s, z = np.sqrt(top * top + squares), np.sqrt(top * top + others)
    longer = more / (s + z)
    p, q = top / s, top / z
    found = longer - top * np.log1p(longer / (top + s)) - 0.5 * np.log1p(longer / s)
    found = found + series(TAIL, q, z, terms) - series(TAIL, p, s, terms)
    if shift > 0:
        t = s * np.exp(series(SLOPE, p, s, terms)) - top
        u = z * np.exp(series(SLOPE, q, z, terms)) - top
        ratio = 1.0 + 0.0 * t * u
        for j in range(shift, 0, -1):
            one, other = 2.0 * (order + j) + t, 2.0 * (order + j) + u
            ratio = ratio * (one / other)
            t, u = squares / one, others / other
        found = found - np.log(ratio)
    return found


@shared
def mean_length(order: float, squares: Any, most: int = TERMS) -> Any:
    """Return A(r) / r, A(r) being the length of the mean of vMF(m, r), of r^2.

    A(r) / r = t_v(r) / r^2, which is 1/D at r = 0.
    """
    shift = max(0, int(np.ceil(LEAST_ORDER - order)))
    top = order + shift + 1.0
    terms = min(n_terms(top), most)
    s = np.sqrt(top * top + squares)
    t = s * np.exp(series(SLOPE, top / s, s, terms)) - top
    for j in range(shift + 1, 1, -1):
        t = squares / (2.0 * (order + j) + t)
    return 1.0 / (2.0 * (order + 1.0) + t)
