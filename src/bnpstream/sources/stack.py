"""Rows of several batches as one."""

from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from bnpstream.kernels.text.bags import Bags


def stacked(parts: list[Any]) -> Any:
    """Return the rows of all parts, which have the same kind (see ``sources.records.Kind``).

    Examples
    --------
    >>> stacked([[{"rain": 1}], [{"sun": 2}]])
    [{'rain': 1}, {'sun': 2}]
    >>> stacked([np.ones((1, 2)), np.zeros((1, 2))]).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if not parts:
        return []
    if all(isinstance(part, Bags) for part in parts):
        return Bags.joined(parts)
    if isinstance(parts[0], list | Bags):
        return [row for part in parts for row in part]
    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)
