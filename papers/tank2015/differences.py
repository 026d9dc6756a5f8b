"""Differences between runs over the same rows: their errors, how they are written and drawn."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from tank2015.showing import spread
from tank2015.steps import mean_and_error


def ahead(one: Any, other: Any) -> tuple[float, float]:
    """Return by how much one is ahead of another in the same orders: mean and standard error."""
    return mean_and_error(np.asarray(one) - np.asarray(other))


def apart(one: Any, other: Any) -> tuple[float, float]:
    """Return by how much one is ahead of another in orders of its own: mean and standard error."""
    (mean, error), (other_mean, other_error) = mean_and_error(one), mean_and_error(other)
    return mean - other_mean, float(np.hypot(error, other_error))


def over_splits(differences: Any) -> tuple[float, float]:
    """Return the mean of differences, a row per split, and its standard error.

    That of the mixed-effects model with a random effect of each split, by restricted maximum
    likelihood, which is closed-form because all splits have as many orders. With no more spread
    between splits than orders explain, all differences count as independent.

    Examples
    --------
    >>> over_splits([[1.0, 1.0], [3.0, 3.0]])
    (2.0, 1.0)
    >>> round(over_splits([[1.0, 3.0], [3.0, 1.0]])[1], 3)
    0.577
    """
    values = np.asarray(differences, float)
    n_orders = values.shape[1]
    between = n_orders * values.mean(axis=1).var(ddof=1)
    within = values.var(axis=1, ddof=1).mean() if n_orders > 1 else 0.0
    variance = between if between >= within else values.var(ddof=1)
    return float(values.mean()), float((variance / values.size) ** 0.5)


def signed(mean: float, error: float, digits: int = 3) -> tuple[float, str]:
    """Return a cell of a table: a difference with its standard error."""
    value, text = spread(mean, error, digits)
    return value, text if value < 0 else f"+{text}"


def text_of(difference: tuple[float, float], digits: int = 3) -> str:
    """Return a difference with its standard error as text."""
    return signed(*difference, digits)[1]


def beyond_noise(difference: tuple[float, float], errors: float = 2.0) -> bool:
    """Return whether a difference is farther from zero than so many standard errors."""
    return abs(difference[0]) > errors * difference[1]


def from_zero(ax: Axes) -> None:
    """Begin the vertical axis at zero, with room above the highest point."""
    ax.set_ylim(0.0, 1.04 * ax.get_ylim()[1])
