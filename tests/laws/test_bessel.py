"""The normaliser of von Mises and Fisher's density against mpmath, differences included."""

import mpmath as mp
import numpy as np
import pytest

from bnpstream.kernels.vectors.bessel import log_c, log_c_fall, mean_length

COLUMNS = (1, 2, 3, 5, 10, 32, 63, 64, 100, 256, 384, 1536)
LENGTHS = (0.0, 0.5, 3.0, 100.0, 1000.0, 3e4, 1e7, 1e10, 1e13)
columns = pytest.mark.parametrize("D", COLUMNS)


def exact(v, squares):
    """Return log c(r) to 40 digits; for large r by Hankel's expansion."""
    v, r = mp.mpf(v), mp.sqrt(squares)
    constant = -(v + 1) * mp.log(2 * mp.pi)
    if r == 0:
        return constant + v * mp.log(2) + mp.loggamma(v + 1)
    if r < 1e6:
        return constant + v * mp.log(r) - mp.log(mp.besseli(v, r))
    term, total = mp.mpf(1), mp.mpf(1)
    for k in range(1, 40):
        term *= -(4 * v * v - (2 * k - 1) ** 2) / (8 * k * r)
        total += term
    return constant + v * mp.log(r) - r + mp.log(2 * mp.pi * r) / 2 - mp.log(total)


@columns
def test_log_c(D):
    v = D / 2 - 1
    with mp.workdps(50):
        for r in LENGTHS:
            expected = float(exact(v, mp.mpf(r) ** 2))
            assert abs(log_c(v, r * r) - expected) <= 2e-14 * max(1.0, abs(expected))


@columns
def test_differences_do_not_cancel(D):
    """Also where log c is 1e13 and the difference 1e3: a cluster of 10^10 rows."""
    v = D / 2 - 1
    squares, more, expected = [], [], []
    with mp.workdps(50):
        for r in LENGTHS:
            before = exact(v, mp.mpf(r * r))
            for kappa in (0.7 * D, 8.0 * D):
                for cosine in (-0.3, 0.0, 0.5, 0.999):
                    squares.append(r * r)
                    more.append(kappa**2 + 2 * kappa * r * cosine)
                    after = exact(v, mp.mpf(squares[-1]) + mp.mpf(more[-1]))
                    expected.append(float(before - after))
    found = log_c_fall(v, np.array(squares), np.array(more))
    gap = np.abs(found - expected) / np.maximum(1.0, np.abs(expected))
    assert gap.max() <= 2e-14
    assert [log_c_fall(v, *pair) for pair in zip(squares, more, strict=True)] == pytest.approx(
        found.tolist(), rel=1e-14, abs=1e-14
    )


@columns
def test_mean_length(D):
    v = D / 2 - 1
    for r in (1e-3, 0.5, 7.0, 300.0):
        with mp.workdps(40):
            expected = float(mp.besseli(v + 1, r) / mp.besseli(v, r) / r)
        assert mean_length(v, r * r) == pytest.approx(expected, rel=1e-14)
    assert mean_length(v, 0.0) == pytest.approx(1.0 / D, rel=1e-14)
