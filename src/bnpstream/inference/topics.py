"""Topics: a second level above the clusters, found without a number.

Clusters are fine: they predict well, and there are many. Topics are what a person wants to read. A
topic is a distribution over words, phi_j ~ Dir(c1 m). What is grouped are *units*: the clusters, or
rows where rows say more than clusters (`engine.topic_finder`). A unit draws its words from
Dir(c phi_j), so its counts x are worth

    t_w = min(x_w, c m_w [psi(c m_w + x_w) - psi(c m_w)])

tables: a word that a cluster has a hundred times is a hundred times seen, but not a hundred times
chosen. Given tables the joint of a grouping is closed,

    sum_j [log B(c1 m + T_j) - log B(c1 m)] + log p(grouping),

with T_j the summed tables of topic j and a Dirichlet process of concentration one over units. The
joint is climbed from the top: all topics are cut at random, units move to the topic with the best
score, and c1 and m follow by the joint itself, again and again until it falls. Pairs of topics are
joined while that raises the joint. At last the topics found are halved and settled again with a
stiff base measure (4 c1), in which only topics that many units share survive. Whatever was found
is compared with a single topic by its evidence (`evidence`): the joint alone takes the m that fits
best as given, which favors one topic, and counts a unit that fits two topics as if it fitted one.
Seating the heaviest units first, one after the other, ends thousands of nats below.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, psi

from bnpstream.inference.odds import Odds, pool_of
from bnpstream.inference.topic_tree import START, joined
from bnpstream.inference.topic_units import MOST, Grouping, Units, adapted, evidence, moved
from bnpstream.inference.tree import best_joins
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.mixture import MixtureState, Model


class Effort(NamedTuple):
    """What a search may take."""

    n_cuts: int
    """Parts that every topic is cut into at a time, on the way from the top."""
    n_rounds: int
    """How often topics are settled again with a stiff base measure."""
    n_doublings: int
    """How often the number of topics is doubled to give the last rounds another start."""


THOROUGH, QUICK = Effort(4, 3, 1), Effort(8, 1, 0)
MOST_TOPICS = 512
LEAST_LOOKED = 64
"""Topics below which the joint may fall and rise again."""
ENOUGH = 0.7
"""Share of the topics cut that joining leaves at most, where more cuts would not find more."""
FEW_ROWS = 10.0
"""Mean rows of topics at least: smaller groups are clusters, not a level above them."""
SETTLING = 0.01
"""What joining topics and settling them again may add, as a share of the joint."""
STIFF = 4.0
"""What c1 is multiplied by when topics are settled again."""
READABLE, STARTS = 32, (8, 4, 4)
"""Topics that a person reads through, and how units are cut on the way to them and beyond."""
N_CHANCES = 9
"""Searches among words at random: topics that are none pass one time in ten at most."""
FEW, NEARLY_ALL, LEAST_ROWS = 256, 0.9, 5.0
"""Clusters that are few enough to be topics, if they hold this share of the rows, and half of them
so many each."""
LEAST_COUNT = 0.5
"""Less of a word than this, and a cluster does not have it."""


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


def grouped(
    units: Units,
    least: float = -np.inf,
    most: int = MOST_TOPICS,
    effort: Effort = THOROUGH,
    several: bool = False,
) -> Grouping | None:
    """Return the topics of units, as many as the evidence asks for.

    Parameters
    ----------
    units : Units
        What is grouped.
    least : float
        The joint, given m, of another explanation, which the evidence must reach; None is returned
        as soon as there is no hope of it, or if the joint still rises with the largest number of
        topics and joining leaves nearly as many, or topics of very few units.
    most : int
        Topics at most, before they are settled again.
    effort : Effort
        What it may take.
    several : bool
        Whether one topic is not an answer.
    """
    n, n_tables = units.tables.shape[0], max(float(units.tables.sum()), 1.0)
    rng, order = np.random.default_rng(0), units.order
    one = best = current = adapted(units, np.zeros(n, np.int64), n_tables)
    size = 1
    while (parts := min(effort.n_cuts, most // size)) > 1 and 2 * parts * size <= n:
        before, size = current.log_joint, parts * size
        topics = _cut(current.topics, parts, rng)
        current = _settled(units, topics, START * n_tables / size, current.base, order)
        if best is one or current.log_joint > best.log_joint:
            best = current
        elif size >= LEAST_LOOKED:
            break
        gain = max(current.log_joint - before, 0.0) / np.log2(parts)
        hoped = best.log_joint + gain * np.log2(most / size) + SETTLING * abs(best.log_joint)
        if size >= LEAST_LOOKED and hoped < least:
            return None
    else:
        if least > -np.inf and size > 1:
            best = joined(units, current)
            if best.n_topics > min(ENOUGH * size, n / FEW_ROWS):
                return None  # still more topics would say still more, or they are too small
    starts = [best]
    for _ in range(effort.n_doublings if size > 1 else 0):
        topics = _cut(starts[-1].topics, 2, rng)
        strength = START * n_tables / (2 * starts[-1].n_topics)
        starts.append(_settled(units, topics, strength, starts[-1].base, order))
    if best.n_topics < LEAST_LOOKED and best is not current:
        starts.append(current)
    found = [_polished(units, start, effort.n_rounds, order, rng) for start in starts]
    found = [other for other in found if _differ(other)] or [current if several else one]
    best = max(found, key=lambda other: other.log_joint)
    return _preferred(units, best, one, least, several)


def _differ(found: Grouping) -> bool:
    """Return whether there are several topics, and they have words of their own."""
    return found.n_topics > 1 and np.log(found.strength) < MOST


def _preferred(
    units: Units, best: Grouping, one: Grouping, least: float, several: bool = False
) -> Grouping | None:
    """Return topics, or one if that has more evidence; None if neither reaches the least."""
    ours, alone = evidence(units, best), evidence(units, one)
    if not several and alone >= ours:
        best, ours = one, alone
    return best if ours >= least + alone - one.log_joint else None  # given m, as `least` is


def followed(
    units: Units, topics: Integers, strength: float, least: float = -np.inf
) -> Grouping | None:
    """Return the topics of units, going on from topics found before some of them came.

    These are halved, settled with a stiff base measure and joined once: so topics that are new
    among the units come up as well.

    Parameters
    ----------
    units : Units
        What is grouped.
    topics : ndarray of shape (n,)
        The topic of each, of those found before.
    strength : float
        c1 as it was.
    least : float
        As for `grouped`.
    """
    n, order, rng = topics.size, units.order, np.random.default_rng(0)
    start = adapted(units, topics, strength)
    based = units._replace(base=start.base)
    stiff = moved(based, _cut(start.topics, 2, rng), STIFF * start.strength, order)
    found = joined(units, _settled(units, stiff, start.strength, start.base, order))
    one = adapted(units, np.zeros(n, np.int64), max(float(units.tables.sum()), 1.0))
    return _preferred(units, found, one, least)


def readable(units: Units, effort: Effort = THOROUGH) -> Grouping | None:
    """Return topics where their number is not for the data to say: 32 at most, or None.

    Rows that come in families of near-duplicates ask for ever more topics, and few short rows pay
    more for their topics than these explain. What holds together all the same survives being cut,
    settled with a stiff base measure and joined; of such topics those with most evidence are taken.
    If that is less than one topic has, it must be more than any of nine searches finds in the same
    words dealt out to the rows at random.

    Parameters
    ----------
    units : Units
        What is grouped: rows of counts.
    effort : Effort
        What it may take; a quick search asks for evidence.
    """
    found = _surviving(units, effort)
    if found is None or found[0] > 0.0:
        return found and found[1]
    if effort is QUICK:
        return None
    chances = (_surviving(_dealt(units, seed), effort) for seed in range(N_CHANCES))
    is_chance = any(chance is not None and chance[0] >= found[0] for chance in chances)
    return None if is_chance else found[1]


def _dealt(units: Units, seed: int) -> Units:
    """Return rows as long as these, the words of all dealt out at random."""
    rows = units.tables
    times = np.rint(rows.data).astype(np.int64)
    words = np.random.default_rng(seed).permutation(np.repeat(rows.indices, times))
    of = np.repeat(np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), times)
    return units._replace(tables=csr_array((np.ones(words.size), (of, words)), shape=rows.shape))


def _surviving(units: Units, effort: Effort) -> tuple[float, Grouping] | None:
    """Return topics that hold together, and their evidence above that of a single topic."""
    n, n_tables = units.tables.shape[0], max(float(units.tables.sum()), 1.0)
    rng, order, size = np.random.default_rng(0), units.order, 1
    one = start = adapted(units, np.zeros(n, np.int64), n_tables)
    best, alone = None, evidence(units, one)
    for n_cuts in STARTS:
        if 2 * n_cuts * size > n or (size >= READABLE and effort is QUICK):
            break
        size *= n_cuts
        topics = _cut(start.topics, n_cuts, rng)
        found = start = _settled(units, topics, START * n_tables / size, start.base, order)
        if size < READABLE and effort is QUICK:
            continue
        for _ in range(effort.n_doublings + 1):
            found = _polished(units, found, 1, order, rng)
            if found.n_topics > READABLE:
                found = joined(units, found, READABLE)
            based = units._replace(base=found.base)
            stiff = moved(based, found.topics, STIFF * found.strength, order, 2)
            found = _settled(units, stiff, found.strength, found.base, order)
        if found.n_topics > 1 and (best is None or evidence(units, found) - alone > best[0]):
            best = evidence(units, found) - alone, found
    return best


def _polished(
    units: Units, found: Grouping, n_rounds: int, order: Integers, rng: np.random.Generator
) -> Grouping:
    """Return topics joined, and halved, settled with a stiff base measure and joined again."""
    found = joined(units, found)
    for _ in range(n_rounds):
        if found.n_topics == 1:
            break
        based = units._replace(base=found.base)
        stiff = moved(based, _cut(found.topics, 2, rng), STIFF * found.strength, order, 2)
        other = joined(units, _settled(units, stiff, found.strength, found.base, order))
        if other.log_joint <= found.log_joint:
            break
        found = other
    return found


def few_apart(units: Units, found: Grouping, masses: Floats) -> Grouping:
    """Return clusters as topics where they have nothing in common and few hold nearly all rows.

    A search does not begin with as many topics as there are clusters, so it may miss this. If the
    joint of a single topic is larger even so, clusters are alike.

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
    if not 1 < n_heavy <= FEW or masses[n_heavy // 2] < LEAST_ROWS:
        return found
    topics = np.arange(masses.size)
    heavy = units.tables[:n_heavy].toarray() + found.strength * found.base
    logs = np.log(heavy / heavy.sum(axis=1, keepdims=True))
    topics[n_heavy:] = np.argmax(units.tables[n_heavy:] @ logs.T, axis=1)
    apart = adapted(units, topics, START * float(units.tables.sum()) / n_heavy)
    return found._replace(topics=topics) if apart.log_joint > found.log_joint else found


def _cut(topics: Integers, n_cuts: int, rng: np.random.Generator) -> Integers:
    """Return more topics, every one cut into so many at random."""
    cut: Integers = n_cuts * topics + rng.integers(0, n_cuts, topics.size)
    return cut


def _settled(
    units: Units, topics: Integers, strength: float, base: Floats, order: Integers
) -> Grouping:
    """Return topics after sweeps, with the c1 and m that these ask for."""
    units = units._replace(base=base)
    return adapted(units, moved(units, topics, strength, order), strength)


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
