"""Log odds of one cluster against two where rows are out of sight: likelihood and prior."""

from copy import copy

import numpy as np

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods.pools import Pool
from bnpstream.mixture import MixtureState, Model, log_prior_weights
from bnpstream.priors import Prior

PAIRS = 200_000
"""Whose odds are taken at a time: some thirty megabytes."""
SURELY_OCCUPIED = -1e3
"""A log vacancy that is none: finite, so that it can be subtracted again."""


def pool_of(model: Model, state: MixtureState) -> Pool:
    """Return the clusters of a posterior, by slot."""
    return model.likelihood.pool(state.sparse_rows(np.arange(state.n_clusters)))


class Odds:
    """Log odds of joining clusters: likelihood and prior, as clusters are joined.

    E[K'] and U are those of the posterior throughout: they shift the odds of all pairs alike.

    Parameters
    ----------
    model, state
        The posterior.
    pool : Pool
        Clusters.
    masses, log_vacancy : ndarray of shape (n,), optional
        Of these, if they are others than those of the posterior.
    """

    def __init__(
        self,
        model: Model,
        state: MixtureState,
        pool: Pool,
        masses: Floats | None = None,
        log_vacancy: Floats | None = None,
    ) -> None:
        self.prior, self.pool = model.prior, pool
        self.masses = (state.masses if masses is None else masses).copy()
        vacancy = state.log_vacancy if log_vacancy is None else log_vacancy
        self.log_vacancy = np.maximum(vacancy, SURELY_OCCUPIED)
        self.auxiliary = log_prior_weights(model.prior, state)[1]
        self.count = float(model.prior.occupancy(state.log_vacancy).sum())

    def copy(self) -> "Odds":
        """Return odds whose joins leave these as they are."""
        other = copy(self)
        other.masses, other.log_vacancy = self.masses.copy(), self.log_vacancy.copy()
        other.pool = self.pool.copy()
        return other

    def of(self, i: int, others: Integers) -> Floats:
        """Return the log odds of joining i with each of some others."""
        found: Floats = self.table(np.array([i]), others)[0]
        return found

    def table(self, some: Integers, others: Integers) -> Floats:
        """Return the log odds of joining each of some with each of others, a row for each."""
        step = max(1, PAIRS // max(1, others.size))
        parts = [some[start : start + step] for start in range(0, some.size, step)]
        return np.concatenate([self._table(part, others) for part in parts])

    def _table(self, some: Integers, others: Integers) -> Floats:
        one, other = np.repeat(some, others.size), np.tile(others, some.size)
        prior = prior_odds(
            self.prior,
            np.stack([self.masses[one], self.masses[other]]),
            np.stack([self.log_vacancy[one], self.log_vacancy[other]]),
            self.count,
            self.auxiliary,
        )
        return np.stack([self.pool.odds(i, others) for i in some]) + prior.reshape(some.size, -1)

    def join(self, i: int, j: int) -> None:
        """Add cluster j to cluster i."""
        self.pool.join(i, j)
        self.masses[i] += self.masses[j]
        self.log_vacancy[i] += self.log_vacancy[j]


def prior_odds(
    prior: Prior, masses: Floats, log_vacancy: Floats, count: float, auxiliary: float
) -> Floats:
    """Return the prior's log odds of joining pairs of clusters that share no row."""
    occupancy, joint = prior.occupancy(log_vacancy), prior.occupancy(log_vacancy.sum(axis=0))
    return prior.log_merge_odds(masses, occupancy, joint, count, auxiliary)
