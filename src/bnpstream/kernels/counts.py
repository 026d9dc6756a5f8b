"""Whether a table of integers holds counts of words."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 3
"""Word counts are mostly 0, and most others are at most this."""


def are_word_counts(table: NDArray[Any]) -> bool:
    """Return whether dense integers look like word counts, and not like measurements.

    A row has few of many words, and most of these once or twice. Pixels, ages and answers on a
    scale are integers too, but a unit of theirs is not an event: a multinomial distribution would
    take the smallest difference between two rows for a difference between clusters.

    Examples
    --------
    >>> are_word_counts(np.array([[0, 2, 0, 1], [0, 0, 0, 1]]))
    True
    >>> are_word_counts(np.array([[33, 172], [58, 165]]))
    False
    """
    if table.shape[1] < 2 or table.min(initial=0) < 0:
        return False
    counts = table[table > 0]
    small = int(np.count_nonzero(counts <= MOST))
    return 2 * counts.size < table.size and 2 * small >= counts.size
