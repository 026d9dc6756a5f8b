"""Births, merges, deaths and retirements of clusters."""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from bnpstream.mixture import Event
from bnpstream.mixture.lineage import KINDS
from bnpstream.plots.style import BLUE, GREEN, ORANGE, PURPLE, stream_axes


def plot_events(rows_seen: ArrayLike, events: Iterable[Event], ax: Axes | None = None) -> Axes:
    """Draw births upwards, and merges, deaths and retirements downwards, in each bin.

    Parameters
    ----------
    rows_seen : array of shape (B,)
        Rows seen at the end of each bin of the stream.
    events : iterable of Event
        Events, such as ``lineage_`` of a fitted model.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> log = [Event("birth", 0, None, 1, 1.0), Event("death", 0, None, 150, 0.2)]
    >>> plot_events([100, 200], log).get_ylabel()
    'clusters per bin'
    """
    edges = np.append(0.0, np.asarray(rows_seen, dtype=float))
    ax = stream_axes(ax, edges[-1], "clusters per bin")
    counts = count_events(rows_seen, events)
    lost = counts["merge"] + counts["death"]
    born = counts["birth"] + counts["split"]  # one more cluster each
    ax.stairs(born, edges, color=BLUE, label="born", fill=True, linewidth=0)
    if counts["retire"].any():
        gone = -lost - counts["retire"]
        ax.stairs(gone, edges, color=GREEN, label="retired", fill=True, linewidth=0)
    ax.stairs(-lost, edges, color=PURPLE, label="died", fill=True, linewidth=0)
    ax.stairs(-counts["merge"], edges, color=ORANGE, label="merged", fill=True, linewidth=0)
    ax.axhline(0, color=ax.spines["left"].get_edgecolor(), linewidth=0.8)
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(_without_sign))
    ax.legend(frameon=False, loc="upper right", ncols=4, handlelength=1.0)
    return ax


def count_events(rows_seen: ArrayLike, events: Iterable[Event]) -> dict[str, np.ndarray]:
    """Return the numbers of clusters born, merged, dropped and retired in each bin.

    Examples
    --------
    >>> log = [Event("birth", 0, None, 1, 1.0), Event("birth", 1, None, 100, 1.0)]
    >>> count_events([100, 200], log)["birth"].tolist()
    [2, 0]
    """
    ends = np.asarray(rows_seen, dtype=np.int64)
    times: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for event in events:
        if event.level == "cluster":
            times[event.kind].append(event.n_observations)
    # The row at the end of a bin belongs to it; events after the last row go to the last bin.
    return {
        kind: np.bincount(np.searchsorted(ends[:-1], found), minlength=ends.size)
        for kind, found in times.items()
    }


def _without_sign(value: float, position: int) -> str:
    return f"{abs(value):,g}"
