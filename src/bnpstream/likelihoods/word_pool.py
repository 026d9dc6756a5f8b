"""Clusters of words that are joined: only words that both clusters have matter.

So their rows are kept sparse, and the sums are compiled.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.words.pools import WordRows, fill_log_gammas, group_gains, word_odds
from bnpstream.likelihoods.pools import Groups, Pool

if TYPE_CHECKING:
    from bnpstream.likelihoods.words import WordLikelihood

LEAST_COUNT = 0.1
"""Counts below this are left out of a pool: every cluster has crumbs of rows that are another's. On
20 Newsgroups they are three quarters of all counts and 1 % of the words."""


class WordPool(Pool):
    """Clusters of words, in sparse rows over the words that any of them has.

    Parameters
    ----------
    alpha : ndarray of shape (V,)
        Base measure of these words.
    total : float
        A, that of all words.
    rows : list of (columns, values)
        Every cluster's words, in ascending order, and their counts.
    lengths : ndarray of shape (K,)
        Words of every cluster.
    """

    def __init__(
        self,
        alpha: Floats,
        total: float,
        rows: list[tuple[NDArray[np.int32], Floats]],
        lengths: Floats,
    ) -> None:
        self.alpha, self.total, self.rows, self.lengths = alpha, total, rows, lengths.copy()
        self._base = gammaln(alpha)
        sizes = np.array([values.size for _, values in rows], np.int64)
        columns = np.concatenate([columns for columns, _ in rows])
        values = np.concatenate([values for _, values in rows])
        self._arrays = WordRows(
            columns, values, self._own(columns, values), np.cumsum(sizes) - sizes, sizes
        )

    @classmethod
    def of(cls, likelihood: "WordLikelihood", statistics: csr_array) -> "WordPool":
        """Return clusters with these statistics, of which the last is the length."""
        K, last = statistics.shape[0], statistics.shape[1] - 1
        rows = np.repeat(np.arange(K), np.diff(statistics.indptr))
        columns, values = statistics.indices.astype(np.int64), statistics.data
        at_end, lengths = columns == last, np.zeros(K)
        lengths[rows[at_end]] = values[at_end]
        kept = ~at_end & (values >= LEAST_COUNT)
        rows, columns, values = rows[kept], columns[kept], values[kept]
        used, columns = np.unique(columns, return_inverse=True)
        alpha, total = likelihood.base_measure(last)
        base = np.full(used.size, alpha[0]) if alpha.size == 1 else alpha[used]
        ends = np.searchsorted(rows, np.arange(1, K))
        parts = (np.split(columns.astype(np.int32), ends), np.split(values, ends))
        return cls(base, total, list(zip(*parts, strict=True)), lengths)

    def _own(self, columns: NDArray[np.int32], values: Floats) -> Floats:
        """Return log Gamma(alpha + value) - log Gamma(alpha)."""
        own = np.empty(values.size)
        fill_log_gammas(self.alpha[columns] + values, own)
        return own - self._base[columns]

    def odds(self, i: int, others: Integers) -> Floats:
        """Return log m(i+k) - log m(i) - log m(k) for k in `others`."""
        odds = np.empty(others.size)
        word_odds(self._arrays, i, others, self.alpha, odds)
        one, other = self.lengths[i], self.lengths[others]
        apart = gammaln(self.total + one) + gammaln(self.total + other)
        lengths: Floats = apart - gammaln(self.total + one + other) - gammaln(self.total)
        return odds + lengths

    def join(self, i: int, j: int) -> None:
        """Add cluster j to cluster i: the joint row goes to the end of the arrays."""
        (one, x), (other, y) = self._row(i), self._row(j)
        columns = np.union1d(one, other)
        values = np.zeros(columns.size)
        values[np.searchsorted(columns, one)] += x
        values[np.searchsorted(columns, other)] += y
        arrays = self._arrays
        arrays.sizes[[i, j]] = 0
        end = int((arrays.starts + arrays.sizes).max(initial=0))
        if end + columns.size > arrays.columns.size:
            arrays = self._arrays = _compacted(arrays, columns.size)
            end = int(arrays.sizes.sum())
        place = slice(end, end + columns.size)
        arrays.columns[place], arrays.values[place] = columns, values
        arrays.own[place] = self._own(columns, values)
        arrays.starts[i], arrays.sizes[i] = end, columns.size
        self.lengths[i] += self.lengths[j]

    def _row(self, k: int) -> tuple[NDArray[np.int32], Floats]:
        arrays = self._arrays
        inside = slice(arrays.starts[k], arrays.starts[k] + arrays.sizes[k])
        return arrays.columns[inside], arrays.values[inside]

    def copy(self) -> "WordPool":
        """Return a pool whose joins leave this one as it is."""
        rows = [self._row(k) for k in range(self.lengths.size)]
        return WordPool(self.alpha, self.total, rows, self.lengths)

    def groups(self, members: Integers, n_groups: int) -> "WordGroups":
        """Return groups of clusters."""
        return WordGroups(self, members, n_groups)


def _compacted(rows: WordRows, more: int) -> WordRows:
    """Return the rows one after the other, with room for as much again and for one more."""
    live = int(rows.sizes.sum())
    starts = np.cumsum(rows.sizes) - rows.sizes
    places = np.repeat(rows.starts - starts, rows.sizes) + np.arange(live)

    def moved(part: NDArray[Any]) -> NDArray[Any]:
        room = np.zeros(2 * live + more, part.dtype)
        room[:live] = part[places]
        return room

    return WordRows(moved(rows.columns), moved(rows.values), moved(rows.own), starts, rows.sizes)


class WordGroups(Groups):
    """Groups of clusters of words: every word's counts in all groups lie side by side."""

    def __init__(self, pool: WordPool, members: Integers, n_groups: int) -> None:
        self._pool, self._lengths = pool, np.zeros(n_groups)
        self._shapes = np.repeat(pool.alpha[:, None], n_groups, axis=1)
        for k, group in enumerate(members):
            columns, values = pool.rows[k]
            self._shapes[columns, group] += values
            self._lengths[group] += pool.lengths[k]
        self._log_gammas: Floats = gammaln(self._shapes)

    def gains(self, k: int) -> Floats:
        """Return log m(g+k) - log m(g) of cluster k in every group g."""
        columns, values = self._pool.rows[k]
        gains = np.empty(self._lengths.size)
        group_gains(self._shapes, self._log_gammas, columns, values, gains)
        before = self._pool.total + self._lengths
        after: Floats = gammaln(before + self._pool.lengths[k])
        return gains + gammaln(before) - after

    def move(self, k: int, group: int, sign: float) -> None:
        """Add cluster k to a group, or take it out."""
        columns, values = self._pool.rows[k]
        shapes = self._shapes[columns, group] + sign * values
        # What a subtraction leaves of alpha may be rounding only.
        shapes = np.maximum(shapes, self._pool.alpha[columns])
        self._shapes[columns, group] = shapes
        log_gammas = np.empty(columns.size)
        fill_log_gammas(shapes, log_gammas)
        self._log_gammas[columns, group] = log_gammas
        self._lengths[group] = max(self._lengths[group] + sign * self._pool.lengths[k], 0.0)
