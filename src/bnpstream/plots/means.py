"""Cluster means as small images."""

import math

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from bnpstream.plots.style import axes_of

COLUMNS = 8
GAP = 0.12
"""Gap between two images, in widths of an image."""
LINE = 0.17
"""Height of a line of text, in widths of an image."""


def plot_means(
    means: ArrayLike,
    weights: ArrayLike,
    shape: tuple[int, int],
    captions: list[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw cluster means as images side by side, largest cluster first.

    Parameters
    ----------
    means : array of shape (K, height * width)
        Posterior means.
    weights : array of shape (K,)
        Share of the stream in each cluster.
    shape : (height, width)
        Shape of one image.
    captions : list of K strings, optional
        A second line above each image, below its weight.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> len(plot_means([[0, 1, 2, 3], [3, 2, 1, 0]], [0.4, 0.6], (2, 2)).images)
    2
    """
    images = np.asarray(means, dtype=float).reshape(-1, *shape)
    shares = np.asarray(weights, dtype=float)
    columns = max(1, min(COLUMNS, len(images)))
    rows = max(1, math.ceil(len(images) / columns))
    text = LINE * (1 if captions is None else 2)
    tall = shape[0] / shape[1]
    down, right = tall + text + GAP, 1 + GAP
    ax = axes_of(ax, (1.15 * columns, 1.15 * rows * down / right + 0.4))
    for place, k in enumerate(np.argsort(-shares, kind="stable")):
        left, top = right * (place % columns), down * (place // columns) + text
        extent = (left, left + 1, top + tall, top)
        ax.imshow(images[k], cmap="gray_r", vmin=min(0.0, images[k].min()), extent=extent)
        lines = [f"{shares[k]:.1%}"] + ([] if captions is None else [captions[k]])
        ax.text(left + 0.5, top - 0.03, "\n".join(lines), ha="center", va="bottom", fontsize=7)
    ax.set(xlim=(0, right * columns - GAP), ylim=(down * rows - GAP, 0), aspect="equal")
    ax.set_axis_off()
    ax.set_title(f"{len(images)} clusters in order of weight", fontsize=10)
    return ax
