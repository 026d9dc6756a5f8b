"""Clusters to be joined, and groups of them: the likelihood's part of the log odds.

A pool holds one row of statistics per cluster and computes the log odds of joining two of them,

    log m(i+j) - log m(i) - log m(j).

The default uses the marginal likelihood of any family; faster ways override it.
"""

from typing import TYPE_CHECKING

import numpy as np

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods.batch import plus

if TYPE_CHECKING:
    from bnpstream.likelihoods.base import Likelihood


BLOCK_CELLS = 4_000_000
"""Most (pair, statistic) cells held at a time: 32 MB."""


class Pool:
    """Clusters to be joined, by the marginal likelihood of any family.

    Parameters
    ----------
    likelihood : Likelihood
        Likelihood of the rows.
    rows : ndarray of shape (K, D)
        Summed statistics.
    """

    def __init__(self, likelihood: "Likelihood", rows: Floats) -> None:
        self._likelihood, self._rows = likelihood, rows.copy()
        self._alone = likelihood.log_marginal(self._rows)

    def odds(self, i: int, others: Integers) -> Floats:
        """Return log m(i+k) - log m(i) - log m(k) for k in `others`."""
        together = np.empty(others.size)
        block = max(1, BLOCK_CELLS // self._rows.shape[1])
        for start in range(0, others.size, block):
            part = self._rows[others[start : start + block]]
            summed = plus(part, np.ones(len(part)), self._rows[i], paired=self._likelihood.paired)
            together[start : start + block] = self._likelihood.log_marginal(summed)
        odds: Floats = together - self._alone[others] - self._alone[i]
        return odds

    def table(self, some: Integers, others: Integers) -> Floats:
        """Return the odds of each of some with each of others, shape (some, others)."""
        return np.stack([self.odds(i, others) for i in some])

    def join(self, i: int, j: int, others: Integers, odds: Floats) -> Floats:
        """Add cluster j to cluster i; j must not be used any more.

        Parameters
        ----------
        i, j : int
            The clusters to join.
        others : ndarray of shape (n,)
            Clusters whose odds with i are wanted.
        odds : ndarray of shape (n,)
            Those before the join; a family may only need to update them.

        Returns
        -------
        odds : ndarray of shape (n,)
            Those after the join.
        """
        paired = self._likelihood.paired
        self._rows[i] = plus(self._rows[[i]], np.ones(1), self._rows[j], paired=paired)[0]
        self._alone[i] = self._likelihood.log_marginal(self._rows[[i]])[0]
        return self.odds(i, others)

    def part(self, slots: Integers) -> "Pool":
        """Return some of the clusters, in this order; joins do not affect this pool."""
        return Pool(self._likelihood, self._rows[slots])

    def summed(self, members: Integers, n_groups: int) -> "Pool":
        """Return groups as clusters; members[k] is the group of cluster k."""
        return Pool(self._likelihood, self.groups(members, n_groups).sums)

    def groups(self, members: Integers, n_groups: int) -> "Groups":
        """Return groups of clusters; members[k] is the group of cluster k, none if below 0."""
        return Groups(self._likelihood, self._rows, members, n_groups)


class Groups:
    """Summed statistics of groups that clusters leave and join."""

    def __init__(
        self, likelihood: "Likelihood", rows: Floats, members: Integers, n_groups: int
    ) -> None:
        self._likelihood, self._rows = likelihood, rows
        self.sums = np.zeros((n_groups, rows.shape[1]))
        for k in np.flatnonzero(members >= 0):
            self.move(int(k), int(members[k]), 1)

    def gains(self, k: int, home: int, some: Integers) -> Floats:
        """Return log m(g+k) - log m(g) of cluster k for some groups g.

        If its home is one of them, the cluster is first taken out of it; home below 0 means none.
        """
        likelihood, before = self._likelihood, self.sums[some]
        at = some == home
        before[at] = plus(before[at], -np.ones(at.sum()), self._rows[k], paired=likelihood.paired)
        after = plus(before, np.ones(some.size), self._rows[k], paired=likelihood.paired)
        return likelihood.log_marginal(after) - likelihood.log_marginal(before)

    def move(self, k: int, group: int, sign: int) -> None:
        """Add cluster k to a group, or take it out."""
        before, paired = self.sums[[group]], self._likelihood.paired
        self.sums[group] = plus(before, np.array([float(sign)]), self._rows[k], paired=paired)[0]
