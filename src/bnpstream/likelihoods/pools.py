"""Clusters that are joined, and groups of them: the likelihood's part of the log odds.

A pool holds one row of statistics per cluster and says what joining two of them is worth,

    log m(i+j) - log m(i) - log m(j).

Any likelihood can do that by its marginal likelihood; what is faster is overridden.
"""

from typing import TYPE_CHECKING

import numpy as np

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods.batch import plus

if TYPE_CHECKING:
    from bnpstream.likelihoods.base import Likelihood


BLOCK_CELLS = 4_000_000
"""(pair, statistic) cells held at a time: 32 MB."""


class Pool:
    """Clusters that are joined, by the marginal likelihood of any family.

    Parameters
    ----------
    likelihood : Likelihood
        What rows look like in a cluster.
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

    def join(self, i: int, j: int, others: Integers, odds: Floats) -> Floats:
        """Add cluster j to cluster i; j is not asked for any more.

        Parameters
        ----------
        i, j : int
            The two clusters.
        others : ndarray of shape (n,)
            Clusters whose odds with i are wanted.
        odds : ndarray of shape (n,)
            Those before: a family may know what a join changes about them.

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
        """Return some of the clusters, in this order; joins leave these as they are."""
        return Pool(self._likelihood, self._rows[slots])

    def summed(self, members: Integers, n_groups: int) -> "Pool":
        """Return groups as clusters; members[k] is the group of cluster k."""
        return Pool(self._likelihood, self.groups(members, n_groups).sums)

    def groups(self, members: Integers, n_groups: int) -> "Groups":
        """Return groups of clusters; members[k] is the group of cluster k."""
        return Groups(self._likelihood, self._rows, members, n_groups)


class Groups:
    """Summed statistics of groups of clusters, which clusters leave and join."""

    def __init__(
        self, likelihood: "Likelihood", rows: Floats, members: Integers, n_groups: int
    ) -> None:
        self._likelihood, self._rows = likelihood, rows
        self.sums = np.zeros((n_groups, rows.shape[1]))
        for k, group in enumerate(members):
            self.sums[group] = self._with(k, int(group), 1.0)

    def _with(self, k: int, group: int, sign: float) -> Floats:
        """Return the sum of a group with cluster k added, or taken out."""
        before, paired = self.sums[[group]], self._likelihood.paired
        summed: Floats = plus(before, np.array([sign]), self._rows[k], paired=paired)[0]
        return summed

    def gains(self, k: int, home: int) -> Floats:
        """Return log m(g+k) - log m(g) of cluster k, taken out of its home, in every group g."""
        likelihood, before = self._likelihood, self.sums.copy()
        before[home] = self._with(k, home, -1.0)
        after = plus(before, np.ones(len(before)), self._rows[k], paired=likelihood.paired)
        gains: Floats = likelihood.log_marginal(after) - likelihood.log_marginal(before)
        return gains

    def move(self, k: int, home: int, group: int) -> None:
        """Take cluster k out of one group and add it to another."""
        self.sums[home] = self._with(k, home, -1.0)
        self.sums[group] = self._with(k, group, 1.0)
