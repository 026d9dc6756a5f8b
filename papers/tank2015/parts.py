"""The documents of the experiments, by their use."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bnpstream.datasets import load_kos, powerlaw_documents

POWERLAW_ALPHA, KOS_ALPHA = 0.75, 0.1
POWERLAW_SIZES = (1000, 7000, 2000)
"""Documents to tune by, to stream, and to predict, at full size."""
KOS_SIZE = 3430
HELD_OUT = 0.2
"""Share of KOS that is predicted."""


class Parts(NamedTuple):
    """A corpus that was split."""

    tuning: Any
    rows: Any
    held_out: Any
    labels: Any = None
    """True clusters of the rows, where they are known."""


@cache
def powerlaw_parts(scale: float = 1.0, n_words: int = 100, length: int = 50) -> Parts:
    """Return the power-law documents, or some share of them, or of other words and lengths."""
    ends = np.cumsum([round(scale * size) for size in POWERLAW_SIZES])
    drawn = powerlaw_documents(int(ends[-1]), n_words, length, POWERLAW_ALPHA, seed=0)
    order = np.random.default_rng(0).permutation(int(ends[-1]))
    tuning, rows, held_out = np.split(order, ends[:-1])
    assert drawn.labels is not None
    counts = drawn.counts
    return Parts(counts[tuning], counts[rows], counts[held_out], drawn.labels[rows])


@cache
def kos_parts(n_rows: int = KOS_SIZE, split: int = 0) -> Parts:
    """Return KOS, or so many documents of it; every number is another split.

    It is tuned by the first of the rows to stream, a tenth of the corpus.
    """
    counts = load_kos().counts
    order = np.random.default_rng(split).permutation(counts.shape[0])[:n_rows]
    n_held_out = round(HELD_OUT * n_rows)
    rows = counts[order[n_held_out:]]
    return Parts(rows[: n_rows // 10], rows, counts[order[:n_held_out]])
