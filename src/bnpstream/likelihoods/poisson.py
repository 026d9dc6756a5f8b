"""Poisson columns, for counts."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.cells.blocks import kind_of
from bnpstream.kernels.cells.families import poisson
from bnpstream.likelihoods.base import InputTraits
from bnpstream.likelihoods.batch import Row
from bnpstream.likelihoods.cells import Block, as_vector, no_options, require_positive
from bnpstream.likelihoods.centred import Summed
from bnpstream.likelihoods.counts import LARGEST_COUNT
from bnpstream.likelihoods.registry import register
from bnpstream.likelihoods.words import log_rising


@register("poisson")
@dataclass(frozen=True, eq=False)
class Poisson(Summed):
    """Independent columns of counts (gamma-Poisson); missing cells are integrated out.

    x_j ~ Poisson(lambda_j), lambda_j ~ Gamma(a, a/mean_j). A cell in a cluster is negative
    binomial: with a' = a + S_j and b' = a/mean_j + n_j,

        log p(x | S) = log Gamma(a' + x) - log Gamma(a') + a' log(b'/(b' + 1)) - x log(b' + 1)
                     - log x!.

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        Expected rates. Default the means of the first rows.
    shape : float, optional
        a: shape of the gamma prior; the smaller it is, the more rates differ between clusters. 1 is
        an exponential distribution. Default 1; `StreamingMixture` learns it from the stream.
    """

    shape: float | None = None
    scale_name: ClassVar[str] = "shape"
    smoothing: ClassVar[tuple[float, float]] = (0.5, 1.0)
    cells_are: ClassVar[str] = "whole numbers >= 0"

    @property
    def input(self) -> InputTraits:
        """Return what rows this family takes: counts, some of which may be missing."""
        return InputTraits(positive_only=True, allow_nan=True)

    def _check_mean(self, mean: Floats) -> None:
        require_positive("mean", mean)

    def _takes(self, cells: Floats) -> NDArray[np.bool_]:
        taken: NDArray[np.bool_] = (cells >= 0) & (cells <= LARGEST_COUNT) & (cells % 1 == 0)
        return taken

    def log_base_of(self, cells: Floats) -> Floats:
        """Return -sum_j log x_j!."""
        total: Floats = -np.nansum(gammaln(cells + 1.0), axis=1)
        return total

    def _posterior(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return a' and b', each (K, D)."""
        n, sums = self._totals(statistics)
        return self._scale + sums, self._scale / as_vector("mean", self.mean) + n

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return sum_j log Gamma(a') - a' log b'."""
        shape, rate = self._posterior(statistics)
        total: Floats = (gammaln(shape) - shape * np.log(rate)).sum(axis=1)
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the summed log probabilities of the present cells."""
        D = self.n_columns
        shape, rate = self._posterior(statistics)
        there, x = np.flatnonzero(row.values[:D]), row.values[D : 2 * D]
        total = np.zeros(len(shape))
        for j in there:
            total += log_rising(shape[:, j], x[j]) - shape[:, j] * np.log1p(1.0 / rate[:, j])
            total -= x[j] * np.log1p(rate[:, j])
        return total

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return E[lambda] = a'/b', shape (K, D)."""
        shape, rate = self._posterior(statistics)
        return shape / rate

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Floats:
        """Draw one row from the posterior predictive of each cluster."""
        no_options(self, options)
        shape, rate = self._posterior(statistics)
        return rng.poisson(rng.standard_gamma(shape) / rate).astype(np.float64)

    def blocks(self) -> list[Block]:
        """Return the block of the compiled score."""
        D = self.n_columns
        rate = self._scale / as_vector("mean", self.mean)
        parameters = np.concatenate([np.full(D, float(self._scale)), rate])
        return [Block(kind_of(poisson), D, D, self.n_pairs, 3 * D, parameters)]
