"""Units, and how they are grouped: the steps that a search for topics is made of."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp, psi

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.words.topics import NOTHING, settle_units, topic_evidence

SWEEPS = 4
"""Sweeps between two looks at c1."""
STEP = 0.5 * np.log(2.0)
"""By which log c1 moves."""
MOST = np.log(1e9)
"""Of log c1: topics that want more have nothing of their own."""
LOOKS = 2
"""How often c1 is found: given the m before, and the m that it makes."""
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
    base: Floats
    """(V,): m, as the topics ask for it."""
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
    """Return topics without gaps, the largest first, with the c1 and m of the largest joint nearby.

    Given c1, m is the share that words have of the tables of topics. With the m of single words a
    word that one topic has often would be missed in all the others.
    """
    _, topics, sizes = np.unique(topics, return_inverse=True, return_counts=True)
    rank = np.empty(sizes.size, np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size)
    topics, n = rank[topics], topics.size
    seats = float(gammaln(sizes).sum() - gammaln(1.0 + n))
    sums, base = units.sums(topics, sizes.size), units.base
    totals = sums.sum(axis=0)
    if sizes.size == 1:  # one topic wants no end of c1: then all words are drawn from m
        base = _shares(sums[:, 0])
        return Grouping(topics, strength, base, float(sums[:, 0] @ np.log(base)) + seats)
    words, columns = np.nonzero(sums)
    counts, at = sums[words, columns], np.log(strength)

    def joint(log_strength: float) -> float:
        return float(topic_evidence(words, counts, totals, base, float(np.exp(log_strength))))

    for look in range(LOOKS):
        if look > 0:
            alpha = np.exp(at) * base[words]
            tables: Any = alpha * (psi(alpha + counts) - psi(alpha))
            base = _shares(np.bincount(words, tables, base.size).astype(np.float64))
        value = joint(at)
        for step in (STEP, -STEP):
            while at < MOST and (other := joint(at + step)) > value:
                at, value = at + step, other
    return Grouping(topics, float(np.exp(at)), base, value + seats)


def evidence(units: Units, found: Grouping) -> float:
    """Return the log evidence of topics, given c1 alone.

    The joint is that of the best m and of one topic per unit. Here m is integrated out, by a
    symmetric Dirichlet over the tables that topics drew from it, and so is the topic of every unit
    given all others,

        log joint + log p(tables) - max_m log p(tables | m) - sum_i log p(z_i | z_-i).
    """
    drawn: Any = np.asarray(units.tables.sum(axis=0)).ravel()
    doubt = 0.0
    if found.n_topics > 1:
        sums = units.sums(found.topics, found.n_topics)
        alpha = (found.strength * found.base)[:, None]
        drawn = (alpha * (psi(alpha + sums) - psi(alpha))).sum(axis=1)
        doubt = _doubt(units, found, alpha, sums)
    drawn = drawn[drawn > 0.0]
    if drawn.size == 0:
        return found.log_joint
    best = float(drawn @ np.log(drawn / drawn.sum()))
    return found.log_joint + _spread(drawn) - best + doubt


def _spread(tables: Floats) -> float:
    """Return the log evidence of tables under a symmetric Dirichlet, its strength at its best."""
    each = 2.0 ** np.arange(-6.0, 8.0)[:, None]
    words = (gammaln(each + tables) - gammaln(each)).sum(axis=1)
    every = each[:, 0] * tables.size
    return float((words + gammaln(every) - gammaln(every + tables.sum())).max())


def _doubt(units: Units, found: Grouping, alpha: Floats, sums: Floats) -> float:
    """Return - sum_i log p(z_i | z_-i), by the scores with which units are moved."""
    rows, n, J = units.tables, found.topics.size, found.n_topics
    at, sizes, totals = found.topics, np.bincount(found.topics, minlength=J), sums.sum(axis=0)
    lengths, A = np.asarray(rows.sum(axis=1)).ravel(), alpha.sum()
    scores: Any = rows @ np.log(alpha + sums) - lengths[:, None] * np.log(A + totals)
    scores += np.log(sizes + FRESH)
    unit, word = np.repeat(np.arange(n), np.diff(rows.indptr)), rows.indices
    left = np.maximum(sums[word, at[unit]] - rows.data, 0.0)
    home = np.bincount(unit, rows.data * np.log(alpha[word, 0] + left), n)
    home -= lengths * np.log(A + totals[at] - lengths)
    scores[np.arange(n), at] = home + np.log(sizes[at] - 1.0 + FRESH)
    return float((logsumexp(scores, axis=1) - scores[np.arange(n), at]).sum())


def _shares(tables: Floats) -> Floats:
    """Return m of tables; a word without any has next to nothing."""
    floored = np.maximum(tables, NOTHING)
    shares: Floats = floored / floored.sum()
    return shares
