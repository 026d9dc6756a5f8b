"""Real columns with any covariance."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import multigammaln

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.cells.blocks import kind_of
from bnpstream.kernels.cells.families import full
from bnpstream.kernels.statistics.pairs import deviation, quotient, two_product
from bnpstream.likelihoods.base import Slowness
from bnpstream.likelihoods.base_measures import FirstRows
from bnpstream.likelihoods.batch import Row
from bnpstream.likelihoods.cells import Block, as_vector, no_options
from bnpstream.likelihoods.normal import LOG_PI, Normal, counted, log_gamma_ratio
from bnpstream.likelihoods.registry import register

SECONDS_PER_CUBE, SECONDS_PER_SQUARE = 1.5e-10, 4e-9
"""Time per row, by the cube and the square of the number of columns: measured with 64, 128 and
384 columns and 10 clusters on one virtual machine. Other machines may take half or twice as
long."""


@register("gaussian")
@dataclass(frozen=True, eq=False)
class Gaussian(Normal):
    """Gaussian rows with full covariance (normal-inverse-Wishart prior).

    x ~ N(mu, Sigma), mu ~ N(m, Sigma / kappa), Sigma ~ IW(nu, (nu - D - 1) C). A row in a
    cluster is Student's t. With kappa' = kappa + n, f = nu + n - D + 1 degrees of freedom,
    m' = (kappa m + sum x)/kappa' and Q = Psi' (kappa' + 1)/kappa', Psi' the posterior's Psi,

        log p(x | S) = log Gamma((f + D)/2) - log Gamma(f/2) - D/2 log pi - log|Q|/2
                     - (f + D)/2 log(1 + (x - m')^T Q^-1 (x - m')).

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: prior mean of the cluster centres. Default the centre of the first rows.
    mean_strength : float, optional
        kappa: prior sample size of a cluster's mean, in rows. Default the share of variance within
        clusters among the first rows, so that the means are expected to spread as the rows do; .01
        if mean and scale are given.
    degrees : float, optional
        nu > D + 1: degrees of freedom; the prior sample size of the covariance is nu - D - 1 rows.
        Default 2D + 2: D + 1 rows, as many as determine a covariance.
    covariance : array-like of shape (D, D), optional
        C: expected covariance within a cluster. Default estimated from the first rows.

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
    scale_name: ClassVar[str] = "covariance"
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

    def _scale_from(self, rows: FirstRows) -> Floats:
        return np.diag(rows.within)

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

    def slowness(self) -> Slowness:
        """Return how long a row takes: the covariance of each cluster it is added to is factored.

        Mostly this is one cluster.
        """
        D = self.n_columns
        return Slowness(
            SECONDS_PER_CUBE * D**3 + SECONDS_PER_SQUARE * D**2,
            f"a Gaussian with full covariance takes time in proportion to the cube of {D} columns",
            'likelihood "spherical" or "diagonal" takes time in proportion to their number',
        )

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
        count, counted_low = counted(n), low[:, :1]
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
        """Return the log density of Student's t for each cluster."""
        _, mean, strength, degrees, Psi = self._posterior(statistics)
        D = mean.shape[1]
        freedom = degrees - D + 1.0
        L = np.linalg.cholesky(Psi * ((strength + 1.0) / strength)[:, None, None])
        apart = row.values[1 : D + 1] - mean
        whitened = np.linalg.solve(L, apart[:, :, None])[:, :, 0]
        log_determinant = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        density: Floats = log_gamma_ratio(0.5 * freedom, 0.5 * D) - 0.5 * D * LOG_PI
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
        """Draw one row from the posterior predictive of each cluster."""
        no_options(self, options)
        _, mean, strength, degrees, Psi = self._posterior(statistics)
        freedom = degrees - mean.shape[1] + 1.0
        scale = (strength + 1.0) / strength / rng.chisquare(freedom)
        drawn = np.linalg.cholesky(Psi) @ rng.standard_normal((*mean.shape, 1))
        rows: Floats = mean + np.sqrt(scale)[:, None] * drawn[:, :, 0]
        return rows

    def blocks(self) -> list[Block]:
        """Return the block of the compiled score."""
        m, kappa, nu, Psi = self._base
        D = m.size
        packed = Psi[np.tril_indices(D)]
        parameters = np.concatenate([[kappa, nu], m, packed])
        return [Block(kind_of(full), D, D, self.n_pairs, D + packed.size + 2, parameters)]
