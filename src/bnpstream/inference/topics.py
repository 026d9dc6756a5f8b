"""Topics: a second level above the clusters, found without a number.

Clusters are fine: they predict well, and there are many. Topics are what a person wants to read. A
topic is a distribution over words, phi_j ~ Dir(c1 m), with m the base measure of the clusters. What
is grouped are *units*: the clusters, or rows where rows say more than clusters (`engine.topics`).
A unit draws its words from Dir(c phi_j), so its counts x are worth

    t_w = min(x_w, c m_w [psi(c m_w + x_w) - psi(c m_w)])

tables: a word that a cluster has a hundred times is a hundred times seen, but not a hundred times
chosen. Given tables the joint of a grouping is closed,

    sum_j [log B(c1 m + T_j) - log B(c1 m)] + log p(grouping),

with T_j the summed tables of topic j and a Dirichlet process of concentration one over units. It
is climbed from the top: all topics are halved at random and units move to the topic with the best
score, again and again; c1 follows by the joint itself. Sequential seating, the heaviest units
first, ends thousands of nats below. The number of topics is where the joint is largest. At last
the topics found are halved and settled again with a stiff base measure (4 c1), in which only
topics that many units share survive.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, psi

from bnpstream.inference.odds import Odds, pool_of
from bnpstream.inference.tree import best_joins
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.words.topics import settle_units, topic_evidence
from bnpstream.likelihoods.word_pool import WordPool
from bnpstream.mixture import MixtureState, Model

SWEEPS = 4
"""Sweeps between two looks at c1."""
MOST_TOPICS = 512
LEAST_LOOKED = 16
"""Topics below which the joint may fall and rise again."""
STIFF, ROUNDS = 4.0, 3
"""What c1 is multiplied by when topics are settled again, and how often that is tried."""
STEP = 0.5 * np.log(2.0)
"""By which log c1 moves."""
FRESH = 0.1
"""Units that a topic without any counts for."""
HOPE = 4.0
"""Gains of the last doubling that all later ones together are not expected to exceed."""
FEW, NEARLY_ALL = 32, 0.9
"""Clusters that are few enough to be read one by one, if they hold this share of the rows."""
LEAST_COUNT = 0.5
"""Less of a word than this, and a cluster does not have it."""


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
        n = topics.size
        belongs = csr_array((np.ones(n), (topics, np.arange(n))), (n_topics, n))
        return np.ascontiguousarray((belongs @ self.tables).toarray().T)


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


def tables_of(counts: csr_array, base: Floats, strength: float) -> csr_array:
    """Return the tables of counts: how often their words were chosen, E[t | x] under c m.

    Parameters
    ----------
    counts : csr_array of shape (n, V)
        Counts of words, not necessarily whole.
    base : ndarray of shape (V,)
        m.
    strength : float
        c.

    Examples
    --------
    >>> counts = csr_array(np.array([[1.0, 8.0]]))
    >>> tables_of(counts, np.array([0.5, 0.5]), 1.0).toarray().round(3)
    array([[1.   , 2.022]])
    """
    tables = damped(counts.data, strength * base[counts.indices])
    return csr_array((tables, counts.indices, counts.indptr), shape=counts.shape)


def damped(counts: Floats, alpha: Floats) -> Floats:
    """Return the tables of single counts, given alpha = c m of their words."""
    return np.minimum(counts, alpha * (psi(alpha + counts) - psi(alpha)))


def grouped(units: Units, least: float = -np.inf, most: int = MOST_TOPICS) -> Grouping | None:
    """Return the topics of units, as many as the joint asks for.

    Parameters
    ----------
    units : Units
        What is grouped.
    least : float
        A joint that must be reached; None is returned as soon as there is no hope of it.
    most : int
        Topics at most.
    """
    n = units.tables.shape[0]
    rng = np.random.default_rng(0)
    order = units.order
    best = current = _adapted(units, np.zeros(n, np.int64), max(units.tables.sum() / 10.0, 1.0))
    for level in range(1, most.bit_length()):
        if 2 * current.n_topics > n:
            break
        before = current.log_joint
        current = _settled(units, _halved(current.topics, rng), current.strength, order, 2)
        if current.log_joint > best.log_joint:
            best = current
        elif 2**level >= LEAST_LOOKED:
            break
        gain = max(current.log_joint - before, 0.0)
        if level > 1 and best.log_joint + HOPE * gain < least:
            return None
    for _ in range(ROUNDS):
        if best.n_topics == 1:
            break
        stiff = _moved(units, _halved(best.topics, rng), STIFF * best.strength, order, 2 * SWEEPS)
        found = _settled(units, stiff, best.strength, order, 1)
        if found.log_joint > best.log_joint:
            best = found
    return best if best.log_joint >= least else None


def few_apart(units: Units, found: Grouping, masses: Floats) -> Grouping:
    """Return clusters as topics where they have nothing in common and few hold nearly all rows.

    Parameters
    ----------
    units : Units
        Clusters, the heaviest first.
    found : Grouping
        One topic: no group of clusters is more alike than all of them.
    masses : ndarray of shape (n,)
        Their masses.
    """
    n_heavy = int(np.searchsorted(np.cumsum(masses), NEARLY_ALL * masses.sum())) + 1
    if not 1 < n_heavy <= FEW:
        return found
    topics = np.arange(masses.size)
    heavy = units.tables[:n_heavy].toarray() + found.strength * units.base
    logs = np.log(heavy / heavy.sum(axis=1, keepdims=True))
    topics[n_heavy:] = np.argmax(units.tables[n_heavy:] @ logs.T, axis=1)
    return Grouping(topics, found.strength, found.log_joint)


def resized(units: Units, found: Grouping, n_topics: int) -> Grouping:
    """Return another number of topics: some of those found joined, or halved and settled again.

    Parameters
    ----------
    units : Units
        What is grouped.
    found : Grouping
        Their topics.
    n_topics : int
        Topics wanted; there are no more than units.
    """
    rng, order = np.random.default_rng(1), units.order
    n_topics = min(n_topics, units.tables.shape[0])
    strength = found.strength
    for _ in range(2 * MOST_TOPICS.bit_length()):
        if found.n_topics >= n_topics:
            break
        strength /= 2.0  # with a loose base measure more topics live
        topics = _moved(units, _halved(found.topics, rng), strength, order, SWEEPS)
        found = _adapted(units, topics, strength)
    J = found.n_topics
    sums = units.sums(found.topics, J)
    pool = WordPool(found.strength * units.base, found.strength, csr_array(sums.T), sums.sum(0))
    table = np.full((J, J), -np.inf)
    for j in range(J - 1):
        table[j, j + 1 :] = table[j + 1 :, j] = pool.odds(j, np.arange(j + 1, J))
    heirs, alive = np.arange(J), np.arange(J)
    while alive.size > n_topics:
        i, j = divmod(int(np.argmax(table)), J)
        heirs[heirs == j] = i
        alive = alive[alive != j]
        others = alive[alive != i]
        table[i, others] = table[others, i] = pool.join(i, j, others, table[i, others])
        table[j], table[:, j] = -np.inf, -np.inf
    return _adapted(units, heirs[found.topics], found.strength)


def _halved(topics: Integers, rng: np.random.Generator) -> Integers:
    """Return twice as many topics, every one cut into two at random."""
    halved: Integers = 2 * topics + rng.integers(0, 2, topics.size)
    return halved


def _moved(units: Units, topics: Integers, strength: float, order: Integers, n: int) -> Integers:
    """Return the topics of units after some sweeps."""
    J = int(topics.max()) + 1
    sums, sizes = units.sums(topics, J), np.bincount(topics, minlength=J).astype(np.float64)
    rows, topics = units.tables, topics.copy()
    base = strength * units.base
    settle_units(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data, base, order, FRESH,
        n, topics, sums, sums.sum(axis=0), sizes,
    )  # fmt: skip
    return topics


def _settled(
    units: Units, topics: Integers, strength: float, order: Integers, n_looks: int
) -> Grouping:
    """Return topics after sweeps, c1 following them."""
    for _ in range(n_looks):
        found = _adapted(units, _moved(units, topics, strength, order, SWEEPS), strength)
        topics, strength = found.topics, found.strength
    return found


def _adapted(units: Units, topics: Integers, strength: float) -> Grouping:
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


def separate_evidence(counts: csr_array, groups: Integers, base: Floats, strength: float) -> float:
    """Return the log joint of rows in groups that have nothing in common but c m.

    It is what a row-wise grouping into topics has to beat: Dirichlet-multinomials of the counts of
    groups, and a Dirichlet process, its concentration at its best, over rows.

    Parameters
    ----------
    counts : csr_array of shape (n, V)
        Counts of words of rows.
    groups : ndarray of shape (n,)
        The cluster of every row.
    base, strength : ndarray of shape (V,), float
        m and c.
    """
    _, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n, K = members.size, sizes.size
    sums = csr_array((np.ones(n), (members, np.arange(n))), (K, n)) @ counts
    alpha = strength * base[sums.indices]
    lengths = np.asarray(sums.sum(axis=1)).ravel()
    words = float((gammaln(alpha + sums.data) - gammaln(alpha)).sum())
    words += float((gammaln(strength) - gammaln(strength + lengths)).sum())
    a = 2.0 ** np.arange(-4.0, 24.0)
    seats = K * np.log(a) + gammaln(sizes).sum() + gammaln(a) - gammaln(a + n)
    return words + float(seats.max())


def grouped_by_odds(
    model: Model,
    state: MixtureState,
    n_topics: int | None = None,
    groups: Integers | None = None,
) -> Integers:
    """Return groups of the clusters of any family: pairs are joined while the model's odds say so.

    Parameters
    ----------
    model, state
        The posterior; not changed.
    n_topics : int, optional
        Groups wanted, whatever the odds.
    groups : ndarray of shape (K,), optional
        Groups to begin with; by default every cluster is one.

    Returns
    -------
    groups : ndarray of shape (K,)
        By slot; numbered from the heaviest.
    """
    odds = Odds(model, state, pool_of(model, state))
    first = np.arange(state.n_clusters) if groups is None else groups
    n_first = int(first.max()) + 1
    heirs = np.arange(n_first)
    if groups is not None:
        odds = odds.summed(first, n_first)
    for join in best_joins(odds, np.arange(n_first), n_topics or 1):
        if n_topics is None and join.log_odds <= 0.0:
            break
        heirs[heirs == join.j] = join.i
    return by_mass(heirs[first], state.masses)


def by_mass(groups: Integers, masses: Floats) -> Integers:
    """Return groups numbered without gaps, the heaviest first."""
    _, groups = np.unique(groups, return_inverse=True)
    heaviest = np.argsort(-np.bincount(groups, masses), kind="stable")
    rank = np.empty(heaviest.size, np.int64)
    rank[heaviest] = np.arange(heaviest.size)
    return rank[groups]
