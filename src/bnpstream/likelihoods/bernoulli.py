"""Bernoulli columns, for booleans."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.cells.blocks import kind_of
from bnpstream.kernels.cells.families import bernoulli
from bnpstream.likelihoods.batch import Row
from bnpstream.likelihoods.cells import Block, as_vector, no_options
from bnpstream.likelihoods.centred import Summed
from bnpstream.likelihoods.registry import register


@register("bernoulli")
@dataclass(frozen=True, eq=False)
class Bernoulli(Summed):
    """Independent boolean columns (beta-Bernoulli); missing cells are integrated out.

    x_j ~ Bernoulli(p_j), p_j ~ Beta(c m_j, c (1 - m_j)).

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: expected shares of True. Default those of the first rows.
    strength : float, optional
        c: prior sample size, in rows. Default 1; `StreamingMixture` learns it from the stream.
    """

    strength: float | None = None
    scale_name: ClassVar[str] = "strength"
    smoothing: ClassVar[tuple[float, float]] = (1.0, 2.0)
    cells_are: ClassVar[str] = "0 or 1, False or True"

    def _check_mean(self, mean: Floats) -> None:
        if not ((mean > 0) & (mean < 1)).all():
            raise ValueError(f"mean must be in (0, 1), got {mean}")

    def _takes(self, cells: Floats) -> NDArray[np.bool_]:
        taken: NDArray[np.bool_] = (cells == 0.0) | (cells == 1.0)
        return taken

    def _posterior(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return the beta distribution's two parameters, each (K, D)."""
        n, ones = self._totals(statistics)
        yes = self._scale * as_vector("mean", self.mean)
        return yes + ones, self._scale - yes + np.maximum(n - ones, 0.0)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return the summed log beta functions."""
        total: Floats = betaln(*self._posterior(statistics)).sum(axis=1)
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the summed log probabilities of the present cells."""
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
        """Draw one row from the posterior predictive of each cluster."""
        no_options(self, options)
        means = self.posterior_mean(statistics)
        return (rng.random(means.shape) < means).astype(np.float64)

    def blocks(self) -> list[Block]:
        """Return the block of the compiled score."""
        D, yes = self.n_columns, self._scale * as_vector("mean", self.mean)
        parameters = np.concatenate([yes, self._scale - yes])
        return [Block(kind_of(bernoulli), D, D, self.n_pairs, 2 * D, parameters)]
