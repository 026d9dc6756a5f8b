"""Counts: Poisson columns."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from bnpstream.kernels.cells.blocks import kind_of
from bnpstream.kernels.cells.families import poisson
from bnpstream.likelihoods.base import InputTraits
from bnpstream.likelihoods.batch import Floats, Row
from bnpstream.likelihoods.cells import (
    Block,
    as_cells,
    as_vector,
    no_options,
    require_positive,
)
from bnpstream.likelihoods.counts import LARGEST_COUNT
from bnpstream.likelihoods.errors import RowError
from bnpstream.likelihoods.registry import register
from bnpstream.likelihoods.summed import Summed
from bnpstream.likelihoods.words import log_rising


@register("poisson")
@dataclass(frozen=True, eq=False)
class Poisson(Summed):
    """Counts, independent given the cluster: gamma-Poisson. Missing cells are integrated out.

    x_j ~ Poisson(lambda_j), lambda_j ~ Gamma(a, a/mean_j). A cell in a cluster is negative
    binomial: with a' = a + S_j and b' = a/mean_j + n_j,

        log p(x | S) = log Gamma(a' + x) - log Gamma(a') + a' log(b'/(b' + 1)) - x log(b' + 1)
                     - log x!.

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        Rates that are expected. Default the means of the first rows.
    shape : float, optional
        a: the smaller, the more rates may differ between clusters. 1 is an exponential
        distribution of rates. Default 1; `StreamingMixture` learns it from the stream.
    """

    mean: ArrayLike | None = None
    shape: float | None = None

    def __post_init__(self) -> None:
        require_positive("shape", self._shape)
        if self.mean is not None:
            require_positive("mean", as_vector("mean", self.mean))

    @property
    def input(self) -> InputTraits:
        """Return what rows this family takes: counts, some of them missing."""
        return InputTraits(positive_only=True, allow_nan=True)

    @property
    def _shape(self) -> float:
        return 1.0 if self.shape is None else self.shape

    @property
    def scale_is_open(self) -> bool:
        """Return whether the shape is to be learnt."""
        return self.shape is None

    def rescaled(self, factor: float) -> "Poisson":
        """Return Poisson columns with the shape times a factor."""
        return replace(self, shape=factor * self._shape)

    @property
    def is_informed(self) -> bool:
        """Return whether the rates to expect are known."""
        return self.mean is not None

    def informed(self, X: Any) -> "Poisson":
        """Return this family with rates to expect from some rows: half a count is added."""
        if self.is_informed:
            return self
        there = ~np.isnan(cells := as_cells(X))
        self.check_cells(cells)
        sums, count = np.where(there, cells, 0.0).sum(axis=0), there.sum(axis=0)
        return replace(self, mean=(sums + 0.5) / (count + 1.0))

    @property
    def n_columns(self) -> int:
        """Return D."""
        self.require_informed()
        return as_vector("mean", self.mean).size

    def check_cells(self, cells: Floats) -> None:
        """Raise ValueError unless cells are whole numbers >= 0."""
        bad = ~(np.isnan(cells) | ((cells >= 0) & (cells <= LARGEST_COUNT) & (cells % 1 == 0)))
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise RowError(
                int(row),
                f"column {column} is {cells[row, column]}: Poisson columns are whole numbers >= 0",
            )

    def log_base_of(self, cells: Floats) -> Floats:
        """Return -sum_j log x_j!."""
        total: Floats = -np.nansum(gammaln(cells + 1.0), axis=1)
        return total

    def _posterior(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return a' and b', each (K, D)."""
        n, sums = self._totals(statistics)
        return self._shape + sums, self._shape / as_vector("mean", self.mean) + n

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return sum_j log Gamma(a') - a' log b'."""
        shape, rate = self._posterior(statistics)
        total: Floats = (gammaln(shape) - shape * np.log(rate)).sum(axis=1)
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the summed log probabilities of the cells that are there."""
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
        """Draw one row from the posterior predictive of every cluster."""
        no_options(self, options)
        shape, rate = self._posterior(statistics)
        return rng.poisson(rng.standard_gamma(shape) / rate).astype(np.float64)

    def blocks(self) -> list[Block]:
        """Return the one block."""
        D = self.n_columns
        rate = self._shape / as_vector("mean", self.mean)
        parameters = np.concatenate([np.full(D, float(self._shape)), rate])
        return [Block(kind_of(poisson), D, D, self.n_pairs, 3 * D, parameters)]
