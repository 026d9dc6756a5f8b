"""The one-dimensional density of v = log U: its mode, and integrals over it.

The density of log U is assumed to be log-concave, as it is for every normalized generalized gamma
process: then its mode is the only root of a decreasing function, and the trapezoid rule converges
geometrically. ``bnpstream.testing.check_prior`` checks this for other measures.
"""

from collections.abc import Callable

import numpy as np

from bnpstream.kernels.measures.rules import (
    FAR,
    LONGEST_STEP,
    MOST_NODES,
    NEWTON_STEPS,
    NO_ROOT,
    PLAIN_STEPS,
    TAIL_NATS,
    TOO_WIDE,
    TRAPEZOID_NODES,
    TRAPEZOID_SPACING,
    newton_step,
)
from bnpstream.priors.base import Floats

WIDEST = MOST_NODES * TRAPEZOID_SPACING
"""Range of log u, in nats, that can be integrated over."""


def find_mode(
    score: Callable[[float], tuple[float, float]],
    start: float,
    enclosed: tuple[float, float] | None = None,
) -> float:
    """Return the root of a decreasing function by Newton's method, kept inside a bracket.

    Parameters
    ----------
    score : callable
        v -> (g(v), g'(v)), g decreasing: the derivative of a log-concave log density.
    start : float
        First guess: the last root.
    enclosed : tuple of float, optional
        Bounds of the root, if known.
    """
    first, last = enclosed or (-np.inf, np.inf)
    low, high, longest = -np.inf, np.inf, LONGEST_STEP
    v = min(max(start, first - FAR), last + FAR)
    for taken in range(NEWTON_STEPS):
        if taken == PLAIN_STEPS and enclosed:
            low, high = max(low, first), min(high, last)
            v, longest = min(max(v, low), high), high - low
        found, v, low, high, longest = newton_step(*score(v), v, low, high, longest, taken)
        if found:
            return float(v)
    raise FloatingPointError(NO_ROOT)


def trapezoid_nodes(log_density: Callable[[Floats], Floats], mode: float) -> Floats:
    """Return equidistant nodes that cover a log-concave density to TAIL_NATS below its mode."""
    level = float(log_density(np.array([mode]))[0]) - TAIL_NATS

    def first_below(widths: Floats, direction: float) -> int:
        """Return the first place where the density has fallen, or 0."""
        with np.errstate(over="ignore"):  # far out the density is exp(-inf)
            return int(np.argmax(log_density(mode + direction * widths) < level))

    def end(direction: float) -> float:
        widths = np.append(0.0, 2.0 ** np.arange(-20, 4))
        while not (outside := first_below(widths, direction)):
            if widths[-1] > WIDEST:
                raise ValueError(TOO_WIDE)
            widths = widths[-1] * 2.0 ** np.arange(4)
        finer = np.linspace(widths[outside - 1], widths[outside], 40)
        return mode + direction * float(finer[first_below(finer, direction)])

    low, high = end(-1.0), end(1.0)
    count = max(TRAPEZOID_NODES, int(np.ceil((high - low) / TRAPEZOID_SPACING)))
    return np.linspace(low, high, count)
