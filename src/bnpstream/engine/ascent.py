"""Search for the scale that predicts best: uphill in steps, then a parabola."""

from collections.abc import Callable

import numpy as np

LEAST, MOST = 1.0 / 512.0, 4096.0
"""Range of scales, relative to the guess."""


def search(
    score: Callable[[float], float],
    start: float,
    factor: float,
    most_steps: int,
    toll: float = 0.0,
) -> float:
    """Return the maximum of a function of a log scale.

    From `start`, go uphill in steps of `factor` until the score falls; then interpolate with a
    parabola through the best step and its neighbours.

    Parameters
    ----------
    score : callable
        Scale -> predictive score.
    start : float
        Where to start.
    factor : float
        Ratio of neighbouring scales.
    most_steps : int
        Most scores to compute, at least three.
    toll : float
        Least gain that justifies a step up. If all rows are alike, any larger scale is as good.

    Examples
    --------
    >>> import math
    >>> round(search(lambda c: -(math.log(c / 3.5) ** 2), start=1.0, factor=2.0, most_steps=9), 6)
    3.5
    """

    def height(at: int) -> float:
        return score(start * factor**at) - toll * max(at, 0)

    known = {0: height(0), 1: height(1)}
    step = 1 if known[1] > known[0] else -1
    at = max(known, key=known.__getitem__)
    while len(known) < most_steps:
        at += step
        if not LEAST <= start * factor**at <= MOST:
            break
        known[at] = height(at)
        if known[at] <= known[at - step]:
            break
    best = max(known, key=known.__getitem__)
    return start * float(factor ** (best + _top(known, best)))


def _top(known: dict[int, float], best: int) -> float:
    """Return the distance from the best step to the top of a parabola through its neighbours."""
    if best - 1 not in known or best + 1 not in known:
        return 0.0
    left, middle, right = (known[best + i] for i in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    return float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend < 0.0 else 0.0
