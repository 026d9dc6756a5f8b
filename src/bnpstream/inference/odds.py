"""Log odds of one cluster against two without rows: likelihood and prior."""

from copy import copy
from typing import Any

import numpy as np

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods.pools import Pool
from bnpstream.mixture import MixtureState, Model, log_prior_weights

PAIRS = 200_000
"""Pairs whose odds are computed at a time: some thirty megabytes."""
SURELY_OCCUPIED = -1e3
"""A very low log vacancy: finite, so that it can be subtracted again."""


def pool_of(model: Model, state: MixtureState) -> Pool:
    """Return the clusters of a posterior, by slot."""
    return model.likelihood.pool(state.sparse_rows(np.arange(state.n_clusters)))


class Odds:
    """Log odds of joining clusters, from likelihood and prior, updated as clusters are joined.

    E[K'] and U stay those of the posterior: they shift the odds of all pairs alike.

    Parameters
    ----------
    model, state
        The posterior.
    pool : Pool
        Clusters.
    masses, log_vacancy : ndarray of shape (n,), optional
        Of these, if they differ from those of the posterior.
    """

    def __init__(
        self,
        model: Model,
        state: MixtureState,
        pool: Pool,
        masses: Floats | None = None,
        log_vacancy: Floats | None = None,
    ) -> None:
        self.pool, self._prior_of = pool, model.prior
        self.masses = (state.masses if masses is None else masses).copy()
        vacancy = state.log_vacancy if log_vacancy is None else log_vacancy
        self.log_vacancy = np.maximum(vacancy, SURELY_OCCUPIED)
        self._auxiliary = log_prior_weights(model.prior, state)[1]
        self._count = float(model.prior.occupancy(state.log_vacancy).sum())
        self._seated = self.seated(self.masses, self.log_vacancy)

    def part(self, slots: Integers) -> "Odds":
        """Return the odds of some clusters, in this order; joins do not affect this object."""
        return self._of(self.pool.part(slots), self.masses[slots], self.log_vacancy[slots])

    def summed(self, members: Integers, n_groups: int) -> "Odds":
        """Return the odds of groups of clusters; members[k] is the group of cluster k."""
        sums = np.zeros((2, n_groups))
        np.add.at(sums[0], members, self.masses)
        np.add.at(sums[1], members, self.log_vacancy)
        return self._of(self.pool.summed(members, n_groups), *sums)

    def _of(self, pool: Pool, masses: Floats, log_vacancy: Floats) -> "Odds":
        other = copy(self)
        other.pool, other.masses, other.log_vacancy = pool, masses, log_vacancy
        other._seated = other.seated(masses, log_vacancy)
        return other

    def of(self, i: int, others: Integers) -> Floats:
        """Return the log odds of joining i with each of some others."""
        found: Floats = self.table(np.array([i]), others)[0]
        return found

    def table(self, some: Integers, others: Integers) -> Floats:
        """Return the log odds of joining each of some with each of others, one row each."""
        step = max(1, PAIRS // max(1, others.size))
        parts = [some[start : start + step] for start in range(0, some.size, step)]
        return np.concatenate([self._table(part, others) for part in parts])

    def _table(self, some: Integers, others: Integers) -> Floats:
        one, other = np.repeat(some, others.size), np.tile(others, some.size)
        prior = self._prior(one, other).reshape(some.size, -1)
        return self.pool.table(some, others) + prior

    def _prior(self, one: Any, other: Integers) -> Floats:
        """Return the prior's log odds of joining clusters without common rows."""
        masses = self.masses[one] + self.masses[other]
        joint = self.seated(masses, self.log_vacancy[one] + self.log_vacancy[other])
        odds: Floats = joint - (self._seated[one] + self._seated[other])
        return odds

    def seated(self, masses: Floats, log_vacancy: Floats) -> Floats:
        """Return the prior's term of clusters (see `Prior.log_seated`)."""
        occupancy = self._prior_of.occupancy(log_vacancy)
        return self._prior_of.log_seated(masses, occupancy, self._count, self._auxiliary)

    def join(self, i: int, j: int, others: Integers, odds: Floats) -> Floats:
        """Add cluster j to cluster i; return the odds of i with others, given those before."""
        alone = odds - self._prior(i, others)
        self.masses[i] += self.masses[j]
        self.log_vacancy[i] += self.log_vacancy[j]
        self._seated[i] = self.seated(self.masses[[i]], self.log_vacancy[[i]])[0]
        return self.pool.join(i, j, others, alone) + self._prior(i, others)
