"""Special functions for compiled loops.

Functions of whole arrays are plain arithmetic without calls and branches, so that the compiler
turns them into vector instructions: a logarithm then costs about a nanosecond, not ten.
"""

import math

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


@njit(cache=True, error_model="numpy")
def twice_atanh(z: float) -> float:
    """Return log((1+z)/(1-z)) for |z| <= 0.172: eleven terms of the series are exact there."""
    s = z * z
    tail = 1 / 17 + s * (1 / 19 + s * 1 / 21)
    tail = 1 / 9 + s * (1 / 11 + s * (1 / 13 + s * (1 / 15 + s * tail)))
    return 2.0 * z * (1.0 + s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * tail))))


@njit(cache=True, error_model="numpy")
def replace_by_logs(x: Floats, size: int) -> None:
    """Replace x[:size] by logarithms; -inf where x is not positive.

    The exponent is read off the bits; mantissas above sqrt(2) are halved, so that the series is
    about one. Subnormal numbers are not expected.
    """
    bits = x.view(np.uint64)
    for k in range(size):
        positive = x[k] > 0.0
        octave = np.float64(np.int64(bits[k] >> EXPONENT_BITS) - EXPONENT_BIAS)
        bits[k] = (bits[k] & MANTISSA_MASK) | ONE_BITS
        up = 1.0 if x[k] > SQRT_2 else 0.0
        m = x[k] * (1.0 - 0.5 * up)
        log = twice_atanh((m - 1.0) / (m + 1.0)) + LOG_2 * (octave + up)
        x[k] = log if positive else -np.inf


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
