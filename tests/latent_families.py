"""Two families whose rows add to a cluster what depends on the cluster, and rows for them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp, softmax

from bnpstream.extending import Batch, Likelihood


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


FAMILIES = {"words": (Saturating(), saturating_rows), "scales": (Scaled(), scaled_rows)}
