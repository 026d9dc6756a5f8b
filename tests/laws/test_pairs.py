"""Numbers as the sum of two doubles: against fractions, as NumPy runs them and as compiled."""

from fractions import Fraction

import numpy as np
import pytest

from bnpstream.kernels.statistics import pairs
from states import from_python

pytestmark = pytest.mark.kernel

SPELLINGS = ["plain", "compiled"]
spellings = pytest.mark.parametrize("spelling", SPELLINGS)


def spelled(function, spelling):
    return from_python(function) if spelling == "compiled" else function


def numbers(case, n=200):
    """Return doubles of both signs over sixty octaves."""
    rng = np.random.default_rng((67, case))
    return rng.choice([-1.0, 1.0], n) * rng.uniform(1, 2, n) * 2.0 ** rng.integers(-30, 30, n)


def pair(case, n=200):
    """Return numbers with low parts below half a unit of their last place."""
    high = numbers(case, n)
    return high, high * np.random.default_rng((68, case)).uniform(-1, 1, n) * 2.0**-54


def value(*parts):
    return sum((Fraction(float(part)) for part in parts), Fraction(0))


@spellings
def test_a_sum_and_its_error_are_exact(spelling):
    two_sum = spelled(pairs.two_sum, spelling)
    for a, b in zip(numbers(1).tolist(), numbers(2).tolist(), strict=True):
        total, error = two_sum(a, b)
        assert total == a + b
        assert value(total, error) == value(a, b)


@spellings
def test_a_product_and_its_error_are_exact(spelling):
    two_product = spelled(pairs.two_product, spelling)
    for a, b in zip(numbers(3).tolist(), numbers(4).tolist(), strict=True):
        product, error = two_product(a, b)
        assert product == a * b
        assert value(product, error) == value(a) * value(b)


@spellings
def test_adding_a_share_of_a_pair_loses_the_thirtieth_digit_at_most(spelling):
    add_product = spelled(pairs.add_product, spelling)
    columns = (*pair(5), np.abs(numbers(6)), *pair(7))
    for high, low, share, x, rest in zip(*(c.tolist() for c in columns), strict=True):
        found = add_product(high, low, share, x, rest)
        added = value(share) * value(x, rest)
        scale = abs(value(high)) + abs(added)
        assert abs(value(*found) - (value(high, low) + added)) <= scale * Fraction(1, 10**30)
        assert abs(found[1]) <= np.spacing(abs(found[0]))  # the low part is one


@spellings
def test_what_is_added_can_be_taken_out_again(spelling):
    """Thousands of numbers of all sizes go in and out in another order; the first is left."""
    add_product, rng = spelled(pairs.add_product, spelling), np.random.default_rng((67, 8))
    x, shares = numbers(9, 2000), rng.uniform(0, 1, 2000)
    total = (1.0, 0.0)
    for i in range(2000):
        total = add_product(*total, shares[i], x[i], 0.0)
    for i in rng.permutation(2000):
        total = add_product(*total, -shares[i], x[i], 0.0)
    largest = float(np.abs(x * shares).sum())
    assert abs(value(*total) - 1) <= 4000 * largest * Fraction(1, 10**30)


@spellings
@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
def test_summed_products_about_the_means_cancel_nothing(spelling, offset):
    """Sums of weighted values as far from zero as that, in pairs, against fractions."""
    deviation, quotient = (spelled(f, spelling) for f in (pairs.deviation, pairs.quotient))
    add_product = spelled(pairs.add_product, spelling)
    rng = np.random.default_rng((67, 10))
    for _ in range(20):
        xs, ys = offset + rng.normal(size=(2, 50)) * 10.0 ** rng.integers(-3, 3)
        shares = rng.uniform(0.01, 0.99, 50)
        sums = dict.fromkeys("nabs", (0.0, 0.0))
        exact = dict.fromkeys("nabs", Fraction(0))
        for share, x, y in zip(shares.tolist(), xs.tolist(), ys.tolist(), strict=True):
            product = pairs.two_product(x, y)
            added = {"n": (1.0, 0.0), "a": (x, 0.0), "b": (y, 0.0), "s": product}
            for name, term in added.items():
                sums[name] = add_product(*sums[name], share, *term)
                exact[name] += value(share) * value(*term)
        mean = quotient(sums["a"], sums["n"])
        error = abs(value(*mean) - exact["a"] / exact["n"])
        assert error <= abs(exact["a"] / exact["n"]) / 10**30 + Fraction(1, 10**30)
        found = deviation(sums["s"], mean, sums["b"])
        expected = exact["s"] - exact["a"] * exact["b"] / exact["n"]
        slack = abs(expected) / 10**14 + abs(exact["s"]) / 10**29
        assert abs(value(found) - expected) <= slack


@spellings
def test_a_quotient_loses_the_thirtieth_digit_at_most(spelling):
    quotient = spelled(pairs.quotient, spelling)
    columns = (*pair(14), *pair(15))
    for a, b, n, rest in zip(*(column.tolist() for column in columns), strict=True):
        expected = value(a, b) / value(n, rest)
        found = quotient((a, b), (n, rest))
        assert abs(value(*found) - expected) <= abs(expected) / 10**30


def test_arrays_are_treated_element_by_element():
    columns = (*pair(11), numbers(12), *pair(13))
    found = pairs.add_product(*columns)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    each = [pairs.add_product(*row) for row in rows]
    np.testing.assert_array_equal(np.array(found).T, each)
