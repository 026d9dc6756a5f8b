"""Plots along the stream."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from bnpstream.plots.style import BLUE, ORANGE, stream_axes, thousands


def plot_clusters(rows_seen: ArrayLike, n_clusters: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw the number of clusters against rows seen.

    Parameters
    ----------
    rows_seen : array of shape (B,)
        Rows seen at the end of each bin of the stream.
    n_clusters : array of shape (B,)
        Clusters at those points.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> plot_clusters([100, 200, 300], [4, 6, 7]).get_ylabel()
    'clusters'
    """
    ends, counts = np.append(0, rows_seen), np.append(0, n_clusters)
    ax = stream_axes(ax, ends[-1], "clusters")
    ax.plot(ends, counts, color=BLUE, linewidth=1.8, drawstyle="steps-post")
    ax.set_ylim(0, max(1.05 * counts.max(), 1.0))
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(thousands))
    return ax


def plot_evidence(rows_seen: ArrayLike, log_evidence: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw the one-step-ahead log predictive against rows seen, per bin and so far.

    Parameters
    ----------
    rows_seen : array of shape (B,)
        Rows seen at the end of each bin of the stream.
    log_evidence : array of shape (B,)
        Mean log predictive per row in each bin.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> plot_evidence([100, 200, 300], [-80.0, -60.0, -55.0]).get_ylabel()
    'log predictive, nats per row'
    """
    ends, means = np.asarray(rows_seen, dtype=float), np.asarray(log_evidence, dtype=float)
    so_far = np.cumsum(means * np.diff(ends, prepend=0)) / ends
    ax = stream_axes(ax, ends[-1] if ends.size else 0, "log predictive, nats per row")
    points = ax.plot(ends, means, "o", markersize=3.5, color=BLUE, label="in a bin")[0]
    points.set(markeredgewidth=0, clip_on=False)
    ax.plot(ends, so_far, linewidth=1.8, color=ORANGE, label="so far")
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.legend(frameon=False, loc="lower right", ncols=2)
    return ax


def plot_trend(rows_seen: ArrayLike, trend: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw a cluster's share of the rows along the stream.

    Parameters
    ----------
    rows_seen : array of shape (B,)
        Rows seen at the end of each bin of the stream.
    trend : array of shape (B,)
        Rows of the cluster in each bin.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> plot_trend([100, 200, 300], [5, 20, 40]).get_ylabel()
    'share of rows'
    """
    edges = np.append(0.0, np.asarray(rows_seen, dtype=float))
    shares = np.asarray(trend) / np.diff(edges)
    ax = stream_axes(ax, edges[-1], "share of rows")
    ax.stairs(shares, edges, fill=True, color=BLUE, alpha=0.25, linewidth=0)
    ax.stairs(shares, edges, color=BLUE, linewidth=1.4)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    return ax
