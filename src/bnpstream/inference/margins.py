"""Topics of vectors: clusters joined by their means, as long as rows clearly belong to one of them.

Each cluster has a mass n_k and the mean x_k of its rows; g is the mean of all rows. Clusters are
joined two at a time, starting with the pair that costs least variance between groups (Ward 1963). A
group has a direction u_j, from g to its mean. The *margin* measures how clear a grouping is: the
mean over rows of

    (x - g) . u_own - max(0, the largest (x - g) . u_j of another group):

how much more a row points to its own group than to the next, or to none. If rows are available,
the length of a row is known on average, and a row is compared with its own group without it:
otherwise the many small clusters of a short stream would look clear. Splinters of one group
point in the same direction, which costs margin; different groups, when joined, point nowhere, which
costs more. So the margin has a peak where groups are natural, and another where these are joined
into themes. If only clusters are available, topics are at the largest margin. If rows are
available, topics are the finest peak that these confirm, or else what rows say by themselves
(`inference.agreement`). Then clusters move to the direction that they point to most, a few times.
"""

from typing import NamedTuple

import numpy as np

from bnpstream.inference.agreement import LEAST, Joins, natural_number
from bnpstream.kernels.arrays import Floats, Integers

MOST_MEANS = 2048
"""Most clusters that are joined two at a time: the heaviest. Others get the best topic."""
ALL_UP_TO, STEP = 64, 1.03
"""Numbers of groups up to which all are tried, and the least ratio between larger ones."""
DIP = 0.8
"""Between two peaks the margin falls to this share of the finer one."""
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


def directions_of(
    masses: Floats,
    means: Floats,
    n_topics: int | None,
    factor: float,
    rows: Floats | None = None,
) -> Directions:
    """Return the topics of clusters, heaviest first.

    Parameters
    ----------
    masses : ndarray of shape (K,)
        n_k.
    means : ndarray of shape (K, D)
        x_k.
    n_topics : int, optional
        Topics wanted; by default the number that margin and `rows` suggest, times `factor`.
    factor : float
        See `n_topics`.
    rows : ndarray of shape (n, D), optional
        Some rows of the clusters.
    """
    centre = masses @ means / masses.sum()
    sums = masses[:, None] * (means - centre)
    heavy = np.argsort(-masses, kind="stable")[:MOST_MEANS]
    sums = sums[heavy]
    products = sums @ sums.T
    joins = _joins(masses[heavy], products)
    if n_topics is None:
        square = 0.0 if rows is None else float(((rows - centre) ** 2).sum(axis=1).mean())
        peaks = _peaks(products, joins, masses[heavy], square)
        wanted = peaks[-1]
        if rows is not None:
            wanted = natural_number(rows - centre, masses[heavy], sums, joins, peaks)
        n_topics = max(1, round(factor * wanted))
    groups = _cut(joins, heavy.size, n_topics)
    for _ in range(SWEEPS):
        units = _units(sums, groups)
        moved = np.argmax(sums @ units.T, axis=1)
        if np.unique(moved).size < len(units):  # otherwise a group would lose all its clusters
            break
        groups = moved
    found = Directions(centre, _units(sums, groups))
    topics = found.best(means)
    sizes = np.bincount(topics, masses, len(found.units))
    heaviest = np.argsort(-sizes, kind="stable")
    return found._replace(units=found.units[heaviest[sizes[heaviest] > 0.0]])


def _units(sums: Floats, groups: Integers) -> Floats:
    """Return the directions of groups, none of which is empty."""
    order = np.argsort(groups, kind="stable")
    totals = np.add.reduceat(sums[order], np.flatnonzero(np.diff(groups[order], prepend=-1)))
    lengths = np.linalg.norm(totals, axis=1, keepdims=True)
    return totals / np.where(lengths > 0.0, lengths, 1.0)


def _cut(joins: Joins, K: int, n_groups: int) -> Integers:
    """Return the group of each cluster when this many are left, numbered without gaps."""
    groups = np.arange(K)
    for i, j, _ in joins[: max(0, K - n_groups)]:
        groups[groups == j] = i
    return np.unique(groups, return_inverse=True)[1]


