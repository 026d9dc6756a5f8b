"""Two families whose rows add to a cluster what depends on the cluster, and rows for them.

Both in NumPy and compiled: documents, and dense rows with more to be inferred in a cluster.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numba
import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp, softmax

from bnpstream import BurstyMultinomial, Directional, ScaledGaussian
from bnpstream.extending import (
    Batch,
    Likelihood,
    contribution_of,
    locate,
    log_predictive_of,
    log_predictive_of_new,
    log_rising,
    specialize,
)


@dataclass(frozen=True)
class Saturating(Likelihood):
    """Documents of which a cluster takes in no more of a word than it has, and one.

    The last column is the number of words taken in. All words of a document are scored.
    """

    alpha: float = 0.3
    latent: ClassVar[bool] = True

    def encode(self, X):
        counts = csr_array(np.asarray(X, dtype=np.float64))
        counts.sort_indices()
        ends = counts.indptr[1:]
        data = np.insert(counts.data, ends, counts.sum(axis=1))
        columns = np.insert(counts.indices, ends, counts.shape[1])
        indptr = counts.indptr + np.arange(counts.shape[0] + 1)
        shape = (counts.shape[0], counts.shape[1] + 1)
        return Batch(csr_array((data, columns, indptr), shape=shape), np.zeros(shape[0]))

    def log_normalizer(self, statistics):
        words, total = statistics[:, :-1], statistics[:, -1]
        A = self.alpha * words.shape[1]
        return gammaln(self.alpha + words).sum(axis=1) - gammaln(A + total)

    def contributions(self, statistics, row, slots):
        had = statistics[:, row.columns][slots][:, :-1]
        taken = np.minimum(row.values[:-1], 1.0 + had)
        return np.hstack([taken, taken.sum(axis=1, keepdims=True)])

    def log_predictive(self, statistics, row):
        shapes = self.alpha + statistics[:, row.columns]
        shapes[:, -1] += self.alpha * (statistics.shape[1] - 2)
        rises = gammaln(shapes + row.values) - gammaln(shapes)
        return rises[:, :-1].sum(axis=1) - rises[:, -1]

    def posterior_mean(self, statistics):
        shares = self.alpha + statistics[:, :-1]
        return shares / shares.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Scaled(Likelihood):
    """x ~ N(mean, I / lambda_g), every row with its own g of a grid; mean ~ N(0, I / rho).

    A row adds sum_g r_g (lambda_g x, 1_g), r being the probability of its g in the cluster.
    """

    precisions: tuple[float, ...] = (0.2, 1.0, 8.0)
    shares: tuple[float, ...] = (0.2, 0.5, 0.3)
    rho: float = 0.02
    latent: ClassVar[bool] = True

    @property
    def grid(self):
        return np.array(self.precisions)

    def encode(self, X):
        X = np.asarray(X, dtype=np.float64)
        return Batch(np.hstack([X, np.zeros((len(X), self.grid.size))]), np.zeros(len(X)))

    def log_normalizer(self, statistics):
        sums, counts = np.split(statistics, [-self.grid.size], axis=-1)
        precision = self.rho + counts @ self.grid
        D = sums.shape[-1]
        return 0.5 * ((sums**2).sum(axis=-1) / precision - D * np.log(precision / self.rho))

    def log_pairs(self, statistics, row):
        """Return log p(x, g | cluster), shape (K, G)."""
        x = row.values[: -self.grid.size]
        added = np.hstack([np.outer(self.grid, x), np.eye(self.grid.size)])
        before = self.log_normalizer(statistics)[:, None]
        after = self.log_normalizer(statistics[:, None, :] + added)
        log_h = 0.5 * x.size * np.log(self.grid / (2 * np.pi)) - 0.5 * self.grid * (x @ x)
        return np.log(self.shares) + log_h + after - before

    def log_predictive(self, statistics, row):
        return logsumexp(self.log_pairs(statistics, row), axis=1)

    def contributions(self, statistics, row, slots):
        r = softmax(self.log_pairs(statistics[slots], row), axis=1)
        return np.hstack([np.outer(r @ self.grid, row.values[: -self.grid.size]), r])

    def sample(self, statistics, rng, **options):
        sums, counts = np.split(statistics, [-self.grid.size], axis=-1)
        precision = (self.rho + counts @ self.grid)[:, None]
        g = rng.choice(self.grid.size, size=len(statistics), p=self.shares)
        spread = np.sqrt(1.0 / precision + 1.0 / self.grid[g, None])
        return sums / precision + spread * rng.normal(size=sums.shape)


class SaturatingParameters(NamedTuple):
    alpha: float
    total: float


class CompiledSaturating(Saturating):
    def kernel_parameters(self, n_statistics):
        return SaturatingParameters(self.alpha, self.alpha * (n_statistics - 1))


@specialize(log_predictive_of, SaturatingParameters)
def _of_words(parameters, table, rows, i, k, entries):
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    locate(table, k, rows.indices, first, last + 1, entries)
    total = table.values[entries[last - first]]
    log_p = -log_rising(parameters.total + total, rows.values[last])
    for j in range(last - first):
        log_p += log_rising(parameters.alpha + table.values[entries[j]], rows.values[first + j])
    return log_p


@specialize(log_predictive_of_new, SaturatingParameters)
def _of_words_in_new(parameters, rows, i):
    last = rows.indptr[i + 1] - 1
    log_p = -log_rising(parameters.total, rows.values[last])
    for j in range(rows.indptr[i], last):
        log_p += log_rising(parameters.alpha, rows.values[j])
    return log_p


@specialize(contribution_of, SaturatingParameters)
def _taken(parameters, table, rows, i, k, entries, line):
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    locate(table, k, rows.indices, first, last + 1, entries)
    total = 0.0
    for j in range(last - first):
        line[j] = min(rows.values[first + j], 1.0 + table.values[entries[j]])
        total += line[j]
    line[last - first] = total


class ScaledParameters(NamedTuple):
    precisions: Any
    log_shares: Any
    rho: float


class CompiledScaled(Scaled):
    def kernel_parameters(self, n_statistics):
        return ScaledParameters(self.grid, np.log(self.shares), self.rho)


@numba.njit(cache=True)
def log_pair(parameters, g, D, xx, sx, ss, precision):
    """Return log p(x, g | cluster), given |x|^2, S . x, |S|^2 and the cluster's precision."""
    p = parameters.precisions[g]
    after = precision + p
    log_z = (ss + p * (2.0 * sx + p * xx)) / after - ss / precision
    log_z -= D * math.log(after / precision)
    log_h = D * math.log(p / (2.0 * math.pi)) - p * xx
    return parameters.log_shares[g] + 0.5 * (log_h + log_z)


