"""The shipped law checks pass on every class of ours, and catch a broken one."""

from dataclasses import dataclass

import numpy as np
import pytest

from bnpstream import (
    DirichletMultinomial,
    GeneralizedGamma,
    PitmanYor,
    dirichlet_process,
    normalized_inverse_gaussian,
    normalized_stable,
)
from bnpstream.datasets import bars
from bnpstream.testing import check_likelihood, check_prior

# One prior for each path through the compiled rule is checked again without the compiler.
PATHS = [
    dirichlet_process(0.5),
    normalized_inverse_gaussian(1, 1),
    normalized_stable(0.3),
    GeneralizedGamma(0.7, 0.75, 0.1, cluster_count="plain"),
    PitmanYor(1.0, 0.75),
]
OTHERS = [
    dirichlet_process(10.0),
    normalized_inverse_gaussian(10, 100),
    GeneralizedGamma(2.0, 0.25, 3.0, auxiliary="quadrature"),
    PitmanYor(0.0, 0.4),
    PitmanYor(-0.2, 0.5),
]


@pytest.mark.parametrize(
    "prior",
    [*(pytest.param(prior, marks=pytest.mark.kernel) for prior in PATHS), *OTHERS],
    ids=repr,
)
def test_every_prior_obeys_the_laws(prior):
    check_prior(prior)


@pytest.mark.kernel
@pytest.mark.parametrize(
    "alpha", [0.1, 3.0, np.linspace(0.1, 2.0, 64)], ids=["small", "large", "v"]
)
def test_every_likelihood_obeys_the_laws(alpha):
    check_likelihood(DirichletMultinomial(alpha), bars(n_images=12, seed=3).counts)


@dataclass(frozen=True, repr=False)
class PrintedExponent(GeneralizedGamma):
    """The paper's n - aK in place of n - sigma K."""

    def log_auxiliary_joint(self, v, masses, occupancy, n):
        right = super().log_auxiliary_joint(v, masses, occupancy, n)
        excess = (self.concentration - self.discount) * occupancy.sum()
        return right + excess * np.log(np.exp(v) + self.tilt)


@dataclass(frozen=True, repr=False)
class WrongMoment(GeneralizedGamma):
    def log_tilted_moment(self, m, u):
        return super().log_tilted_moment(m, u) + 0.1 * np.log(u)


@dataclass(frozen=True, repr=False)
class WrongMode(GeneralizedGamma):
    """The mode of u instead of log u."""

    def solve_auxiliary(self, masses, log_vacancy, n, start):
        return super().solve_auxiliary(masses, log_vacancy, n - 1.0, start)


@dataclass(frozen=True, repr=False)
class WrongSampler(PitmanYor):
    def sample_partition(self, n, rng):
        return np.arange(n)


@dataclass(frozen=True, repr=False)
class WrongExpectation(PitmanYor):
    def expected_clusters(self, n):
        return super().expected_clusters(n) + 1e-3


@dataclass(frozen=True, repr=False)
class WrongRule(PitmanYor):
    def predictive_rule(self, counts):
        return super().predictive_rule(np.asarray(counts) + 0.01)


@dataclass(frozen=True, repr=False)
class WrongDiscount(PitmanYor):
    def log_weights(self, masses, log_vacancy, n, auxiliary):
        log_weights = super().log_weights(masses, log_vacancy, n, auxiliary)
        return np.maximum(log_weights, -50.0)


@dataclass(frozen=True, repr=False)
class WrongTwin(PitmanYor):
    def kernel_parameters(self):
        return super().kernel_parameters()._replace(concentration=self.concentration + 1e-6)


@dataclass(frozen=True, repr=False)
class WrongMergeOdds(PitmanYor):
    def log_merge_odds(self, masses, occupancy, joint, count, auxiliary):
        return super().log_merge_odds(masses, occupancy, joint, count + 1.0, auxiliary)


@dataclass(frozen=True, repr=False)
class DisturbedByEmpty(GeneralizedGamma):
    def log_weights(self, masses, log_vacancy, n, auxiliary):
        log_weights = super().log_weights(masses, log_vacancy, n, auxiliary)
        return np.where(masses.min(initial=1.0) == 0.0, np.nan, log_weights)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (WrongMergeOdds(1.0, 0.5), "log_merge_odds"),
        (DisturbedByEmpty(1.0, 0.5), "emptied"),
        (PrintedExponent(2.0, 0.5), "sum to one"),
        (WrongMoment(2.0, 0.5), "kappa_1"),
        (WrongMode(2.0, 0.5), "mode of log u"),
        (WrongSampler(1.0, 0.5), "sample_partition"),
        (WrongExpectation(1.0, 0.5), "expected_clusters"),
        (WrongRule(1.0, 0.5), "predictive_rule"),
        (WrongDiscount(1.0, 0.5), "zero weight"),
        (WrongTwin(1.0, 0.5), "compiled log_weights"),
    ],
)
def test_a_broken_prior_is_caught(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_prior(broken)


class WrongScore(DirichletMultinomial):
    def log_predictive(self, statistics, row):
        return super().log_predictive(statistics, row) + 1e-6 * statistics.sum(axis=1)


class WrongBase(DirichletMultinomial):
    def encode(self, X):
        batch = super().encode(X)
        return type(batch)(batch.statistics, batch.log_base + np.arange(len(batch)))


class WrongTwinScore(DirichletMultinomial):
    def kernel_parameters(self, n_statistics):
        parameters = super().kernel_parameters(n_statistics)
        return parameters._replace(total=parameters.total + 1e-6)


class WrongColumns(DirichletMultinomial):
    def sample(self, statistics, rng, **options):
        return super().sample(statistics, rng, **options)[:, :-1]


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (WrongScore(0.5), "ratio of normalisers"),
        (WrongBase(0.5), "log h"),
        (WrongTwinScore(0.5), "compiled scores"),
        (WrongColumns(0.5), "sampled rows"),
    ],
)
def test_a_broken_likelihood_is_caught(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_likelihood(broken, bars(n_images=12, seed=3).counts)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="at least six rows, got 2"):
        check_likelihood(DirichletMultinomial(0.1), np.eye(2, dtype=int))
