"""Special functions for compiled loops."""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.jit.decorators import entry, inlined, inner, lanes

LOG_2 = math.log(2.0)
STIRLING_FROM = 12.0
"""From here on the first term left out of the series is below 3e-15."""


@inner
def stirling_tail(z: float) -> float:
    """Return what Stirling's series adds to (z - 1/2) log z - z + log(2 pi)/2."""
    r = 1.0 / z
    s = r * r
    return r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188))))


@entry
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


@inner
def log_gamma_ratio(x: float, d: float) -> float:
    """Return log Gamma(x + d) - log Gamma(x) for x > 0 and any d >= 0 (see `log_rising`)."""
    shift = 0.0
    while x < STIRLING_FROM:
        shift += math.log((x + d) / x)
        x += 1.0
    y = x + d
    return (
        (x - 0.5) * math.log1p(d / x)
        + d * math.log(y)
        - d
        + stirling_tail(y)
        - stirling_tail(x)
        - shift
    )


@inlined
def split(x: float) -> Any:
    """Return mantissa in [1, 2) and exponent of a positive number."""
    bits = np.float64(x).view(np.uint64)
    mantissa = (bits & np.uint64((1 << 52) - 1)) | np.uint64(1023 << 52)
    return np.uint64(mantissa).view(np.float64), np.int64(bits >> np.uint64(52)) - 1023


@lanes
def place_of_largest(values: Any, n: int) -> int:
    """Return where the first of the largest of n values is; there must be no NaN."""
    most = values[0]
    for k in range(1, n):
        most = max(most, values[k])
    for k in range(n):
        if values[k] == most:
            return k
    return 0