@numba.njit(cache=True)
def products(parameters, table, rows, i, k, entries):
    """Return columns of x, |x|^2, S . x, |S|^2 and the cluster's precision."""
    first, last = rows.indptr[i], rows.indptr[i + 1]
    locate(table, k, rows.indices, first, last, entries)
    G = parameters.precisions.size
    D, xx, sx, ss, precision = last - first - G, 0.0, 0.0, 0.0, parameters.rho
    for j in range(D):
        x, s = rows.values[first + j], table.values[entries[j]]
        xx, sx, ss = xx + x * x, sx + s * x, ss + s * s
    for g in range(G):
        precision += parameters.precisions[g] * table.values[entries[D + g]]
    return D, xx, sx, ss, precision


@numba.njit(cache=True)
def summed(parameters, D, xx, sx, ss, precision):
    """Return log p(x | cluster)."""
    best = -np.inf
    for g in range(parameters.precisions.size):
        best = max(best, log_pair(parameters, g, D, xx, sx, ss, precision))
    total = 0.0
    for g in range(parameters.precisions.size):
        total += math.exp(log_pair(parameters, g, D, xx, sx, ss, precision) - best)
    return best + math.log(total)


@specialize(log_predictive_of, ScaledParameters)
def _of_scales(parameters, table, rows, i, k, entries):
    D, xx, sx, ss, precision = products(parameters, table, rows, i, k, entries)
    return summed(parameters, D, xx, sx, ss, precision)


@specialize(log_predictive_of_new, ScaledParameters)
def _of_scales_in_new(parameters, rows, i):
    first = rows.indptr[i]
    D, xx = rows.indptr[i + 1] - first - parameters.precisions.size, 0.0
    for j in range(first, first + D):
        xx += rows.values[j] * rows.values[j]
    return summed(parameters, D, xx, 0.0, 0.0, parameters.rho)


@specialize(contribution_of, ScaledParameters)
def _scaled(parameters, table, rows, i, k, entries, line):
    D, xx, sx, ss, precision = products(parameters, table, rows, i, k, entries)
    log_p, mean = summed(parameters, D, xx, sx, ss, precision), 0.0
    for g in range(parameters.precisions.size):
        r = math.exp(log_pair(parameters, g, D, xx, sx, ss, precision) - log_p)
        line[D + g] = r
        mean += r * parameters.precisions[g]
    for j in range(D):
        line[j] = mean * rows.values[rows.indptr[i] + j]


def saturating_rows(n, seed=0, n_words=24):
    """Return documents of four topics in which words come in bursts."""
    rng = np.random.default_rng((61, seed))
    theta = rng.dirichlet(np.full(n_words, 0.2), size=4)
    counts = rng.multinomial(6, theta[rng.integers(4, size=n)])
    return counts * rng.integers(1, 4, size=counts.shape)


def scaled_rows(n, seed=0):
    """Return rows of three clusters, some of them far out."""
    rng = np.random.default_rng((62, seed))
    means = rng.normal(scale=5.0, size=(3, 2))
    precision = rng.choice([0.2, 1.0, 8.0], size=(n, 1), p=[0.2, 0.5, 0.3])
    return means[rng.integers(3, size=n)] + rng.normal(size=(n, 2)) / np.sqrt(precision)


def directions(n, seed=0, D=5):
    """Return unit rows of three clusters, some of them far out."""
    rng = np.random.default_rng((63, seed))
    means = rng.normal(size=(3, D))
    width = rng.choice([0.1, 0.3, 0.8], size=(n, 1))
    X = means[rng.integers(3, size=n)] + width * rng.normal(size=(n, D))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


DIRECTIONAL = Directional(
    mean=[1.0, 0.5, 0.0, 0.0, -0.2], concentration=2.0, shares=np.arange(1.0, 9.0) / 36.0
)
SCALED_GAUSSIAN = ScaledGaussian(mean=[0.5, -1.0], variance=20.0, strength=1.3)

FAMILIES = {
    "words": (Saturating(), saturating_rows),
    "scales": (Scaled(), scaled_rows),
    "compiled words": (CompiledSaturating(), saturating_rows),
    "compiled scales": (CompiledScaled(), scaled_rows),
    "bursty": (BurstyMultinomial(0.3, 3.0), saturating_rows),
    "directions": (DIRECTIONAL, directions),
    "widths": (SCALED_GAUSSIAN, scaled_rows),
}
