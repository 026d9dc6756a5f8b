"""Real columns with one common variance."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.cells.blocks import kind_of
from bnpstream.kernels.cells.families import spherical
from bnpstream.likelihoods.base_measures import FirstRows
from bnpstream.likelihoods.batch import Row
from bnpstream.likelihoods.cells import Block
from bnpstream.likelihoods.diagonal import DiagonalGaussian, Posterior
from bnpstream.likelihoods.normal import LOG_PI, log_gamma_ratio
from bnpstream.likelihoods.registry import register


@register("spherical")
@dataclass(frozen=True, eq=False)
class SphericalGaussian(DiagonalGaussian):
    """Gaussian rows with one variance for all columns; missing cells are integrated out.

    As `DiagonalGaussian`, but lambda ~ Gamma(a, b) is common to all columns.

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: prior mean of the cluster centres. Default the centre of the first rows.
    mean_strength : float, optional
        kappa: prior sample size of a cluster's mean, in rows. Default the share of variance within
        clusters among the first rows, so that the means are expected to spread as the rows do; .01
        if mean and scale are given.
    degrees : float, optional
        nu > 2: degrees of freedom; the prior sample size is nu - 2 cells. Default 4.
    variance : float, optional
        v: expected variance within a cluster. Default estimated from the first rows.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.variance if self.variance is not None else 0.0) > 0:
            raise ValueError(
                f"variance must be one number, got {self.variance!r}; DiagonalGaussian takes one "
                "per column"
            )

    def _scale_from(self, rows: FirstRows) -> float:
        return rows.common_variance

    def _posterior(self, statistics: Floats) -> Posterior:
        m, kappa, a, b = self._base
        n, apart, scatter = self._moments(statistics)
        strength = kappa + n
        squares = (scatter + kappa * n / strength * apart**2).sum(axis=1, keepdims=True)
        shape = a + 0.5 * n.sum(axis=1, keepdims=True)
        return Posterior(n, m + n / strength * apart, strength, shape, b[0] + 0.5 * squares)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return log Gamma(a') - a' log b' - sum_j log(kappa'_j)/2 + n_j/2 log(2 pi)."""
        post = self._posterior(statistics)
        joint = (gammaln(post.shape) - post.shape * np.log(post.rate))[:, 0]
        cells = 0.5 * np.log(post.strength) + 0.5 * post.n * np.log(2.0 * np.pi)
        total: Floats = joint - cells.sum(axis=1)
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the log density of Student's t over the present cells."""
        D, post = self.n_columns, self._posterior(statistics)
        there, x = row.values[:D] > 0.0, row.values[D : 2 * D]
        weight = post.strength / (2.0 * post.rate * (post.strength + 1.0))
        half = 0.5 * there.sum()
        shape = post.shape[:, 0]
        distance = ((x - post.mean) ** 2 * weight)[:, there].sum(axis=1)
        constant = 0.5 * (np.log(weight) - LOG_PI)[:, there].sum(axis=1)
        density: Floats = log_gamma_ratio(shape, half) + constant
        density -= (shape + half) * np.log1p(distance)
        return density

    def blocks(self) -> list[Block]:
        """Return the block of the compiled score."""
        m, kappa, a, b = self._base
        parameters = np.concatenate([m, [kappa, a, b[0]]])
        return [Block(kind_of(spherical), m.size, m.size, self.n_pairs, 3 * m.size + 1, parameters)]
