"""Handwritten digits, which come with scikit-learn."""

import numpy as np
from scipy import sparse

from bnpstream.datasets.base import Dataset


def digits() -> Dataset:
    """Return scikit-learn's 1797 handwritten digits as counts.

    Returns
    -------
    Dataset
        Counts 0..16 of ink in the 8 x 8 pixels of an image, of shape (1797, 64); labels are the
        digits 0..9.

    Examples
    --------
    >>> images = digits()
    >>> images.counts.shape, int(images.counts.max()), images.labels[:5].tolist()
    ((1797, 64), 16, [0, 1, 2, 3, 4])
    """
    # Here, so that other data sets do not import scikit-learn.
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return Dataset(
        sparse.csr_array(bunch.data.astype(np.int64)),
        bunch.target.astype(np.intp),
        list(bunch.feature_names),
    )
