"""The paper's synthetic bars: small images of one horizontal or vertical bar each."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bnpstream.datasets.base import Dataset, require_positive


def bars_components(size: int = 8, baseline: float = 0.3) -> NDArray[np.float64]:
    """Return the pixel probabilities of each bar.

    A cluster spreads 1 - `baseline` evenly over the pixels of its bar, and `baseline` evenly over
    the whole image.

    Parameters
    ----------
    size : int, default 8
        Side of the square image.
    baseline : float, default 0.3
        Probability that clusters share, in [0, 1].

    Returns
    -------
    array of float64, shape (2 * size, size * size)
        Probabilities of pixels, row by row of the image: first the horizontal bars from top to
        bottom, then the vertical ones from left to right.

    Examples
    --------
    >>> bars_components(size=2, baseline=0.5)
    array([[0.375, 0.375, 0.125, 0.125],
           [0.125, 0.125, 0.375, 0.375],
           [0.375, 0.125, 0.375, 0.125],
           [0.125, 0.375, 0.125, 0.375]])
    """
    require_positive(size=size)
    if not 0 <= baseline <= 1:
        raise ValueError(f"baseline is {baseline}: give a probability from 0 to 1")
    horizontal = np.repeat(np.eye(size), size, axis=1)
    vertical = np.tile(np.eye(size), size)
    bar = np.concatenate([horizontal, vertical]) / size
    return (1 - baseline) * bar + baseline / size**2


def bars(
    n_images: int = 200,
    n_counts: int = 50,
    size: int = 8,
    baseline: float = 0.3,
    seed: int = 0,
) -> Dataset:
    """Draw the synthetic bars of the paper's first experiment.

    Each image shows one of the 2 * `size` bars, chosen uniformly, and draws its counts from a
    multinomial over the pixels. The paper has 200 images of 8 x 8 pixels and 50 counts;
    it says that a baseline makes the clusters overlap, but not how large it is.

    Parameters
    ----------
    n_images : int, default 200
        Number of rows.
    n_counts : int, default 50
        Sum of each row.
    size : int, default 8
        Side of the square image.
    baseline : float, default 0.3
        Probability that clusters share, as in `bars_components`.
    seed : int, default 0
        The same seed gives the same images.

    Returns
    -------
    Dataset
        Counts of shape (n_images, size * size); labels are rows of `bars_components`.

    Examples
    --------
    >>> images = bars(n_images=3, seed=1)
    >>> images.counts.shape, images.counts.sum(axis=1).tolist(), images.labels.shape
    ((3, 64), [50, 50, 50], (3,))
    """
    require_positive(n_images=n_images, n_counts=n_counts)
    components = bars_components(size, baseline)
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(components), size=n_images, dtype=np.intp)
    counts = rng.multinomial(n_counts, components[labels])
    return Dataset(sparse.csr_array(counts), labels, feature_names=None)
