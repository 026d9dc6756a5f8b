"""Units, and how they are grouped: the steps that a search for topics is made of."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.words.topics import settle_units, topic_evidence

SWEEPS = 4
"""Sweeps between two looks at c1."""
STEP = 0.5 * np.log(2.0)
"""By which log c1 moves."""
FRESH = 0.1
"""Units that a topic without any counts for."""


class Units(NamedTuple):
    """What is grouped into topics."""

    tables: csr_array
    """(n, V): tables of every unit."""
    base: Floats
    """(V,): m, which sums to one."""

    @property
    def order(self) -> Integers:
        """Return the units, those with most tables first."""
        return np.argsort(-np.asarray(self.tables.sum(axis=1)).ravel(), kind="stable")

    def sums(self, topics: Integers, n_topics: int) -> Floats:
        """Return the summed tables of topics, a column each: (V, J)."""
        rows, V = self.tables, self.base.size
        of = np.repeat(topics, np.diff(rows.indptr))
        cells = rows.indices * np.int64(n_topics) + of
        sums: Floats = np.bincount(cells, rows.data, V * n_topics).astype(np.float64, copy=False)
        return sums.reshape(V, n_topics)


class Grouping(NamedTuple):
    """Units grouped into topics."""

    topics: Integers
    """(n,): the topic of every unit, numbered from the one with most units."""
    strength: float
    """c1."""
    log_joint: float

    @property
    def n_topics(self) -> int:
        """Return J."""
        return int(self.topics.max()) + 1


def moved(
    units: Units, topics: Integers, strength: float, order: Integers, n_turns: int = 1
) -> Integers:
    """Return the topics of units after turns of sweeps; of topics without units one is kept."""
    rows, base = units.tables, strength * units.base
    starts, words = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
    tables = rows.data.astype(np.float32)
    for _ in range(n_turns):
        found, topics = np.unique(topics, return_inverse=True)
        sums = units.sums(topics, found.size + int(found[-1] >= found.size))
        if settle_units(starts, words, tables, base, order, FRESH, SWEEPS, topics, sums):
            break
    return topics


def adapted(units: Units, topics: Integers, strength: float) -> Grouping:
    """Return topics without gaps, the largest first, with the c1 of the largest joint nearby."""
    _, topics, sizes = np.unique(topics, return_inverse=True, return_counts=True)
    rank = np.empty(sizes.size, np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size)
    topics = rank[topics]
    sums = units.sums(topics, sizes.size)
    totals = sums.sum(axis=0)

    def joint(log_strength: float) -> float:
        return float(topic_evidence(sums, totals, units.base, float(np.exp(log_strength))))

    at = np.log(strength)
    if sizes.size == 1:  # one topic wants no end of c1: then all words are drawn from m
        value = float(sums[:, 0] @ np.log(units.base))
    else:
        value = joint(at)
        for step in (STEP, -STEP):
            while (other := joint(at + step)) > value:
                at, value = at + step, other
    n = topics.size
    value += float(gammaln(sizes).sum() - gammaln(1.0 + n))
    return Grouping(topics, float(np.exp(at)), value)
