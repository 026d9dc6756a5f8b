"""The contents of a data set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


# Without eq=False, comparing two sets would compare arrays and fail on their truth value.
@dataclass(frozen=True, eq=False)
class Dataset:
    """Hold rows of counts and what is known about them.

    Attributes
    ----------
    counts : csr_array of int64, shape (n, V)
        One row per observation.
    labels : array of intp, shape (n,), or None
        The true cluster of each row, if known.
    feature_names : list of str, length V, or None
        Names of the columns, if they have names.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> votes = sparse.csr_array(np.array([[2, 0, 1]]))
    >>> Dataset(votes, labels=None, feature_names=["aye", "nay", "maybe"]).counts.shape
    (1, 3)
    """

    counts: sparse.csr_array[np.int64]
    labels: NDArray[np.intp] | None
    feature_names: list[str] | None


def require_positive(**values: float) -> None:
    """Raise a ValueError that names the first of `values` that is not above zero.

    Examples
    --------
    >>> require_positive(n_images=200, size=0)
    Traceback (most recent call last):
    ValueError: size is 0: give a value above 0
    """
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} is {value}: give a value above 0")
