"""Building the screen of the Dirichlet-multinomial (see ``bnpstream.kernels.words.screen``)."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.statistics.table import Table
from bnpstream.kernels.words.levels import (
    CHORDS,
    COUNTS,
    GRID,
    LARGEST_LEVEL,
    LONGEST,
    MANTISSA_STEPS,
    PARTS,
    Screen,
)
from bnpstream.kernels.words.screen import fill, spread_of_words

SCREEN_BYTES = 2**28
"""Levels take no more than this: 256 MB. Beyond it, rare words share rows."""
FINEST = 128
"""Levels an octave; fewer where a tiny alpha needs more octaves."""
LARGEST_STATISTIC = 2.0**53
LARGE_BASE = 1e6
"""From here on Jensen's inequality bounds a rising factorial better than log-gammas do."""


class Words(NamedTuple):
    """What a screen needs of a base measure, a value a word."""

    inverse_alpha: Floats
    """(V,): 1/alpha_w."""
    classes: NDArray[np.int32]
    """(V,): which octave alpha_w is in, damped as in an empty cluster."""
    octaves: NDArray[np.int64]
    """(classes,): alpha of a class is in (2^(octave - 1), 2^octave]."""
    least: float
    """No alpha is below it."""


def words_of(alpha: Floats, damped: float = 1.0) -> Words:
    """Return what a screen needs of a base measure of shape (V,), damped in an empty cluster."""
    octaves, classes = np.unique(octave_of(damped * alpha), return_inverse=True)
    return Words(
        1.0 / alpha, classes.reshape(alpha.shape).astype(np.int32), octaves, float(alpha.min())
    )


def octave_of(alpha: Floats | float) -> NDArray[np.int64]:
    """Return the octave of every alpha."""
    return np.ceil(np.log2(alpha)).astype(np.int64)


def no_screen(capacity: int) -> Screen:
    """Return what stands for no screen: every cluster gets its exact score."""
    return _empty(words_of(np.ones(1)), 1.0, 0, 0, capacity)


def make_screen(
    words: Words,
    total: float,
    table: Table,
    masses: Floats,
    n_clusters: int,
    burstiness: float = 0.0,
) -> Screen:
    """Return the screen of some clusters.

    Parameters
    ----------
    words : Words
        Base measure; the screen keeps its arrays, not copies.
    total : float
        A = sum_w alpha_w.
    table : Table
        Counts and lengths of the clusters.
    masses : ndarray of shape (capacity,)
        S_k.
    n_clusters : int
        K; further slots are free.
    burstiness : float
        1/s of bursty documents.
    """
    n_words, capacity = words.classes.size, table.starts.size
    n_rows = min(n_words, SCREEN_BYTES // (2 * capacity))
    screen = _empty(words, total, n_words, n_rows + 1, capacity, burstiness)
    if n_rows < n_words:
        spread = np.zeros(n_words, np.int64)
        spread_of_words(table, n_clusters, spread)
        own = n_rows // 2
        rank = np.empty(n_words, np.int64)
        rank[np.argsort(-spread, kind="stable")] = np.arange(n_words)
        screen.rows[:] = np.where(rank < own, rank, own + rank % (n_rows - own))
        screen.shared[own:-1] = True
    fill(screen, table, masses, n_clusters)
    return screen


def _empty(
    words: Words,
    total: float,
    n_words: int,
    n_rows: int,
    capacity: int,
    burstiness: float = 0.0,
) -> Screen:
    needed = np.log2(LARGEST_STATISTIC) - np.log2(words.least)
    resolution = FINEST
    while needed * resolution > LARGEST_LEVEL:
        resolution //= 2
    tops = 1.0 + (np.arange(MANTISSA_STEPS) + 1.0) / MANTISSA_STEPS
    return Screen(
        np.zeros((n_rows, capacity), np.uint16),
        np.arange(n_words, dtype=np.uint32),
        np.zeros(n_rows, np.bool_),
        np.full(capacity, -np.inf),
        np.ones(capacity),
        np.zeros(capacity),
        np.ones(capacity),
        np.stack([knots_of(int(octave), resolution) for octave in words.octaves]),
        words.classes,
        words.inverse_alpha,
        np.ceil(resolution * np.log2(tops)).astype(np.uint16),
        resolution,
        total,
        burstiness,
        np.zeros(capacity),
        np.zeros(capacity, np.uint16),
    )


def class_counts() -> Floats:
    """Return the smallest count of every class of `count_class`."""
    octaves = np.arange(np.log2(COUNTS), np.log2(LONGEST) + 1)
    eighths = 2.0 ** octaves[:, None] * (1.0 + np.arange(8) / 8)
    return np.concatenate([np.arange(COUNTS), eighths.ravel()])


@lru_cache(maxsize=1024)
def knots_of(octave: int, resolution: int) -> NDArray[np.int64]:
    """Return the knots of words with alpha in (2^(octave - 1), 2^octave], a row a class of count.

    The gain of further tokens grows with alpha at a given level, so the upper end serves all.

    Returns
    -------
    knots : ndarray of shape (classes of count, CHORDS + 1)
        k1..k4, and 2 k1 + 2 k2 + 2 k3 + k4.
    """
    levels = np.append(np.arange(0, LARGEST_LEVEL, GRID), LARGEST_LEVEL)
    counts = np.maximum(class_counts(), 2.0)[:, None]
    alpha = 2.0**octave
    gain = _rising(alpha * 2.0 ** (levels / resolution), counts) - _rising(alpha, counts)
    gain *= resolution / np.log(2.0)
    slopes = np.array([1, 3, 5, 7]) / PARTS
    knots = np.zeros((len(counts), CHORDS), np.int64)
    at, height = np.zeros(counts.shape), np.zeros(counts.shape)
    for chord, slope in enumerate(slopes):
        line = height + slope * (counts - 1.0) * (levels - at)
        above = (gain > line + 1e-6) & (levels > at)
        first = np.where(above.any(axis=1), above.argmax(axis=1), levels.size) - 1
        knot = np.maximum(levels[first][:, None], at)
        height = height + slope * (counts - 1.0) * (knot - at)
        at, knots[:, chord] = knot, knot[:, 0]
    return np.column_stack([knots, 2 * knots[:, :3].sum(axis=1) + knots[:, 3]])


def _rising(base: Floats | float, counts: Floats) -> Floats:
    """Return sum_{0 < j < count} log(base + j), or a little more."""
    base = np.asarray(base)
    jensen = (counts - 1.0) * np.log(base + 0.5 * counts)
    small = np.minimum(base, LARGE_BASE)
    exact = gammaln(small + counts) - gammaln(small + 1.0)
    return np.where(base < LARGE_BASE, exact, jensen)
