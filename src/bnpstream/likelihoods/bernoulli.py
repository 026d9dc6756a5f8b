"""Yes or no: Bernoulli columns."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln

from bnpstream.kernels.cells.blocks import kind_of
from bnpstream.kernels.cells.families import bernoulli
from bnpstream.likelihoods.batch import Floats, Row
from bnpstream.likelihoods.cells import (
    Block,
    as_cells,
    as_vector,
    no_options,
    require_positive,
)
from bnpstream.likelihoods.errors import RowError
from bnpstream.likelihoods.registry import register
from bnpstream.likelihoods.summed import Summed


@register("bernoulli")
@dataclass(frozen=True, eq=False)
class Bernoulli(Summed):
    """Yes or no, independent given the cluster: beta-Bernoulli. Missing cells are integrated out.

    x_j ~ Bernoulli(p_j), p_j ~ Beta(c m_j, c (1 - m_j)).

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: shares of ones that are expected. Default those of the first rows.
    strength : float, optional
        c: how many rows the expectation is worth. Default 1; `StreamingMixture` learns it from the
        stream.
    """

    mean: ArrayLike | None = None
    strength: float | None = None

    def __post_init__(self) -> None:
        require_positive("strength", self._strength)
        if self.mean is not None:
            mean = as_vector("mean", self.mean)
            if not ((mean > 0) & (mean < 1)).all():
                raise ValueError(f"mean must be in (0, 1), got {mean}")

    @property
    def _strength(self) -> float:
        return 1.0 if self.strength is None else self.strength

    @property
    def scale_is_open(self) -> bool:
        """Return whether the strength is to be learnt."""
        return self.strength is None

    def rescaled(self, factor: float) -> "Bernoulli":
        """Return Bernoulli columns with the strength times a factor."""
        return replace(self, strength=factor * self._strength)

    @property
    def is_informed(self) -> bool:
        """Return whether the shares to expect are known."""
        return self.mean is not None

    def informed(self, X: Any) -> "Bernoulli":
        """Return this family with shares to expect from some rows, one yes and one no added."""
        if self.is_informed:
            return self
        there = ~np.isnan(cells := as_cells(X))
        self.check_cells(cells)
        sums, count = np.where(there, cells, 0.0).sum(axis=0), there.sum(axis=0)
        return replace(self, mean=(sums + 1.0) / (count + 2.0))

    @property
    def n_columns(self) -> int:
        """Return D."""
        self.require_informed()
        return as_vector("mean", self.mean).size

    def check_cells(self, cells: Floats) -> None:
        """Raise ValueError unless cells are zero or one."""
        bad = ~(np.isnan(cells) | (cells == 0.0) | (cells == 1.0))
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise RowError(
                int(row),
                f"column {column} is {cells[row, column]}: "
                "Bernoulli columns are 0 or 1, False or True",
            )

    def _posterior(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return the beta distribution's two parameters, each (K, D)."""
        n, ones = self._totals(statistics)
        yes = self._strength * as_vector("mean", self.mean)
        return yes + ones, self._strength - yes + np.maximum(n - ones, 0.0)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return the summed log beta functions."""
        total: Floats = betaln(*self._posterior(statistics)).sum(axis=1)
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the summed log probabilities of the cells that are there."""
        D = self.n_columns
        yes, no = self._posterior(statistics)
        there, x = row.values[:D] > 0.0, row.values[D : 2 * D] > 0.0
        total: Floats = np.log(np.where(x, yes, no) / (yes + no))[:, there].sum(axis=1)
        return total

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return E[p], shape (K, D)."""
        yes, no = self._posterior(statistics)
        return yes / (yes + no)

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Floats:
        """Draw one row from the posterior predictive of every cluster."""
        no_options(self, options)
        means = self.posterior_mean(statistics)
        return (rng.random(means.shape) < means).astype(np.float64)

    def blocks(self) -> list[Block]:
        """Return the one block."""
        D, yes = self.n_columns, self._strength * as_vector("mean", self.mean)
        parameters = np.concatenate([yes, self._strength - yes])
        return [Block(kind_of(bernoulli), D, D, self.n_pairs, 2 * D, parameters)]
