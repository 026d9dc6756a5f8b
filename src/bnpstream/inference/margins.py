"""Topics of vectors: clusters joined by their means, as far as rows stay clearly in one of them.

Every cluster has a mass n_k and a mean x_k, that of its rows; g is the mean of all rows. Clusters
are joined two at a time, those first that cost least variance between groups (Ward 1963). A group
has a direction u_j, from g to its mean. How clear a grouping is says the *margin*, the mean over
rows of

    (x - g) . u_own - max(0, the largest (x - g) . u_j of another group):

how much more a row points to its own group than to the next, or to none. Splinters of one group
point where it points, which costs margin; groups that differ, joined, point nowhere, which costs
more. Topics are where the margin is largest; then clusters move to the direction that they point
to most, a few times.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bnpstream.kernels.arrays import Floats, Integers

MOST_MEANS = 2048
"""Clusters that are joined two at a time, at most: the heaviest. Others have the best topic."""
ALL_UP_TO, STEP = 64, 1.03
"""Numbers of groups up to which all are looked at, and by what others differ at least."""
SWEEPS = 4
"""How often clusters move to the best direction."""


class Directions(NamedTuple):
    """Topics as directions from a centre."""

    centre: Floats
    """g, shape (D,)."""
    units: Floats
    """u_j, shape (J, D), of length one."""

    def best(self, means: Floats) -> Integers:
        """Return the topic that each of some rows or means, (n, D), points to most."""
        best: Integers = np.argmax((means - self.centre) @ self.units.T, axis=1)
        return best


def directions_of(masses: Floats, means: Floats, n_topics: int | None, factor: float) -> Directions:
    """Return the topics of clusters, the heaviest first.

    Parameters
    ----------
    masses : ndarray of shape (K,)
        n_k.
    means : ndarray of shape (K, D)
        x_k.
    n_topics : int, optional
        Topics wanted; by default as many as the margin asks for, times `factor`.
    factor : float
        See `n_topics`.
    """
    centre = masses @ means / masses.sum()
    sums = masses[:, None] * (means - centre)
    heavy = np.argsort(-masses, kind="stable")[:MOST_MEANS]
    groups = _clearest(masses[heavy], sums[heavy], n_topics, factor)
    sums = sums[heavy]
    for _ in range(SWEEPS):
        units = _units(sums, groups)
        moved = np.argmax(sums @ units.T, axis=1)
        if np.unique(moved).size < len(units):  # a group would be left without a cluster
            break
        groups = moved
    found = Directions(centre, _units(sums, groups))
    topics = found.best(means)
    sizes = np.bincount(topics, masses, len(found.units))
    heaviest = np.argsort(-sizes, kind="stable")
    return found._replace(units=found.units[heaviest[sizes[heaviest] > 0.0]])


def _units(sums: Floats, groups: Integers) -> Floats:
    """Return the directions of groups."""
    totals = np.zeros((int(groups.max()) + 1, sums.shape[1]))
    np.add.at(totals, groups, sums)
    lengths = np.linalg.norm(totals, axis=1, keepdims=True)
    units: Floats = totals / np.where(lengths > 0.0, lengths, 1.0)
    return units


def _clearest(masses: Floats, sums: Floats, n_topics: int | None, factor: float) -> Integers:
    """Return groups, as many as wanted or those with the largest margin, numbered without gaps."""
    K = masses.size
    groups, looked = np.arange(K), 2 * K
    joins: list[tuple[int, int]] = []
    best, chosen = -np.inf, groups
    for table in _joined(masses, sums, groups, joins):
        J = K - len(joins)
        if J <= ALL_UP_TO or looked >= J * STEP:
            looked, margin = J, table.margin(groups)
            if margin > best:
                best, chosen = margin, groups.copy()
    wanted = n_topics or max(1, round(factor * np.unique(chosen).size))
    if wanted != np.unique(chosen).size:
        chosen = np.arange(K)
        for i, j in joins[: max(0, K - wanted)]:
            chosen[chosen == j] = i
    return np.unique(chosen, return_inverse=True)[1]


class _Table:
    """Products of clusters and groups with groups; a group is in the column of one of its own."""

    def __init__(self, masses: Floats, sums: Floats) -> None:
        self.masses, self.sizes = masses, masses.copy()
        self.groups = sums @ sums.T
        self.clusters = self.groups.copy()
        self.alive = np.ones(masses.size, np.bool_)

    def costs(self, i: int) -> Floats:
        """Return what joining group i with every other costs; inf with itself and with none."""
        squares = np.diagonal(self.groups)
        joint = (squares + squares[i] + 2.0 * self.groups[i]) / (self.sizes + self.sizes[i])
        costs: Floats = squares / self.sizes + squares[i] / self.sizes[i] - joint
        costs[~self.alive] = np.inf
        costs[i] = np.inf
        return costs

    def join(self, i: int, j: int) -> None:
        """Put group j into group i."""
        self.groups[i] += self.groups[j]
        self.groups[:, i] += self.groups[:, j]
        self.clusters[:, i] += self.clusters[:, j]
        self.sizes[i] += self.sizes[j]
        self.alive[j] = False

    def margin(self, groups: Integers) -> float:
        """Return the margin of the groups; groups[k] is that of cluster k."""
        lengths = np.sqrt(np.maximum(np.diagonal(self.groups)[self.alive], 0.0))
        pointing = self.clusters[:, self.alive] / np.where(lengths > 0.0, lengths, np.inf)
        own, every = (np.cumsum(self.alive) - 1)[groups], np.arange(groups.size)
        margins = pointing[every, own]
        pointing[every, own] = 0.0  # so that the next is never below it
        return float((margins - pointing.max(axis=1)).sum() / self.masses.sum())


def _joined(
    masses: Floats, sums: Floats, groups: Integers, joins: list[tuple[int, int]]
) -> Iterator[_Table]:
    """Join groups one pair after the other; yield before every join, and after the last."""
    table, K = _Table(masses, sums), masses.size
    first = [table.costs(i) for i in range(K)]
    nearest = np.array([np.argmin(costs) for costs in first])
    least = np.array([costs.min() for costs in first])
    for _ in range(K - 1):
        yield table
        i = int(np.argmin(least))
        i, j = sorted((i, int(nearest[i])))
        table.join(i, j)
        groups[groups == j] = i
        joins.append((i, j))
        costs = table.costs(i)
        least[j], least[i], nearest[i] = np.inf, costs.min(), np.argmin(costs)
        stale = table.alive & ((nearest == i) | (nearest == j))
        stale[i] = False
        for k in np.flatnonzero(stale).tolist():
            others = table.costs(k)
            least[k], nearest[k] = others.min(), np.argmin(others)
        closer = table.alive & (costs < least)
        closer[i] = False
        least[closer], nearest[closer] = costs[closer], i
    yield table
