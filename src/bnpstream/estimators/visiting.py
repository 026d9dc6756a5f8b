"""What the parameters of every streaming estimator amount to: settings of a visit, and a trial."""

import re
from copy import copy
from numbers import Integral, Real
from typing import Any, Self

from bnpstream.estimators.base import MixtureEstimator, require_number, require_whole
from bnpstream.inference import adf
from bnpstream.inference.budget import NO_BUDGET, Budget
from bnpstream.mixture import MixtureState
from bnpstream.priors import Prior
from bnpstream.search import Learner, Trial

LEARNT = ("_given", "_prior_given", "_finishing", "_learner")
"""What calls leave behind besides; scikit-learn has private attributes of its own."""
LOWEST_DEFAULT_THRESHOLD = 0.1
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def budget_of(max_clusters: Any, max_memory: Any) -> Budget:
    """Return a checked budget."""
    if max_clusters is not None:
        require_whole("max_clusters", max_clusters, 2)
    return Budget(max_clusters, None if max_memory is None else require_bytes(max_memory))


def require_bytes(value: Any) -> int:
    """Return an amount of memory in bytes, given as a number or such as "512MB".

    Examples
    --------
    >>> require_bytes(1000), require_bytes("1.5 kB"), require_bytes("2GB")
    (1000, 1500, 2000000000)
    """
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMG]?)B?\s*", value, re.IGNORECASE)
        if found is not None:
            return int(float(found[1]) * UNITS[found[2].upper()])
    elif isinstance(value, Integral) and int(value) >= 1:
        return int(value)
    raise ValueError(f'max_memory must be bytes, or such as "512MB" or "2GB", got {value!r}')


def settings_of(
    prior: Prior,
    new_cluster_threshold: Any,
    min_responsibility: Any,
    prune_threshold: Any = None,
    budget: Budget = NO_BUDGET,
) -> adf.Settings:
    """Return checked settings of a visit, with the prior's defaults for what is None."""
    sigma, threshold = prior.smallest_mass, new_cluster_threshold
    if threshold is None:
        threshold = max(sigma, LOWEST_DEFAULT_THRESHOLD)
    if not (isinstance(threshold, Real) and sigma <= float(threshold) < 1.0):
        raise ValueError(
            f"new_cluster_threshold (epsilon) must be in [{sigma:g}, 1), not below the prior's "
            f"discount {sigma:g} (a cluster opened with less mass has no weight), "
            f"got {threshold!r}"
        )
    cut = require_number("min_responsibility", min_responsibility, 0.0, 1.0)
    prune = threshold if prune_threshold is None else prune_threshold
    least = require_number("prune_threshold", prune, 0.0, 1.0)
    return adf.Settings(float(threshold), cut, least, budget)


class VisitingEstimator(MixtureEstimator):
    """A mixture whose rows are visited in order, and which learns from them what is left open."""

    new_cluster_threshold: float | None
    min_responsibility: float
    prune_threshold: float | None = None
    max_clusters: int | None
    max_memory: int | str | None
    prefix_rows: int
    state_: MixtureState
    _learner: Learner

    def _unfitted(self) -> Self:
        """Return a copy of the parameters alone."""
        fresh = copy(self)
        fresh.__dict__ = {
            name: x for name, x in vars(self).items() if name[-1] != "_" and name not in LEARNT
        }
        return fresh

    def _follow_prior(self) -> None:
        """Use the prior that was given since the last call, and learn what it leaves open."""
        prior = self._prior()
        self._take_prior(prior)
        if prior.learn and "_learner" not in vars(self):
            self._learner = Learner(self.prefix_rows)
            self._learner.skip(self.state_.n_observations)

    def _settings(self) -> adf.Settings:
        return self._settings_for(self._prior())

    def _settings_for(self, prior: Prior) -> adf.Settings:
        return settings_of(
            prior,
            self.new_cluster_threshold,
            self.min_responsibility,
            self.prune_threshold,
            budget_of(self.max_clusters, self.max_memory),
        )

    def _trial(self) -> Trial:
        """Return how the learner visits rows."""
        given = self.new_cluster_threshold
        return Trial(self._settings_for, self._kernel, 1.0 if given is None else float(given))
