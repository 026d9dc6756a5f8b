"""A tree of merges over the clusters of a posterior: from fine to coarse by the model's own odds.

Join the two clusters with the largest log odds of one against two,

    log m(i+j) - log m(i) - log m(j) + log kappa(S_i+S_j) - log kappa(S_i) - log kappa(S_j).

The heaviest clusters are joined until `n_groups` are left, and the others go to the best of these.
Greedy joins cannot be undone, so clusters then move from group to group, one at a time, as long as
the joint log marginal of the groups increases. The levels above the groups and inside each group
are again joined greedily: the tree is nested, and optimised for the requested number of groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from bnpstream.inference.odds import Odds, pool_of
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.mixture import MixtureState, Model

MOST_PAIRED = 4096
"""Most clusters whose pairs are all evaluated, 134 MB; lighter ones first join one of these."""
MOST_STARTED = 512
"""Clusters from which groups are first made, or four per group if that is more."""
MOST_SWEEPS = 20
"""20 Newsgroups needs 9 until no cluster moves."""
LEAST_GAIN = 1e-6
"""A smaller gain of a move, in nats, is rounding."""
NOWHERE = -1
"""Stands for no group."""
BLOCK = 64
"""Clusters whose prior odds with all groups are computed at a time."""


@dataclass(frozen=True)
class MergeTree:
    """Merges that lead from all clusters to one.

    Parameters
    ----------
    ids : ndarray of shape (K,)
        The clusters, ascending: nodes 0 to K - 1.
    masses : ndarray of shape (K,)
        Their masses.
    children : ndarray of shape (K - 1, 2)
        The two nodes that each merge joins; merge t makes node K + t.
    log_odds : ndarray of shape (K - 1,)
        The model's log odds of one cluster against two at each merge. They need not decrease from
        one merge to the next.

    Examples
    --------
    >>> tree = MergeTree(
    ...     np.array([0, 3, 7]), np.array([5.0, 1.0, 9.0]), np.array([[0, 1], [2, 3]]), np.zeros(2)
    ... )
    >>> tree.cut(2), tree.cut(1)
    (array([0, 0, 7]), array([7, 7, 7]))
    """

    ids: Integers
    masses: Floats
    children: Integers
    log_odds: Floats

    def cut(self, n_groups: int) -> Integers:
        """Return the group of each cluster when `n_groups` are left.

        Parameters
        ----------
        n_groups : int
            Groups wanted; if there are fewer clusters, each is its own group.

        Returns
        -------
        groups : ndarray of shape (K,)
            In the order of `ids`; a group has the id of its heaviest cluster.
        """
        if n_groups < 1:
            raise ValueError(f"n_groups must be at least 1, got {n_groups!r}")
        K = self.ids.size
        heaviest = np.append(np.arange(K), np.zeros(K - 1, np.int64))
        parents = np.arange(2 * K - 1)
        for node, (i, j) in enumerate(self.children, start=K):
            one, other = heaviest[[i, j]]
            heaviest[node] = one if self.masses[one] >= self.masses[other] else other
            if node < 2 * K - n_groups:
                parents[[i, j]] = node
        for node in range(2 * K - 2, -1, -1):  # parents have larger numbers
            parents[node] = parents[parents[node]]
        return self.ids[heaviest[parents[:K]]]

    def linkage(self) -> Floats:
        """Return the merges in the format of `scipy.cluster.hierarchy`, (K - 1, 4).

        Heights are numbers of merges, because log odds are not distances.
        """
        K = self.ids.size
        counts = np.ones(2 * K - 1)
        for node, (i, j) in enumerate(self.children, start=K):
            counts[node] = counts[i] + counts[j]
        heights = np.arange(1.0, K)
        return np.column_stack([self.children.astype(np.float64), heights, counts[K:]])


class Join(NamedTuple):
    """A merge: cluster j goes into cluster i."""

    i: int
    j: int
    log_odds: float


def merge_tree(model: Model, state: MixtureState, n_groups: int = 20) -> MergeTree:
    """Return the tree of merges over the clusters of a posterior.

    Parameters
    ----------
    model, state
        The posterior; not changed.
    n_groups : int
        Number of groups to optimise for; clusters settle in these.
    """
    K = state.n_clusters
    odds = Odds(model, state, pool_of(model, state))
    groups = _settle(odds, _start(odds, n_groups))
    found = int(groups.max()) + 1
    inside = [list(best_joins(odds, np.flatnonzero(groups == g))) for g in range(found)]
    joins = list(_in_turn(inside))
    left = np.setdiff1d(np.arange(K), [join.j for join in joins])
    left = left[np.argsort(groups[left])]  # the last cluster of each group
    for join in best_joins(odds.summed(groups, found), np.arange(found)):
        joins.append(Join(int(left[join.i]), int(left[join.j]), join.log_odds))
    order = np.argsort(state.ids)
    node = np.argsort(order)  # by slot: clusters are nodes in the order of their ids
    children = np.empty((K - 1, 2), np.int64)
    for t, join in enumerate(joins):
        children[t] = node[[join.i, join.j]]
        node[join.i] = K + t
    log_odds = np.array([join.log_odds for join in joins])
    return MergeTree(state.ids[order], state.masses[order], children, log_odds)


def best_joins(odds: Odds, slots: Integers, n_left: int = 1) -> Iterator[Join]:
    """Join the best pair of some clusters until `n_left` are left; the heavier one survives.

    Each cluster keeps the partner with the best odds. A join changes the odds of one cluster, so
    another cluster only looks for a new partner if that one was its partner and has become worse.
    """
    slots = slots[np.argsort(-odds.masses[slots], kind="stable")]
    odds = odds.part(slots)
    K = min(slots.size, MOST_PAIRED)
    nobody = np.arange(0)
    for j in range(K, slots.size):
        found = odds.of(j, np.arange(K))
        i = int(np.argmax(found))
        odds.join(i, j, nobody, np.empty(0))
        yield Join(int(slots[i]), int(slots[j]), float(found[i]))
    table = np.full((K, K), -np.inf)
    for a in range(K - 1):
        table[a, a + 1 :] = table[a + 1 :, a] = odds.of(a, np.arange(a + 1, K))
    partner = table.argmax(axis=1)
    best = table[np.arange(K), partner]
    alive = np.arange(K)
    for _ in range(K - n_left):
        a = int(np.argmax(best))
        b = int(partner[a])
        if odds.masses[b] > odds.masses[a]:
            a, b = b, a
        yield Join(int(slots[a]), int(slots[b]), float(table[a, b]))
        alive = alive[alive != b]
        others = alive[alive != a]
        found = odds.join(a, b, others, table[a, others])
        table[b], table[:, b], best[b] = -np.inf, -np.inf, -np.inf
        table[a, others] = table[others, a] = found
        better = others[found > best[others]]
        partner[better], best[better] = a, table[better, a]
        stale = np.append(others[np.isin(partner[others], (a, b)) & (found < best[others])], a)
        partner[stale] = table[stale].argmax(axis=1)
        best[stale] = table[stale, partner[stale]]


def _start(odds: Odds, n_groups: int) -> Integers:
    """Return the groups that the heaviest clusters are joined into; the others have none yet."""
    heavy = np.argsort(-odds.masses, kind="stable")[: max(MOST_STARTED, 4 * n_groups)]
    members = np.full(odds.masses.size, NOWHERE)
    members[heavy] = heavy
    for join in best_joins(odds, heavy, n_groups):
        members[members == join.j] = join.i
    members[heavy] = np.unique(members[heavy], return_inverse=True)[1]
    return members


def _settle(odds: Odds, groups: Integers) -> Integers:
    """Move clusters, heaviest first, to the group with the best odds until none moves."""
    n_groups = int(groups.max()) + 1
    sums, there = odds.pool.groups(groups, n_groups), groups != NOWHERE
    masses, vacancies = np.zeros(n_groups), np.zeros(n_groups)
    np.add.at(masses, groups[there], odds.masses[there])
    np.add.at(vacancies, groups[there], odds.log_vacancy[there])
    sizes = np.bincount(groups[there], minlength=n_groups)
    order = np.argsort(-odds.masses, kind="stable")
    gains = np.empty((groups.size, n_groups))
    time, seen, changed = 0, np.full(groups.size, -1), np.zeros(n_groups, np.int64)

    def prior(some: Integers, into: Integers) -> Floats:
        """Return the prior's odds of some clusters, each taken out of its home, in some groups."""
        at_home = groups[some, None] == into
        of, empty = odds.masses[some, None], odds.log_vacancy[some, None]
        rest = np.maximum(masses[into] - at_home * of, 0.0)
        vacant = np.minimum(vacancies[into] - at_home * empty, 0.0)
        return odds.seated(rest + of, vacant + empty) - odds.seated(rest, vacant)

    for _ in range(MOST_SWEEPS):
        n_moved = 0
        for start in range(0, order.size, BLOCK):
            block = order[start : start + BLOCK]
            gained = prior(block, np.arange(n_groups))
            for at, k in enumerate(block.tolist()):
                home = int(groups[k])
                if home != NOWHERE and sizes[home] == 1:  # a group keeps its last cluster
                    continue
                stale = np.flatnonzero(changed > seen[k])  # groups that have changed
                if stale.size == 0:
                    continue
                gains[k, stale] = sums.gains(k, home, stale)
                seen[k] = time
                total = gains[k] + gained[at]
                best = int(np.argmax(total))
                if home == NOWHERE or total[best] > total[home] + LEAST_GAIN:
                    time, n_moved = time + 1, n_moved + 1
                    for group, sign in ((home, -1), (best, 1)):
                        if group != NOWHERE:
                            sums.move(k, group, sign)
                            masses[group] += sign * odds.masses[k]
                            vacancies[group] += sign * odds.log_vacancy[k]
                            sizes[group] += sign
                            changed[group] = time
                    groups[k] = best
                    both = np.flatnonzero(changed == time)
                    gained[:, both] = prior(block, both)
        if n_moved == 0:
            break
    return groups


def _in_turn(parts: list[list[Join]]) -> Iterator[Join]:
    """Yield the joins of several groups, each group's in order, best next one first."""
    heap = [(-joins[0].log_odds, part, 0) for part, joins in enumerate(parts) if joins]
    heapify(heap)
    while heap:
        _, part, at = heappop(heap)
        yield parts[part][at]
        if at + 1 < len(parts[part]):
            heappush(heap, (-parts[part][at + 1].log_odds, part, at + 1))
