"""A likelihood of somebody else: exponential waiting times, in NumPy and compiled."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from bnpstream.extending import (
    Batch,
    Likelihood,
    locate,
    log_predictive_of,
    log_predictive_of_new,
    specialize,
)


@dataclass(frozen=True)
class Waits(Likelihood):
    """x_j ~ Exponential(rate_j), rate_j ~ Gamma(shape, scale); two methods and no more."""

    shape: float = 2.0
    scale: float = 1.0

    def encode(self, X):
        X = np.asarray(X, dtype=np.float64)
        if not (X > 0).all():
            raise ValueError(f"row {np.argmax(~(X > 0).all(axis=1))}: waiting times must be > 0")
        return Batch(np.hstack([X, np.ones((len(X), 1))]), np.zeros(len(X)))

    def log_normalizer(self, statistics):
        shape = self.shape + statistics[:, -1:]
        return (gammaln(shape) - shape * np.log(self.scale + statistics[:, :-1])).sum(axis=1)


class Parameters(NamedTuple):
    shape: float
    scale: float


class CompiledWaits(Waits):
    def posterior_mean(self, statistics):
        return (self.shape + statistics[:, -1:]) / (self.scale + statistics[:, :-1])

    def sample(self, statistics, rng, **options):
        shape = self.shape + statistics[:, -1:]
        return rng.exponential(1.0 / rng.gamma(shape, 1.0 / (self.scale + statistics[:, :-1])))

    def kernel_parameters(self, n_statistics):
        return Parameters(self.shape, self.scale)


@specialize(log_predictive_of, Parameters)
def _in_cluster(parameters, table, rows, i, k, entries):
    first, last = rows.indptr[i], rows.indptr[i + 1]
    locate(table, k, rows.indices, first, last, entries)
    shape = parameters.shape + table.values[entries[last - first - 1]]
    total = 0.0
    for j in range(last - first - 1):
        scale = parameters.scale + table.values[entries[j]]
        x = rows.values[first + j]
        total += math.log(shape / scale) - (shape + 1.0) * math.log1p(x / scale)
    return total


@specialize(log_predictive_of_new, Parameters)
def _in_new(parameters, rows, i):
    total, shape, scale = 0.0, parameters.shape, parameters.scale
    for j in range(rows.indptr[i], rows.indptr[i + 1] - 1):
        total += math.log(shape / scale) - (shape + 1.0) * math.log1p(rows.values[j] / scale)
    return total


def draw_waits(n, seed, n_columns=3):
    """Return rows of three groups, and the groups."""
    rng = np.random.default_rng((seed, n))
    means = np.exp(rng.normal(0.0, 2.5, (3, n_columns)))
    truth = rng.integers(3, size=n)
    return rng.exponential(means[truth]), truth
