"""The expected number of clusters of a normalized random measure, without simulation.

Let T be the total mass of the random measure, G_n ~ Gamma(n, 1) and U_n = G_n / T. An atom of
size s is hit by none of n draws with probability (1 + s/T)^-n = E[e^{-s U_n}], so by Mecke's
formula

    E[K_n] = E int (1 - e^{-s U_n}) rho(s) ds = E[phi(U_n)] = int_0^inf kappa_1(u) P(U_n > u) du.

T is known through its Laplace transform E[e^{-wT}] = e^{-phi(w)}, and inverting that of G_n gives

    P(U_n > u) = 1/(2 pi i) int e^{-phi(s u)} (1 - s)^-n ds / s    along Re s = c, 0 < c < 1.

The logarithm of the integrand is convex on (0, 1): the line through its minimum is the path of
steepest descent, where nothing cancels.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from bnpstream.kernels.measures.rules import NEWTON_STEPS
from bnpstream.priors.base import Floats

NEGLIGIBLE = 1e-12
LARGEST_LOG_UNIT = 250.0
FIRST_STEP, GROWTH, LARGEST_STEP = 0.02, 1.5, 4.0
STEP = 0.1
PHASE = 0.25
"""With STEP = 0.1 the phase of (1 - s)^-n turns by at most STEP / PHASE = 0.4 from node to node."""


def expected_laplace_exponent(
    laplace_exponent: Callable[..., np.ndarray], density: Callable[[Floats], Floats], n: int
) -> float:
    """Return E[phi(U_n)].

    Parameters
    ----------
    laplace_exponent : callable
        phi, for complex arguments.
    density : callable
        kappa_1 = phi'.
    n : int
        Number of observations.
    """

    def survival(v: float) -> float:
        return _survival(laplace_exponent, density, n, v)

    # In units of u with phi(u) = 1 the total mass T is of order one, so U_n is of order n.
    unit = _log_unit(laplace_exponent)
    # Steps that grow away from there cover its distribution, however sharp or heavy-tailed.
    center = float(unit + np.log(n))
    low, high, step = [center], [center], FIRST_STEP
    while (1.0 - survival(low[-1])) * laplace_exponent(np.exp(low[-1])) > NEGLIGIBLE:
        low, step = [*low, low[-1] - step], min(GROWTH * step, LARGEST_STEP)
    step = FIRST_STEP
    while survival(high[-1]) * laplace_exponent(np.exp(high[-1])) > NEGLIGIBLE:
        high, step = [*high, high[-1] + step], min(GROWTH * step, LARGEST_STEP)
    # Below the first edge the survival is one and the integral is phi itself.
    edges = np.array([*reversed(low), *high[1:]])
    panels = np.diff(edges)[:, None]
    nodes, weights = np.polynomial.legendre.leggauss(12)
    inner = (edges[:-1, None] + 0.5 * panels * (1.0 + nodes)).ravel()
    integrand = np.exp(inner) * density(np.exp(inner)) * np.array([survival(v) for v in inner])
    above = (0.5 * panels * weights).ravel() @ integrand
    return float(laplace_exponent(np.exp(edges[0]))) + float(above)


def _log_unit(laplace_exponent: Callable[..., np.ndarray]) -> float:
    """Return log u for which phi(u) = 1."""

    def excess(v: float) -> float:
        return float(laplace_exponent(np.exp(v))) - 1.0

    if not excess(-LARGEST_LOG_UNIT) < 0.0 < excess(LARGEST_LOG_UNIT):
        raise ValueError(
            "the total mass of this prior is outside the range of a double; "
            "take a larger discount, or a concentration nearer to one"
        )
    return float(brentq(excess, -LARGEST_LOG_UNIT, LARGEST_LOG_UNIT))


def _survival(
    laplace_exponent: Callable[..., np.ndarray],
    density: Callable[[Floats], Floats],
    n: int,
    v: float,
) -> float:
    """Return P(log U_n > v), by the trapezoid rule along the line of steepest descent."""
    u = np.exp(v)

    def slope(logit: float) -> float:
        c = expit(logit)
        return float(n * np.exp(logit) - c * u * density(c * u)[0] - 1.0)

    c = expit(brentq(slope, max(-500.0, -700.0 - v), 500.0))
    # Along s = c + i y the integrand lives on the scale of `width`, then falls like a power of
    # y while its phase turns like n atan(y): the nodes are equidistant in
    # t(y) = asinh(y / width) + PHASE n atan(y), which is both in one.
    width = 1.0 / np.sqrt(n / (1.0 - c) ** 2 + 1.0 / c**2)
    reach = np.expm1(40.0 / n) + 9.0 / np.sqrt(n)
    end = np.arcsinh(reach / width) + PHASE * n * np.arctan(reach)
    t = np.arange(0.0, end, STEP)
    # If each of the two terms is t/2 or less, t(y) is t or less: a start below the root.
    y = np.minimum(
        width * np.sinh(np.minimum(t / 2, 700.0)), np.tan(np.minimum(t / (2 * PHASE * n), 1.5))
    )
    for _ in range(NEWTON_STEPS):  # t(y) is concave, so Newton rises to the root from below
        stretch = 1.0 / np.hypot(y, width) + PHASE * n / (1.0 + y * y)
        rise = (t - np.arcsinh(y / width) - PHASE * n * np.arctan(y)) / stretch
        y += rise
        if np.all(rise <= 1e-13 * y):
            break
    s = c + 1j * y
    log_integrand = -laplace_exponent(s * u) - n * np.log1p(-s) - np.log(s)
    integrand = np.exp(log_integrand).real / (1.0 / np.hypot(y, width) + PHASE * n / (1.0 + y * y))
    return float(integrand.sum() - 0.5 * integrand[0]) * STEP / np.pi
