"""Which groups of vectors are real: those on which two views of a row agree.

Columns are divided into two halves, and each half of a row points to a group by itself. If groups
are real, both point to the same one; if a group is a splinter, it is chance which of several
similar groups each points to; and if a group mixes parts of several, neither half clearly points to
it. The agreement is the mutual information of the two labels, relative to their entropy, with the
value by chance subtracted from both (Vinh, Epps and Bailey 2010). A row is compared with its own
group without it.

Views confirm groups found in another way, or they decide themselves how far to join: from the
finest level on, groups are joined as long as views agree hardly less than at any finer level. So
the first natural level counts, not the clearest, which may be the themes of topics. Groups far
apart are clear at any level: if views agree on nearly every row, their mutual information must
hardly decrease either.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from bnpstream.kernels.arrays import Floats, Integers

DOUBT = 1.0 / 6.0
"""Views may agree less than at a finer level by this share of a (1 - a), with agreement a."""
SURE, LOSS = 0.95, 0.02
"""If views agree this much, joining may lose this share of their mutual information."""
CLEAR = 0.7
"""Views that agree this much confirm groups found in another way."""
CHANCE = 0.05
"""Views that agree less than this at all levels know no groups."""
STEP = 1.12
"""Ratio of successive numbers of groups that are tried."""
SPLITS = (1, 2)
"""Columns alternate between the views in runs of these lengths."""
LEAST = 1.5
"""Least mass of a group that contains anything besides the row."""

Joins = Sequence[tuple[int, int, float]]


def natural_number(
    rows: Floats, masses: Floats, sums: Floats, joins: Joins, peaks: Sequence[int]
) -> int:
    """Return the first of some descending numbers of groups that views confirm, or their own.

    If views agree on nearly every row at the finest level, groups are far apart: coarser ones are
    confirmed as well, and views decide by themselves how far to join.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Some rows, relative to the centre.
    masses : ndarray of shape (K,)
        Masses of clusters.
    sums : ndarray of shape (K, D)
        Sums of the rows of clusters, relative to the centre.
    joins : sequence of (i, j, square)
        Group j becomes part of group i, from K groups to one.
    peaks : sequence of int
        Numbers of groups.
    """
    numbers = [masses.size, *peaks]
    levels = zip(numbers, _agreements(rows, masses, sums, joins, numbers), strict=True)
    if next(levels)[1][0] < SURE:
        for number, (agreed, _) in levels:
            if agreed >= CLEAR:
                return number
    return _agreed_number(rows, masses, sums, joins)


def _agreed_number(rows: Floats, masses: Floats, sums: Floats, joins: Joins) -> int:
    """Return the number of groups below which views no longer agree."""
    numbers = _numbers(masses.size)
    best, most, found = 0.0, 0.0, 1
    levels = _agreements(rows, masses, sums, joins, numbers)
    for number, (agreed, common) in zip(numbers, levels, strict=True):
        best, most = max(best, agreed), max(most, common)
        if best < CHANCE:
            continue
        if best - agreed > DOUBT * best * (1.0 - best):
            break
        if best > SURE and common < (1.0 - LOSS) * most:
            break
        found = number
    return found


def _agreements(
    rows: Floats, masses: Floats, sums: Floats, joins: Joins, numbers: Sequence[int]
) -> Iterator[tuple[float, float]]:
    """Yield agreement and mutual information of views for each number, averaged over `SPLITS`."""
    own, levels = _own(rows, sums), []
    for turn in SPLITS:
        half = np.arange(rows.shape[1]) // turn % 2 == 0
        views = [View(rows[:, some], sums[:, some]) for some in (half, ~half)]
        levels.append(_levels(views, masses, own, joins, numbers))
    for labels in zip(*levels, strict=True):
        agreed = sum(agreement(*both) for both in labels) / len(SPLITS)
        common = sum(mutual_information(*both)[0] for both in labels) / len(SPLITS)
        yield agreed, common


def _numbers(K: int) -> list[int]:
    """Return the numbers of groups to try, from K to one."""
    found = [K]
    while found[-1] > 1:
        found.append(min(found[-1] - 1, int(found[-1] / STEP)))
    return found


def _own(rows: Floats, sums: Floats) -> Integers:
    """Return the cluster that each row points to most."""
    lengths = np.linalg.norm(sums, axis=1)
    own: Integers = np.argmax(rows @ (sums / np.where(lengths > 0.0, lengths, 1.0)[:, None]).T, 1)
    return own


class View:
    """Some columns of rows and groups, and the group that each row points to most."""

    def __init__(self, rows: Floats, sums: Floats) -> None:
        self._products, self._groups = sums @ rows.T, sums @ sums.T
        self._squares: Floats = (rows**2).sum(axis=1)

    def join(self, i: int, j: int) -> None:
        """Make group j part of group i."""
        self._products[i] += self._products[j]
        self._groups[i] += self._groups[j]
        self._groups[:, i] += self._groups[:, j]

    def labels(self, alive: Integers, own: Integers, alone: NDArray[np.bool_]) -> Integers:
        """Return the position in `alive` of each row's group; its own is taken without it.

        Parameters
        ----------
        alive : ndarray of shape (J,)
            Groups.
        own : ndarray of shape (n,)
            Position of each row's own group.
        alone : ndarray of shape (n,)
            Whether nothing else is in it.
        """
        squares = np.maximum(np.diagonal(self._groups)[alive], 0.0)
        every = np.arange(own.size)
        pointing = self._products[alive]
        mine = pointing[own, every]
        pointing /= np.sqrt(np.where(squares > 0.0, squares, np.inf))[:, None]
        rest = np.maximum(squares[own] - 2.0 * mine + self._squares, 0.0)
        without = (mine - self._squares) / np.sqrt(np.where(rest > 0.0, rest, np.inf))
        pointing[own, every] = np.where(alone, 0.0, without)
        labels: Integers = np.argmax(pointing, axis=0)
        return labels


def _levels(
    views: Sequence[View], masses: Floats, own: Integers, joins: Joins, numbers: Sequence[int]
) -> Iterator[tuple[Integers, ...]]:
    """Yield the labels of rows in both views, for each number of groups."""
    K = masses.size
    group, left = np.arange(K), K
    for J in numbers:
        for i, j, _ in joins[K - left : K - J]:
            group[group == j] = i
            for view in views:
                view.join(i, j)
        left = J
        alive, places = np.unique(group, return_inverse=True)
        mine = places[own]
        alone = np.bincount(places, masses, J)[mine] < LEAST
        yield tuple(view.labels(alive, mine, alone) for view in views)


def agreement(a: Integers, b: Integers) -> float:
    """Return the adjusted mutual information of two labels of the same rows; 0 for one group.

    Examples
    --------
    >>> import numpy as np
    >>> agreement(np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 0, 0, 1, 1]))
    1.0
    """
    common, most, (sizes, others) = mutual_information(a, b)
    chance = _by_chance(sizes, others, a.size)
    return (common - chance) / (most - chance) if most - chance > 1e-12 else 0.0


def mutual_information(a: Integers, b: Integers) -> tuple[float, float, list[Integers]]:
    """Return the mutual information of two labels, their mean entropy, and the sizes of both."""
    n = a.size
    both = np.unique(a * (int(b.max()) + 1) + b, return_counts=True)[1]
    sizes = [np.unique(labels, return_counts=True)[1] for labels in (a, b)]
    entropies = [np.log(n) - xlogy(size, size).sum() / n for size in sizes]
    shared = sum(entropies) - (np.log(n) - xlogy(both, both).sum() / n)
    return float(shared), float(0.5 * sum(entropies)), sizes


def _by_chance(sizes: Integers, others: Integers, n: int) -> float:
    """Return the mean mutual information of independent labels with these sizes.

    The number of rows that two groups share is hypergeometric.
    """
    log_factorials = gammaln(np.arange(n + 1) + 1.0)
    (x, n_x), (y, n_y) = (np.unique(s, return_counts=True) for s in (sizes, others))
    total = 0.0
    for size, count in zip(x.tolist(), n_x.tolist(), strict=True):
        m = np.arange(1, size + 1)[:, None]
        possible = (m <= y) & (m >= size + y - n)
        shared, other = m * np.ones_like(y), y * np.ones_like(m)
        m, other = shared[possible], other[possible]
        log_p = (
            log_factorials[size]
            + log_factorials[n - size]
            - log_factorials[n]
            + log_factorials[other]
            + log_factorials[n - other]
            - log_factorials[m]
            - log_factorials[size - m]
            - log_factorials[other - m]
            - log_factorials[n - size - other + m]
        )
        gains = m / n * np.log(n * m / (size * other)) * np.exp(log_p)
        total += count * float(gains @ n_y[np.searchsorted(y, other)])
    return total
