"""Looking for the scale that predicts best: uphill in steps, then a parabola."""

from collections.abc import Callable

import numpy as np

LEAST, MOST = 1.0 / 512.0, 4096.0
"""Scales that are tried, relative to the guess."""


def search(
    score: Callable[[float], float],
    start: float,
    factor: float,
    most_steps: int,
    toll: float = 0.0,
) -> float:
    """Return where a function of a log scale is largest.

    From `start`, steps of `factor` go uphill until the score falls; then a parabola through the
    best one and its neighbours says where between them the top is.

    Parameters
    ----------
    score : callable
        Scale -> predictive score.
    start : float
        Where to begin.
    factor : float
        Ratio of two scales that are compared.
    most_steps : int
        Scores to ask for at most, three at least.
    toll : float
        What a step up must be worth. Where all rows are alike, any larger scale is as good.

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
    """Return how far from the best step a parabola through it and its neighbours has its top."""
    if best - 1 not in known or best + 1 not in known:
        return 0.0
    left, middle, right = (known[best + i] for i in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    return float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend < 0.0 else 0.0
