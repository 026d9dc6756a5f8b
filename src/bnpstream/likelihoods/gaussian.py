"""Real columns: Gaussians with full, diagonal and spherical covariance."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, multigammaln

from bnpstream.kernels.columns import DIAGONAL, FULL, SPHERICAL
from bnpstream.kernels.pairs import deviation, quotient, two_product
from bnpstream.likelihoods.base import Floats, Row
from bnpstream.likelihoods.cells import (
    Block,
    ColumnLikelihood,
    as_cells,
    as_vector,
    no_options,
    require_positive,
)
from bnpstream.likelihoods.informing import FirstRows, first_rows

LOG_PI = float(np.log(np.pi))
STRENGTH_IF_GIVEN = 0.01
"""kappa of a base measure with mean and scale of its own: a weak one."""


def _counted(n: Floats) -> Floats:
    """Return n with ones for zeros, to divide sums by that are zero then."""
    return np.where(n > 0.0, n, 1.0)


class _Posterior(NamedTuple):
    """Normal-gamma posterior of columns, each (K, D) or broadcast to it."""

    n: Floats
    mean: Floats
    strength: Floats
    """kappa' = kappa + n."""
    shape: Floats
    """a' = a + n/2."""
    rate: Floats
    """b'."""


@dataclass(frozen=True, eq=False)
class _Normal(ColumnLikelihood):
    """What the Gaussians share: a base measure for the mean, left open until rows are seen."""

    mean: ArrayLike | None = None
    mean_strength: float | None = None
    degrees: float | None = None

    def __post_init__(self) -> None:
        if self.mean_strength is not None:
            require_positive("mean_strength", self.mean_strength)
        if self.mean is not None:
            as_vector("mean", self.mean)

    @property
    def n_columns(self) -> int:
        """Return D."""
        self.require_informed()
        return as_vector("mean", self.mean).size

    @property
    def _strength(self) -> float:
        """Return kappa."""
        return STRENGTH_IF_GIVEN if self.mean_strength is None else float(self.mean_strength)

    def _strength_from(self, rows: FirstRows, variance: Any) -> float:
        """Return kappa, from the first rows if it is open."""
        if self.mean_strength is not None:
            return self.mean_strength
        return rows.mean_strength(as_vector("variance", variance, rows.mean.size))


