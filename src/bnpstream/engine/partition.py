"""Learns a prior from its clusters: concentration and discount.

The marginal likelihood of the partition, `Prior.log_partition`, is a function of one or two
parameters. Unlike that of a base measure it does not run away: the number and the sizes of
clusters are what these parameters describe
(``docs/decisions/2026-11-16-learning-from-the-stream.md``).
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from bnpstream.mixture import MixtureState
from bnpstream.mixture.state import log_vacancy_of
from bnpstream.priors import Prior

SHAPE, RATE = 1.0, 0.01
"""Gamma prior of a concentration: weak, with mean 100."""
LEAST = 1e-3
"""Least concentration. The largest is the mass of all rows: every second row opens a cluster."""
DISCOUNTS = np.linspace(0.05, 0.9, 18)
TOLERANCE = 1e-2
"""Tolerance of a log concentration."""


def learnt_prior(prior: Prior, state: MixtureState, most_discount: float = 1.0) -> Prior:
    """Return a prior with the parameters it learns fitted to the clusters.

    The concentration is the mode of log a given the partition, where a ~ Gamma(1, .01). Given U
    that is the conjugate posterior mean, (1 + K) / (.01 + phi(u)/a); here U is integrated out. The
    discount is the best of a grid, each value with its own best concentration.

    Parameters
    ----------
    prior : Prior
        The current prior.
    state : MixtureState
        The posterior.
    most_discount : float
        Largest discount: a cluster opened with less mass would have no weight.
    """
    if state.n_clusters == 0:
        return prior
    found = [prior]
    if "discount" in prior.learn:
        fits = DISCOUNTS[most_discount >= DISCOUNTS]
        found = [_with(prior, discount=float(sigma)) for sigma in fits] or found
    if "concentration" in prior.learn:
        found = [_at_best_concentration(candidate, state) for candidate in found]
    if len(found) == 1:
        return found[0]
    return max(found, key=lambda candidate: log_posterior(candidate, state))


def log_posterior(prior: Prior, state: MixtureState) -> float:
    """Return the log probability of the clusters, and of log a if a is learnt.

    A cluster with less than one row left, after forgetting, counts as that fraction.
    """
    vacancy = np.maximum(state.log_vacancy, log_vacancy_of(state.masses))
    likely = prior.log_partition(state.masses, vacancy, state.total_mass)
    if "concentration" not in prior.learn:
        return likely
    a: float = getattr(prior, "concentration")  # noqa: B009
    return likely + SHAPE * math.log(a) - RATE * a


def _at_best_concentration(prior: Prior, state: MixtureState) -> Prior:
    def loss(log_a: float) -> float:
        return -log_posterior(with_concentration(prior, math.exp(log_a)), state)

    bounds = (math.log(LEAST), math.log(max(state.total_mass, 2.0)))
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": TOLERANCE})
    return with_concentration(prior, math.exp(float(best.x)))


def with_concentration(prior: Prior, concentration: float) -> Prior:
    """Return a prior with another concentration."""
    return _with(prior, concentration=concentration)


def _with(prior: Prior, **parameters: float) -> Prior:
    change: Any = parameters
    return replace(prior, **change)
