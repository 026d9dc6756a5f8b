"""Sums of doubles that do not lose their low digits: a number as the sum of two doubles.

The variance of values near 1e6 is what is left when two sums near 1e12 are subtracted, and a double
has no digits to spare there. A pair (high, low) has some 32 digits. Every function is elementwise
arithmetic without branches, so one spelling serves NumPy arrays and compiled loops.

After Dekker (1971) and Knuth: the error of a sum or product of two doubles is itself a double.
"""

from typing import Any

from bnpstream.kernels.jit.decorators import shared

SPLITTER = 134217729.0
"""2^27 + 1: cuts a double into two halves of 26 bits."""


@shared
def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a + b as rounded, and what rounding took away."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@shared
def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a b as rounded, and what rounding took away."""
    product = a * b
    big_a, big_b = SPLITTER * a, SPLITTER * b
    high_a = big_a - (big_a - a)
    high_b = big_b - (big_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((product - high_a * high_b) - low_a * high_b) - high_a * low_b
    return product, low_a * low_b - error


@shared
def add_product(high: Any, low: Any, share: Any, value: Any, rest: Any) -> tuple[Any, Any]:
    """Return the pair (high, low) plus share times the pair (value, rest)."""
    product, error = two_product(share, value)
    total, lost = two_sum(high, product)
    return two_sum(total, lost + low + (error + share * rest))


@shared
def quotient(a: Any, n: Any) -> tuple[Any, Any]:
    """Return the quotient of two pairs."""
    rounded = a[0] / n[0]
    product, error = two_product(rounded, n[0])
    return rounded, ((a[0] - product) - error + a[1] - rounded * n[1]) / n[0]


@shared
def deviation(square: Any, mean: Any, other: Any) -> Any:
    """Return square - mean times other of three pairs, rounded.

    With a mean, and the other column's sum, that is a sum of products about the means.
    """
    product, error = two_product(mean[0], other[0])
    difference, lost = two_sum(square[0], -product)
    return difference + (lost + square[1] - error - mean[0] * other[1] - mean[1] * other[0])