@dataclass(frozen=True, eq=False)
class Gaussian(_Normal):
    """Real columns with any covariance: normal-inverse-Wishart.

    x ~ N(mu, Sigma), mu ~ N(m, Sigma / kappa), Sigma ~ IW(nu, (nu - D - 1) C). A row in a
    cluster is Student's t. With kappa' = kappa + n, f = nu + n - D + 1 degrees of freedom,
    m' = (kappa m + sum x)/kappa' and Q = Psi' (kappa' + 1)/kappa', Psi' the posterior's Psi,

        log p(x | S) = log Gamma((f + D)/2) - log Gamma(f/2) - D/2 log pi - log|Q|/2
                     - (f + D)/2 log(1 + (x - m')^T Q^-1 (x - m')).

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: where clusters are expected. Default the centre of the first rows.
    mean_strength : float, optional
        kappa: how many rows the expectation of a cluster's mean is worth. Default by the first
        rows: their share of variance within clusters, so that means are expected to spread as the
        rows do; .01 if mean and scale are given.
    degrees : float, optional
        nu > D + 1: how many rows, and D + 1 more, the expectation of the covariance is worth.
        Default 2D + 2: the expectation is worth D + 1 rows, as many as determine a covariance.
    covariance : array-like of shape (D, D), optional
        C: the covariance that is expected within a cluster. Default from the first rows.

    Examples
    --------
    >>> from bnpstream import Gaussian
    >>> likelihood = Gaussian(mean=[0.0, 0.0], covariance=[[1.0, 0.0], [0.0, 1.0]])
    >>> batch = likelihood.encode([[0.0, 0.0], [3.0, 4.0]])
    >>> empty = np.zeros((1, batch.n_statistics))
    >>> [round(float(likelihood.log_predictive(empty, batch.row(i))[0]), 4) for i in range(2)]
    [-5.9422, -6.2197]
    """

    covariance: ArrayLike | None = None
    takes_missing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.covariance is None:
            return
        matrix = np.asarray(self.covariance, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"covariance must be a square matrix, got shape {matrix.shape}")
        if not np.allclose(matrix, matrix.T):
            raise ValueError("covariance must be symmetric")
        if self.mean is not None and np.size(self.mean) != len(matrix):
            raise ValueError(f"mean has {np.size(self.mean)} columns, covariance has {len(matrix)}")
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise ValueError("covariance must be positive definite") from None
        if self.degrees is not None and not self.degrees > len(matrix) + 1:
            raise ValueError(f"degrees must be > {len(matrix) + 1}, got {self.degrees}")

    @property
    def is_informed(self) -> bool:
        """Return whether mean and covariance are known."""
        return self.mean is not None and self.covariance is not None

    def informed(self, X: Any) -> "Gaussian":
        """Return this family with what is open taken from some rows."""
        if self.is_informed:
            return self
        rows = first_rows(as_cells(X))
        covariance = np.diag(rows.within) if self.covariance is None else self.covariance
        return replace(
            self,
            mean=rows.mean if self.mean is None else self.mean,
            mean_strength=self._strength_from(rows, np.diagonal(covariance)),
            covariance=covariance,
        )

    @property
    def n_pairs(self) -> int:
        """Return 1 + D + D(D+1)/2: count, sums, sums of products."""
        D = self.n_columns
        return 1 + D + D * (D + 1) // 2

    @property
    def _base(self) -> tuple[Floats, float, float, Floats]:
        """Return m, kappa, nu and Psi."""
        D = self.n_columns
        degrees = float(2 * D + 2 if self.degrees is None else self.degrees)
        covariance = np.asarray(self.covariance, dtype=np.float64)
        mean = as_vector("mean", self.mean)
        return mean, self._strength, degrees, (degrees - D - 1.0) * covariance

    def pairs_of(self, cells: Floats) -> tuple[Floats, Floats]:
        """Return ones, cells and products of cells, the lower triangle row by row."""
        i, j = np.tril_indices(cells.shape[1])
        products, rest = two_product(cells[:, i], cells[:, j])
        ones = np.ones((len(cells), 1))
        low = np.zeros((len(cells), 1 + cells.shape[1]))
        return np.hstack([ones, cells, products]), np.hstack([low, rest])

    def _posterior(self, statistics: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return n, m', kappa', nu' = nu + n and Psi' of every cluster."""
        m, kappa, nu, Psi = self._base
        D, P = m.size, self.n_pairs
        high, low = statistics[:, :P], statistics[:, P:]
        n = high[:, :1]
        count, counted_low = _counted(n), low[:, :1]
        sums = (high[:, 1 : D + 1], low[:, 1 : D + 1])
        i, j = np.tril_indices(D)
        products = (high[:, D + 1 :], low[:, D + 1 :])
        mean, rest = quotient(sums, (count, counted_low))
        other = (sums[0][:, j], sums[1][:, j])
        scatter = deviation(products, (mean[:, i], rest[:, i]), other)
        apart = np.where(n > 0.0, mean - m, 0.0)
        strength = kappa + n
        packed = scatter + kappa * n / strength * apart[:, i] * apart[:, j]
        full = np.empty((len(n), D, D))
        full[:, i, j] = full[:, j, i] = packed
        centre = m + n / strength * apart
        return n[:, 0], centre, strength[:, 0], nu + n[:, 0], Psi + full

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return log Gamma_D(nu'/2) - nu'/2 log|Psi'| - D/2 log kappa' - n D/2 log pi."""
        n, mean, strength, degrees, Psi = self._posterior(statistics)
        D = mean.shape[1]
        log_determinant = 2.0 * np.log(np.diagonal(np.linalg.cholesky(Psi), axis1=1, axis2=2)).sum(
            axis=1
        )
        log_gamma = np.array([multigammaln(0.5 * nu, D) for nu in degrees])
        total: Floats = (
            log_gamma
            - 0.5 * degrees * log_determinant
            - 0.5 * D * np.log(strength)
            - 0.5 * D * LOG_PI * n
        )
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the log density of Student's t, one a cluster."""
        _, mean, strength, degrees, Psi = self._posterior(statistics)
        D = mean.shape[1]
        freedom = degrees - D + 1.0
        L = np.linalg.cholesky(Psi * ((strength + 1.0) / strength)[:, None, None])
        apart = row.values[1 : D + 1] - mean
        whitened = np.linalg.solve(L, apart[:, :, None])[:, :, 0]
        log_determinant = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        density: Floats = _log_gamma_ratio(0.5 * freedom, 0.5 * D) - 0.5 * D * LOG_PI
        density -= log_determinant
        density -= 0.5 * (freedom + D) * np.log1p((whitened**2).sum(axis=1))
        return density

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return m', shape (K, D)."""
        return self._posterior(statistics)[1]

    def covariances(self, statistics: Floats) -> Floats:
        """Return the posterior mean of the covariance, shape (K, D, D)."""
        _, mean, _, degrees, Psi = self._posterior(statistics)
        covariances: Floats = Psi / (degrees - mean.shape[1] - 1.0)[:, None, None]
        return covariances

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Floats:
        """Draw one row from the posterior predictive of every cluster."""
        no_options(self, options)
        _, mean, strength, degrees, Psi = self._posterior(statistics)
        freedom = degrees - mean.shape[1] + 1.0
        scale = (strength + 1.0) / strength / rng.chisquare(freedom)
        drawn = np.linalg.cholesky(Psi) @ rng.standard_normal((*mean.shape, 1))
        rows: Floats = mean + np.sqrt(scale)[:, None] * drawn[:, :, 0]
        return rows

    def blocks(self) -> list[Block]:
        """Return the one block."""
        m, kappa, nu, Psi = self._base
        D = m.size
        packed = Psi[np.tril_indices(D)]
        parameters = np.concatenate([[kappa, nu], m, packed])
        return [Block(FULL, D, D, self.n_pairs, D + packed.size + 2, parameters)]


@dataclass(frozen=True, eq=False)
class DiagonalGaussian(_Normal):
    """Real columns, independent given the cluster: normal-gamma. Missing cells are integrated out.

    x_j ~ N(mu_j, 1/lambda_j), mu_j ~ N(m_j, 1/(kappa lambda_j)), lambda_j ~ Gamma(a, b_j) with
    a = nu/2 and b_j = (a - 1) v_j. A cell in a cluster is Student's t with 2a' degrees.

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: where clusters are expected. Default the centre of the first rows.
    mean_strength : float, optional
        kappa: how many rows the expectation of a cluster's mean is worth. Default by the first
        rows: their share of variance within clusters, so that means are expected to spread as the
        rows do; .01 if mean and scale are given.
    degrees : float, optional
        nu > 2: how many rows, and 2 more, the expectation of a variance is worth. Default 4.
    variance : array-like of shape (D,), optional
        v: the variances that are expected within a cluster; one number is for all columns. Default
        from the first rows.
    """

    variance: ArrayLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degrees is not None and not self.degrees > 2.0:
            raise ValueError(f"degrees must be > 2, got {self.degrees}")
        if self.variance is not None:
            require_positive("variance", self.variance)
            size = np.size(self.variance) if self.mean is None else np.size(self.mean)
            as_vector("variance", self.variance, size)

    @property
    def is_informed(self) -> bool:
        """Return whether mean and variance are known."""
        return self.mean is not None and self.variance is not None

    def _variance_from(self, rows: FirstRows) -> ArrayLike:
        """Return v as the first rows have it."""
        return rows.within

    def informed(self, X: Any) -> Self:
        """Return this family with what is open taken from some rows."""
        if self.is_informed:
            return self
        rows = first_rows(as_cells(X))
        variance = self._variance_from(rows) if self.variance is None else self.variance
        return replace(
            self,
            mean=rows.mean if self.mean is None else self.mean,
            mean_strength=self._strength_from(rows, variance),
            variance=variance,
        )

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
        """Return ones, cells and squares of the cells that are there."""
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
        count = _counted(n[0])
        scatter = np.maximum(deviation(squares, quotient(sums, (count, n[1])), sums), 0.0)
        apart = np.where(n[0] > 0.0, sums[0] / count - self._base[0], 0.0)
        return n[0], apart, scatter

    def _posterior(self, statistics: Floats) -> _Posterior:
        m, kappa, a, b = self._base
        n, apart, scatter = self._moments(statistics)
        strength = kappa + n
        rate = b + 0.5 * (scatter + kappa * n / strength * apart**2)
        return _Posterior(n, m + n / strength * apart, strength, a + 0.5 * n, rate)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return sum_j log Gamma(a') - a' log b' - log(kappa')/2 - n/2 log(2 pi)."""
        post = self._posterior(statistics)
        cells = gammaln(post.shape) - post.shape * np.log(post.rate)
        cells -= 0.5 * np.log(post.strength) + 0.5 * post.n * np.log(2.0 * np.pi)
        total: Floats = cells.sum(axis=1)
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the summed log densities of Student's t over the cells that are there."""
        D, post = self.n_columns, self._posterior(statistics)
        there, x = row.values[:D] > 0.0, row.values[D : 2 * D]
        weight = post.strength / (2.0 * post.rate * (post.strength + 1.0))
        density = _log_gamma_ratio(post.shape, 0.5) + 0.5 * (np.log(weight) - LOG_PI)
        density -= (post.shape + 0.5) * np.log1p((x - post.mean) ** 2 * weight)
        total: Floats = density[:, there].sum(axis=1)
        return total

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return m', shape (K, D)."""
        return self._posterior(statistics).mean

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Floats:
        """Draw one row from the posterior predictive of every cluster."""
        no_options(self, options)
        post = self._posterior(statistics)
        scale = np.sqrt(post.rate * (post.strength + 1.0) / (post.shape * post.strength))
        return post.mean + scale * rng.standard_t(
            np.broadcast_to(2.0 * post.shape, post.mean.shape)
        )

    def with_column(self, cells: Floats) -> "DiagonalGaussian":
        """Return this family with one more column, its base measure taken from some cells."""
        mean = self._base[0]
        new = first_rows(cells.reshape(-1, 1))
        variance = as_vector("variance", self.variance, mean.size)
        return replace(
            self, mean=np.append(mean, new.mean), variance=np.append(variance, new.within)
        )

    def with_empty_column(self, statistics: Floats) -> Floats:
        """Return statistics of this family, (K, 6D), as those of one more column, all missing."""
        parts = statistics.reshape(len(statistics), 6, self.n_columns)
        return np.pad(parts, ((0, 0), (0, 0), (0, 1))).reshape(len(statistics), -1)

    def blocks(self) -> list[Block]:
        """Return the one block."""
        m, kappa, a, b = self._base
        parameters = np.concatenate([m, [kappa, a], b])
        return [Block(DIAGONAL, m.size, m.size, self.n_pairs, 4 * m.size + 1, parameters)]


@dataclass(frozen=True, eq=False)
class SphericalGaussian(DiagonalGaussian):
    """Real columns with one variance: normal-gamma. Missing cells are integrated out.

    As `DiagonalGaussian`, but lambda ~ Gamma(a, b) is common to all columns.

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: where clusters are expected. Default the centre of the first rows.
    mean_strength : float, optional
        kappa: how many rows the expectation of a cluster's mean is worth. Default by the first
        rows: their share of variance within clusters, so that means are expected to spread as the
        rows do; .01 if mean and scale are given.
    degrees : float, optional
        nu > 2: how many cells, and 2 more, the expectation of the variance is worth. Default 4.
    variance : float, optional
        v: the variance that is expected within a cluster. Default from the first rows.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.variance if self.variance is not None else 0.0) > 0:
            raise ValueError(
                f"variance must be one number, got {self.variance!r}; DiagonalGaussian has one a "
                "column"
            )

    def _variance_from(self, rows: FirstRows) -> float:
        return rows.common_variance

    def _posterior(self, statistics: Floats) -> _Posterior:
        m, kappa, a, b = self._base
        n, apart, scatter = self._moments(statistics)
        strength = kappa + n
        squares = (scatter + kappa * n / strength * apart**2).sum(axis=1, keepdims=True)
        shape = a + 0.5 * n.sum(axis=1, keepdims=True)
        return _Posterior(n, m + n / strength * apart, strength, shape, b[0] + 0.5 * squares)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return log Gamma(a') - a' log b' - sum_j log(kappa'_j)/2 + n_j/2 log(2 pi)."""
        post = self._posterior(statistics)
        joint = (gammaln(post.shape) - post.shape * np.log(post.rate))[:, 0]
        cells = 0.5 * np.log(post.strength) + 0.5 * post.n * np.log(2.0 * np.pi)
        total: Floats = joint - cells.sum(axis=1)
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the log density of Student's t over the cells that are there."""
        D, post = self.n_columns, self._posterior(statistics)
        there, x = row.values[:D] > 0.0, row.values[D : 2 * D]
        weight = post.strength / (2.0 * post.rate * (post.strength + 1.0))
        half = 0.5 * there.sum()
        shape = post.shape[:, 0]
        distance = ((x - post.mean) ** 2 * weight)[:, there].sum(axis=1)
        constant = 0.5 * (np.log(weight) - LOG_PI)[:, there].sum(axis=1)
        density: Floats = _log_gamma_ratio(shape, half) + constant
        density -= (shape + half) * np.log1p(distance)
        return density

    def blocks(self) -> list[Block]:
        """Return the one block."""
        m, kappa, a, b = self._base
        parameters = np.concatenate([m, [kappa, a, b[0]]])
        return [Block(SPHERICAL, m.size, m.size, self.n_pairs, 3 * m.size + 1, parameters)]


def _log_gamma_ratio(x: Floats, d: float) -> Floats:
    """Return log Gamma(x + d) - log Gamma(x)."""
    ratio: Floats = gammaln(x + d) - gammaln(x)
    return ratio
