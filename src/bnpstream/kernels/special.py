"""Special functions for compiled loops.

Functions of whole arrays are plain arithmetic without calls and branches, so that the compiler
turns them into vector instructions: a logarithm then costs about a nanosecond, not ten.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from bnpstream.kernels.arrays import Floats

LOG_2 = math.log(2.0)
SQRT_2 = math.sqrt(2.0)
EXPONENT_BITS = np.uint64(52)
EXPONENT_BIAS = 1023
MANTISSA_MASK = np.uint64((1 << 52) - 1)
ONE_BITS = np.uint64(EXPONENT_BIAS << 52)
STIRLING_FROM = 12.0
"""From here on the first term left out of the series is below 3e-15."""
SERIES_UP_TO = 0.41
"""Largest n/x whose log1p the series of 2 atanh(z), z = n/(2x+n) < 0.171, gives to the last bit."""


@njit(cache=True, error_model="numpy")
def move_exponents(mantissas: Floats, exponents: Any, size: int) -> None:
    """Move the binary exponent of every positive number into `exponents`, leaving [1, 2).

    The exponents are added with their bias of 1023.
    """
    bits = mantissas.view(np.uint64)
    for k in range(size):
        exponents[k] += bits[k] >> EXPONENT_BITS
        bits[k] = (bits[k] & MANTISSA_MASK) | ONE_BITS


@njit(cache=True, error_model="numpy")
def twice_atanh(z: float) -> float:
    """Return log((1+z)/(1-z)) for |z| <= 0.172: eleven terms of the series are exact there."""
    s = z * z
    tail = 1 / 17 + s * (1 / 19 + s * 1 / 21)
    tail = 1 / 9 + s * (1 / 11 + s * (1 / 13 + s * (1 / 15 + s * tail)))
    return 2.0 * z * (1.0 + s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * tail))))


@njit(cache=True, error_model="numpy")
def add_logs(
    mantissas: Floats, exponents: Any, moves: int, weight: float, out: Floats, size: int
) -> None:
    """Add weight times the logarithm of mantissa * 2^(exponent - 1023 moves) to `out`.

    Mantissas are in [1, 2); those above sqrt(2) are halved, so that the series is about one.
    """
    for k in range(size):
        up = 1.0 if mantissas[k] > SQRT_2 else 0.0
        m = mantissas[k] * (1.0 - 0.5 * up)
        exponent = np.float64(np.int64(exponents[k])) - EXPONENT_BIAS * moves + up
        out[k] += weight * (twice_atanh((m - 1.0) / (m + 1.0)) + LOG_2 * exponent)


@njit(cache=True, error_model="numpy")
def subtract_log_rising(
    x: Floats, n: float, out: Floats, size: int, work: Floats, exponents: Any
) -> None:
    """Subtract log Gamma(x + n) - log Gamma(x) of every x from `out` (see `log_rising`)."""
    for k in range(size):
        work[k] = x[k] + n
        exponents[k] = np.uint64(0)
    for k in range(size):
        y = work[k]
        rest = (x[k] - 0.5) * twice_atanh(n / (x[k] + y)) - n
        out[k] -= rest + stirling_tail(y) - stirling_tail(x[k])
    move_exponents(work, exponents, size)
    add_logs(work, exponents, 1, -n, out, size)


@njit(cache=True, error_model="numpy")
def stirling_tail(z: float) -> float:
    """Return what Stirling's series adds to (z - 1/2) log z - z + log(2 pi)/2."""
    r = 1.0 / z
    s = r * r
    return r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188))))


@njit(cache=True, error_model="numpy")
def log_rising(x: float, n: float) -> float:
    """Return log Gamma(x + n) - log Gamma(x) for x > 0 and a whole n >= 0.

    Subtracting two log-gammas loses 1e-8 at x = 1e7. Here the leading terms of Stirling's
    series are subtracted on paper: with y = x + n,

        (x - 1/2) log1p(n/x) + n log y - n + c(y) - c(x),

    c(z) = 1/(12z) - 1/(360z^3) + 1/(1260z^5) - 1/(1680z^7) + 1/(1188z^9). For x >= 12 the
    first term left out is below 3e-15; smaller x is shifted there by the recurrence.
    """
    shift = 0.0
    while x < STIRLING_FROM and n > 0.0:
        shift += math.log(x)
        x += 1.0
        n -= 1.0
    if n <= 0.0:
        return shift
    y = x + n
    return (
        shift
        + (x - 0.5) * math.log1p(n / x)
        + n * math.log(y)
        - n
        + stirling_tail(y)
        - stirling_tail(x)
    )
