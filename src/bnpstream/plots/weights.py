"""How rows are distributed over clusters."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike

from bnpstream.plots.style import BLUE, axes_of, thousands, tidy

POINTS = 200
"""Ranks to draw, evenly spaced on the logarithmic axis: as many as a picture can show."""


def plot_weights(weights: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw weights in order on log-log axes: a power law is a straight line.

    Parameters
    ----------
    weights : array of shape (K,)
        Share of the stream in each cluster, in any order; zeros are left out.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> plot_weights([0.2, 0.5, 0.3]).get_xlabel()
    'rank of the cluster'
    """
    ax = tidy(axes_of(ax))
    ordered = np.sort(np.asarray(weights, dtype=float))[::-1]
    ordered = ordered[ordered > 0]
    ranks = np.unique(np.geomspace(1, max(ordered.size, 1), POINTS).round().astype(int))
    ranks = ranks[: ordered.size]
    style = {"color": BLUE, "linewidth": 1.2, "markersize": 3.5, "markeredgewidth": 0}
    ax.loglog(ranks, ordered[ranks - 1], "-o", **style)
    ax.set_xlabel("rank of the cluster")
    ax.set_ylabel("share of the stream")
    for axis, values in ((ax.xaxis, ranks), (ax.yaxis, ordered)):
        wide = values.size and values.max() >= 100 * values.min()
        axis.set_major_locator(LogLocator(10, subs=(1,) if wide else (1, 2, 5), numticks=8))
        axis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(thousands))
    ax.yaxis.set_major_formatter(FuncFormatter(_percent))
    return ax


def _percent(value: float, position: int) -> str:
    return f"{100 * value:g}%"
