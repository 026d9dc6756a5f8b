"""What counts and yes-or-no share: statistics are counts of cells and sums of their values."""

from dataclasses import dataclass

import numpy as np

from bnpstream.likelihoods.batch import Floats
from bnpstream.likelihoods.cells import ColumnLikelihood


@dataclass(frozen=True, eq=False)
class Summed(ColumnLikelihood):
    """Columns whose statistics are counts n_j of cells and sums of their values."""

    @property
    def n_pairs(self) -> int:
        """Return 2D: counts and sums."""
        return 2 * self.n_columns

    def pairs_of(self, cells: Floats) -> tuple[Floats, Floats]:
        """Return ones and values of the cells that are there."""
        there = ~np.isnan(cells)
        high = np.hstack([there, np.where(there, cells, 0.0)])
        return high, np.zeros_like(high)

    def _totals(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return n_j and S_j of every cluster, each (K, D)."""
        D = self.n_columns
        return statistics[:, :D], statistics[:, D : 2 * D]
