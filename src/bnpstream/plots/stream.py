"""What happened along the stream."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

BLUE, ORANGE = "#0072b2", "#d55e00"
"""Two colours of the Okabe-Ito palette, told apart by every kind of colour vision."""


def plot_stream(
    rows_seen: NDArray[np.int64],
    n_clusters: NDArray[np.int64],
    log_evidence: NDArray[np.float64],
) -> Figure:
    """Draw clusters and one-step-ahead evidence against rows seen.

    Parameters
    ----------
    rows_seen : ndarray of shape (B,)
        Rows seen after every batch.
    n_clusters : ndarray of shape (B,)
        Clusters after every batch.
    log_evidence : ndarray of shape (n,)
        One-step-ahead log predictive of every row.
    """
    ends = np.asarray(rows_seen)
    starts = np.append(0, ends[:-1])
    batch_means = np.add.reduceat(log_evidence, starts) / (ends - starts)
    so_far = np.cumsum(log_evidence) / np.arange(1, len(log_evidence) + 1)
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(6.4, 5.2), sharex=True, layout="constrained"
    )
    top.step(np.append(0, ends), np.append(0, n_clusters), where="post", color=BLUE)
    top.set_ylabel("clusters")
    top.set_ylim(bottom=0)
    bottom.plot(ends, batch_means, ".", color=BLUE, label="mean of a batch")
    bottom.plot(ends, so_far[ends - 1], color=ORANGE, label="mean so far")
    bottom.set_xlabel("rows seen")
    bottom.set_ylabel("log predictive, nats a row")
    bottom.legend(frameon=False, loc="lower right")
    for axis in (top, bottom):
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.01)
    return figure