def _peaks(products: Floats, joins: Joins, masses: Floats, square: float) -> list[int]:
    """Return the numbers of groups at which the margin peaks above all finer ones, descending.

    Parameters
    ----------
    products : ndarray of shape (K, K)
        Products of the sums of clusters. Modified.
    joins
        From all clusters to one group.
    masses : ndarray of shape (K,)
        Masses of clusters.
    square : float
        Mean squared length of rows; 0 if unknown.
    """
    K = len(products)
    best, looked, rises, peaks = -np.inf, 2 * K, False, list[int]()
    pointing, alive, own = products, np.ones(K, np.bool_), np.arange(K)
    squares = np.diagonal(products).copy()
    for J in range(K, 0, -1):
        if J <= ALL_UP_TO or looked >= J * STEP:
            looked = J
            places = (np.cumsum(alive) - 1)[own]
            margin = _margin(pointing[alive], squares[alive], places, masses, square)
            if margin > best:
                if rises:
                    peaks.pop()
                peaks.append(J)
                best, rises = margin, True
            elif margin < DIP * best:
                rises = False
        if J > 1:
            i, j, joint = joins[K - J]
            pointing[i] += pointing[j]
            squares[i], alive[j] = joint, False
            own[own == j] = i
    return peaks


def _margin(
    pointing: Floats, squares: Floats, own: Integers, masses: Floats, square: float
) -> float:
    """Return the margin of groups, times the number of rows.

    Parameters
    ----------
    pointing : ndarray of shape (J, K)
        Products of the sums of groups with those of clusters. Modified.
    squares : ndarray of shape (J,)
        Squared sums of the groups.
    own : ndarray of shape (K,)
        The group of each cluster.
    masses : ndarray of shape (K,)
        Masses of clusters.
    square : float
        Mean squared length of rows; 0 if unknown: then a row counts in its own group.
    """
    lengths, every = np.sqrt(np.maximum(squares, 0.0)), np.arange(own.size)
    mine = pointing[own, every]
    pointing /= np.where(lengths > 0.0, lengths, np.inf)[:, None]
    margins = pointing[own, every]
    if square > 0.0:
        rest = np.maximum(squares[own] - 2.0 * mine / masses + square, 0.0)
        has_rest = (np.bincount(own, masses)[own] >= LEAST) & (rest > 0.0)
        margins = (mine - square * masses) / np.sqrt(np.where(has_rest, rest, np.inf))
    pointing[own, every] = 0.0  # so that the next is never below it
    return float((margins - pointing.max(axis=0)).sum())


def _joins(masses: Floats, products: Floats) -> Joins:
    """Return the joins of Ward's rule from all clusters to one, cheapest first.

    Each is two groups, named by their first clusters, and the square of their sum. Groups that are
    each other's nearest are joined as they are found, in a chain of ever nearer ones: a
    join brings no other two groups nearer, so these are the joins of the rule (Murtagh 1983).
    """
    K, sizes, groups = masses.size, masses.copy(), products.copy()
    squares = np.diagonal(products).copy()
    spread, cost_of = squares / sizes, np.full(K, -np.inf)
    found: list[tuple[int, int, float]] = []
    costs: list[float] = []
    chain: list[int] = []
    while len(found) < K - 1:
        if not chain:
            chain.append(int(np.argmax(spread < np.inf)))
        top = chain[-1]
        joint = (squares + squares[top] + 2.0 * groups[top]) / (sizes + sizes[top])
        cost = spread + spread[top] - joint
        cost[top] = np.inf
        nearest = int(np.argmin(cost))
        if len(chain) == 1 or cost[nearest] < cost[chain[-2]]:
            chain.append(nearest)
            continue
        i, j = sorted((chain.pop(), chain.pop()))
        price = max(float(cost[j if i == top else i]), cost_of[i], cost_of[j])  # up to rounding
        squares[i] = max(squares[i] + squares[j] + 2.0 * groups[i, j], 0.0)
        groups[i] += groups[j]
        groups[:, i] += groups[:, j]
        sizes[i] += sizes[j]
        spread[i], spread[j], cost_of[i] = squares[i] / sizes[i], np.inf, price
        found.append((i, j, float(squares[i])))
        costs.append(price)
    return [found[at] for at in np.argsort(costs, kind="stable")]
