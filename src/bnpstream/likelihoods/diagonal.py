"""Real columns, independent given the cluster, with a variance each."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.cells.blocks import kind_of
from bnpstream.kernels.cells.families import diagonal
from bnpstream.kernels.statistics.pairs import deviation, quotient, two_product
from bnpstream.likelihoods.base_measures import FirstRows, first_rows
from bnpstream.likelihoods.batch import Row
from bnpstream.likelihoods.cells import Block, as_vector, no_options, require_positive
from bnpstream.likelihoods.normal import LOG_PI, Normal, counted, log_gamma_ratio
from bnpstream.likelihoods.registry import register


class Posterior(NamedTuple):
    """Normal-gamma posterior of columns, each (K, D) or broadcast to it."""

    n: Floats
    mean: Floats
    strength: Floats
    """kappa' = kappa + n."""
    shape: Floats
    """a' = a + n/2."""
    rate: Floats
    """b'."""


@register("diagonal")
@dataclass(frozen=True, eq=False)
class DiagonalGaussian(Normal):
    """Independent Gaussian columns (normal-gamma prior); missing cells are integrated out.

    x_j ~ N(mu_j, 1/lambda_j), mu_j ~ N(m_j, 1/(kappa lambda_j)), lambda_j ~ Gamma(a, b_j) with
    a = nu/2 and b_j = (a - 1) v_j. A cell in a cluster is Student's t with 2a' degrees.

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: prior mean of the cluster centres. Default the centre of the first rows.
    mean_strength : float, optional
        kappa: prior sample size of a cluster's mean, in rows. Default the share of variance within
        clusters among the first rows, so that the means are expected to spread as the rows do; .01
        if mean and scale are given.
    degrees : float, optional
        nu > 2: degrees of freedom; the prior sample size of a variance is nu - 2. Default 4.
    variance : array-like of shape (D,), optional
        v: expected variances within a cluster; one number applies to all columns. Default estimated
        from the first rows.
    """

    variance: ArrayLike | None = None
    scale_name: ClassVar[str] = "variance"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degrees is not None and not self.degrees > 2.0:
            raise ValueError(f"degrees must be > 2, got {self.degrees}")
        if self.variance is not None:
            require_positive("variance", self.variance)
            size = np.size(self.variance) if self.mean is None else np.size(self.mean)
            as_vector("variance", self.variance, size)

    def _scale_from(self, rows: FirstRows) -> ArrayLike:
        return rows.within

    @property
    def n_pairs(self) -> int:
        """Return 3D: counts, sums, sums of squares."""
        return 3 * self.n_columns

    @property
    def _base(self) -> tuple[Floats, float, float, Floats]:
        """Return m, kappa, a and b."""
        mean = as_vector("mean", self.mean)
        shape = 0.5 * float(4.0 if self.degrees is None else self.degrees)
        variance = as_vector("variance", self.variance, mean.size)
        return mean, self._strength, shape, (shape - 1.0) * variance

    def pairs_of(self, cells: Floats) -> tuple[Floats, Floats]:
        """Return ones, cells and squares of the present cells."""
        there = ~np.isnan(cells)
        values = np.where(there, cells, 0.0)
        squares, rest = two_product(values, values)
        nothing = np.zeros_like(values)
        return np.hstack([there, values, squares]), np.hstack([nothing, nothing, rest])

    def _moments(self, statistics: Floats) -> tuple[Floats, Floats, Floats]:
        """Return n, means less m and summed squares about the mean, all (K, D)."""
        D, P = self.n_columns, self.n_pairs
        high, low = statistics[:, :P], statistics[:, P:]
        n, sums, squares = (
            (high[:, part], low[:, part])
            for part in (slice(0, D), slice(D, 2 * D), slice(2 * D, 3 * D))
        )
        count = counted(n[0])
        scatter = np.maximum(deviation(squares, quotient(sums, (count, n[1])), sums), 0.0)
        apart = np.where(n[0] > 0.0, sums[0] / count - self._base[0], 0.0)
        return n[0], apart, scatter

    def _posterior(self, statistics: Floats) -> Posterior:
        m, kappa, a, b = self._base
        n, apart, scatter = self._moments(statistics)
        strength = kappa + n
        rate = b + 0.5 * (scatter + kappa * n / strength * apart**2)
        return Posterior(n, m + n / strength * apart, strength, a + 0.5 * n, rate)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return sum_j log Gamma(a') - a' log b' - log(kappa')/2 - n/2 log(2 pi)."""
        post = self._posterior(statistics)
        cells = gammaln(post.shape) - post.shape * np.log(post.rate)
        cells -= 0.5 * np.log(post.strength) + 0.5 * post.n * np.log(2.0 * np.pi)
        total: Floats = cells.sum(axis=1)
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the summed log densities of Student's t over the present cells."""
        D, post = self.n_columns, self._posterior(statistics)
        there, x = row.values[:D] > 0.0, row.values[D : 2 * D]
        weight = post.strength / (2.0 * post.rate * (post.strength + 1.0))
        density = log_gamma_ratio(post.shape, 0.5) + 0.5 * (np.log(weight) - LOG_PI)
        density -= (post.shape + 0.5) * np.log1p((x - post.mean) ** 2 * weight)
        total: Floats = density[:, there].sum(axis=1)
        return total

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return m', shape (K, D)."""
        return self._posterior(statistics).mean

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Floats:
        """Draw one row from the posterior predictive of each cluster."""
        no_options(self, options)
        post = self._posterior(statistics)
        scale = np.sqrt(post.rate * (post.strength + 1.0) / (post.shape * post.strength))
        return post.mean + scale * rng.standard_t(
            np.broadcast_to(2.0 * post.shape, post.mean.shape)
        )

    def with_column(self, cells: Floats) -> "DiagonalGaussian":
        """Return this family with one more column, whose base measure is taken from some cells."""
        mean = self._base[0]
        new = first_rows(cells.reshape(-1, 1))
        variance = as_vector("variance", self.variance, mean.size)
        return replace(
            self, mean=np.append(mean, new.mean), variance=np.append(variance, new.within)
        )

    def with_empty_column(self, statistics: Floats) -> Floats:
        """Return statistics of this family, (K, 6D), with one more column, always missing."""
        parts = statistics.reshape(len(statistics), 6, self.n_columns)
        return np.pad(parts, ((0, 0), (0, 0), (0, 1))).reshape(len(statistics), -1)

    def blocks(self) -> list[Block]:
        """Return the block of the compiled score."""
        m, kappa, a, b = self._base
        parameters = np.concatenate([m, [kappa, a], b])
        return [Block(kind_of(diagonal), m.size, m.size, self.n_pairs, 4 * m.size + 1, parameters)]
