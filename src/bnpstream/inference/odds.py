"""Log odds of one cluster against two where rows are out of sight: likelihood and prior."""

import numpy as np
from numpy.typing import NDArray

from bnpstream.inference.pools import Pool
from bnpstream.mixture import MixtureState, Model, log_prior_weights
from bnpstream.priors import Prior

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SURELY_OCCUPIED = -1e3
"""A log vacancy that is none: finite, so that it can be subtracted again."""


class Odds:
    """Log odds of joining clusters: likelihood and prior, as clusters are joined.

    E[K'] and U are those of the posterior throughout: they shift the odds of all pairs alike.
    """

    def __init__(self, model: Model, state: MixtureState, pool: Pool) -> None:
        self.prior, self.pool = model.prior, pool
        self.masses = state.masses.copy()
        self.log_vacancy = np.maximum(state.log_vacancy, SURELY_OCCUPIED)
        self.auxiliary = log_prior_weights(model.prior, state)[1]
        self.count = float(model.prior.occupancy(state.log_vacancy).sum())

    def copy(self) -> "Odds":
        """Return odds whose joins leave these as they are."""
        other = object.__new__(Odds)
        vars(other).update(vars(self))
        other.masses, other.log_vacancy = self.masses.copy(), self.log_vacancy.copy()
        other.pool = self.pool.copy()
        return other

    def of(self, i: int, others: Integers) -> Floats:
        """Return the log odds of joining i with each of some others."""
        mass, vacancy = np.full(others.size, self.masses[i]), self.log_vacancy[i]
        prior = prior_odds(
            self.prior,
            np.stack([mass, self.masses[others]]),
            np.stack([np.full(others.size, vacancy), self.log_vacancy[others]]),
            self.count,
            self.auxiliary,
        )
        return self.pool.odds(i, others) + prior

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
