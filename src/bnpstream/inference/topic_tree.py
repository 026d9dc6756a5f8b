"""Another number of topics than was found: cuts of one tree.

Fewer are the topics found, joined pair by pair; more are the topics found, split one by one. What
is joined or split next does not depend on the number wanted, so of two numbers the finer topics
lie within the coarser ones.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from bnpstream.inference.topic_units import Grouping, Units, adapted, moved
from bnpstream.kernels.arrays import Integers
from bnpstream.kernels.words.topics import topic_evidence
from bnpstream.likelihoods.word_pool import WordPool

START = 0.2
"""c1 with which topics live, as a share of the tables of one."""
LOOSER = 24
"""How often c1 is halved at most, until two halves of a topic live side by side."""


def resized(units: Units, found: Grouping, n_topics: int) -> Grouping:
    """Return another number of topics: some of those found joined, or some split.

    Parameters
    ----------
    units : Units
        What is grouped.
    found : Grouping
        Their topics.
    n_topics : int
        Topics wanted; there are no more than units.
    """
    if n_topics < found.n_topics:
        other = joined(units, found, n_topics)
    else:
        topics = _split(units, found, min(n_topics, found.topics.size))
        other = adapted(units._replace(base=found.base), topics, found.strength)
    loose = START * float(units.tables.sum()) / other.n_topics  # with more, one would take all rows
    return other._replace(strength=min(other.strength, loose))


def joined(units: Units, found: Grouping, n_topics: int | None = None) -> Grouping:
    """Return fewer topics: the pair that gains most is joined, again and again.

    Parameters
    ----------
    units : Units
        What is grouped.
    found : Grouping
        Their topics.
    n_topics : int, optional
        Topics wanted; by default pairs are joined as long as the joint rises.
    """
    J, units = found.n_topics, units._replace(base=found.base)
    sums, sizes = units.sums(found.topics, J), np.bincount(found.topics).astype(np.float64)
    pool = WordPool(found.strength * units.base, found.strength, csr_array(sums.T), sums.sum(0))
    words, seats = np.full((J, J), -np.inf), gammaln(sizes[:, None] + sizes)
    for j in range(J - 1):
        words[j, j + 1 :] = words[j + 1 :, j] = pool.odds(j, np.arange(j + 1, J))
    heirs, alive = np.arange(J), np.arange(J)
    while alive.size > (n_topics or 1):
        gains = words + seats - gammaln(sizes)[:, None] - gammaln(sizes)
        i, j = divmod(int(np.argmax(gains)), J)
        if n_topics is None and gains[i, j] <= 0.0:
            break
        heirs[heirs == j] = i
        sizes[i] += sizes[j]
        alive = alive[alive != j]
        others = alive[alive != i]
        words[i, others] = words[others, i] = pool.join(i, j, others, words[i, others])
        words[j], words[:, j] = -np.inf, -np.inf
        seats[i] = seats[:, i] = gammaln(sizes[i] + sizes)
    if alive.size == J:
        return found
    return adapted(units, heirs[found.topics], found.strength)


class Halves(NamedTuple):
    """A topic that may be split in two."""

    gain: float
    """By which the joint would rise."""
    members: Integers
    """Its units."""
    leaves: NDArray[np.bool_]
    """Which of these would be a topic of their own."""


def _split(units: Units, found: Grouping, n_topics: int) -> Integers:
    """Return more topics: the one whose halves gain most is split, again and again."""
    topics, units = found.topics.copy(), units._replace(base=found.base)
    halves = [_halves(units, topics, j, found.strength) for j in range(found.n_topics)]
    while len(halves) < n_topics:
        j = int(np.argmax([one.gain for one in halves]))
        topics[halves[j].members[halves[j].leaves]] = len(halves)
        halves.append(_halves(units, topics, len(halves), found.strength))
        halves[j] = _halves(units, topics, j, found.strength)
    return topics


def _halves(units: Units, topics: Integers, j: int, strength: float) -> Halves:
    """Return how a topic is split best: halved at random, its units move to the better half."""
    members = np.flatnonzero(topics == j)
    n = members.size
    if n == 1:
        return Halves(-np.inf, members, np.zeros(1, np.bool_))
    own = Units(units.tables[members], units.base)
    start = np.random.default_rng((members[0], n)).integers(0, 2, n)
    for looser in range(LOOSER):  # with a loose base measure more topics live
        halves = moved(own, start, strength / 2.0**looser, own.order, 2)
        if 0 < np.count_nonzero(halves) < n:
            break
    else:
        halves = np.arange(n) % 2  # units that are all alike
    return Halves(_gain(own, halves, strength), members, halves > 0)


def _gain(own: Units, halves: Integers, strength: float) -> float:
    """Return by how much the joint of two halves is above that of one topic."""
    sums, sizes = own.sums(halves, 2), np.bincount(halves)
    whole = sums.sum(axis=1, keepdims=True)
    two, one = (
        topic_evidence(np.nonzero(T)[0], T[T != 0.0], T.sum(axis=0), own.base, strength)
        for T in (sums, whole)
    )
    return float(two - one + gammaln(sizes).sum() - gammaln(halves.size))
