"""Cluster means as small images."""

import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

COLUMNS = 8


def plot_means(
    means: NDArray[np.float64],
    weights: NDArray[np.float64],
    shape: tuple[int, int],
    captions: list[str] | None = None,
) -> Figure:
    """Draw cluster means as images, heaviest cluster first.

    Parameters
    ----------
    means : ndarray of shape (K, height * width)
        Posterior means.
    weights : ndarray of shape (K,)
        Share of the stream in each cluster.
    shape : (height, width)
        Shape of one image.
    captions : list of K strings, optional
        A second line below each weight.
    """
    order = np.argsort(-weights, kind="stable")
    columns = min(COLUMNS, len(order))
    rows = math.ceil(len(order) / columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(1.15 * columns, 1.5 * rows + 0.5),
        squeeze=False,
        layout="constrained",
    )
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, k in zip(axes.flat, order, strict=False):
        axis.imshow(means[k].reshape(shape), cmap="gray_r", vmin=0.0)
        caption = f"{weights[k]:.1%}"
        axis.set_title(f"{caption}\n{captions[k]}" if captions else caption, fontsize=8)
    figure.suptitle(f"{len(order)} clusters in order of weight", fontsize=10)
    return figure
