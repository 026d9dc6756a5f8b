"""Priors, small data and a likelihood from elsewhere that the tests of exact sampling share."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

import naive
from bnpstream.likelihoods import Batch, DirichletMultinomial, Likelihood
from bnpstream.mixture import Model
from bnpstream.priors import (
    GeneralizedGamma,
    PitmanYor,
    dirichlet_process,
    normalized_inverse_gaussian,
    normalized_stable,
)

WORDS, ALPHA = 4, 0.7
ENGINES = ["reference", "compiled"]

PRIORS = {
    "dp": (dirichlet_process(1.3), naive.Prior("nggp", 1.3, 0.0, 1.0)),
    "nig": (normalized_inverse_gaussian(1.5, 0.4), naive.Prior("nggp", 1.5, 0.5, 0.4)),
    "nggp": (
        GeneralizedGamma(0.8, 0.25, 2.0, auxiliary="quadrature"),
        naive.Prior("nggp", 0.8, 0.25, 2.0),
    ),
    "stable": (normalized_stable(0.6), naive.Prior("nggp", 1.0, 0.6, 0.0)),
    "py": (PitmanYor(0.7, 0.35), naive.Prior("py", 0.7, 0.35)),
    "negative py": (PitmanYor(-0.2, 0.6), naive.Prior("py", -0.2, 0.6)),
}


def model_of(kind, likelihood=None):
    return Model(PRIORS[kind][0], likelihood or DirichletMultinomial(ALPHA))


def documents(number, rows, length=4, words=WORDS):
    """Return short documents of two topics, shape (rows, words)."""
    rng = np.random.default_rng((41, number))
    theta = rng.dirichlet(np.full(words, 0.6), size=2)
    return rng.multinomial(rng.integers(1, length + 1, size=rows), theta[np.arange(rows) % 2])


def as_documents(counts):
    return [{w: int(c) for w, c in enumerate(row) if c} for row in np.asarray(counts)]


@dataclass(frozen=True)
class PoissonGamma(Likelihood):
    """Counts x ~ Poisson(rate), rate ~ Gamma(shape, 1): what a user would write, in dense rows.

    t(x) = (x, 1), h(x) = 1/x!, Z(S) = Gamma(shape + S_1) / (1 + S_2)^(shape + S_1).
    """

    shape: float

    def encode(self, X):
        x = np.asarray(X, dtype=float).reshape(-1, 1)
        return Batch(np.hstack([x, np.ones_like(x)]), -gammaln(x[:, 0] + 1))

    def log_normalizer(self, statistics):
        shape = self.shape + statistics[:, 0]
        return gammaln(shape) - shape * np.log(1 + statistics[:, 1])

    def posterior_mean(self, statistics):
        return ((self.shape + statistics[:, 0]) / (1 + statistics[:, 1]))[:, None]

    def sample(self, statistics, rng, **options):
        rates = rng.gamma(self.shape + statistics[:, 0]) / (1 + statistics[:, 1])
        return rng.poisson(rates)[:, None]
