"""Shared by families of columns with expected means: counts, booleans, Gaussians."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods.cells import (
    ColumnLikelihood,
    as_cells,
    as_vector,
    refuse_cells,
    require_positive,
)


@dataclass(frozen=True, eq=False)
class Centred(ColumnLikelihood):
    """Columns with expected means, and a scale of the base measure.

    A subclass has a field for the scale, called `scale_name`; it is learnt if None.
    """

    mean: ArrayLike | None = None
    scale_name: ClassVar[str]

    @property
    def scale_is_open(self) -> bool:
        """Return whether the scale of the base measure is to be learnt."""
        return getattr(self, self.scale_name) is None

    @cached_property
    def n_columns(self) -> int:
        """Return D."""
        self.require_informed()
        return as_vector("mean", self.mean).size

    def _replaced(self, scale: Any, **others: Any) -> Self:
        """Return this family with another scale, and other fields as given."""
        return replace(self, **{self.scale_name: scale}, **others)


@dataclass(frozen=True, eq=False)
class Summed(Centred):
    """Columns whose statistics are numbers n_j of cells and sums of their values.

    The scale is the weight of the expectation: 1 until it is learnt.
    """

    smoothing: ClassVar[tuple[float, float]]
    """Added to the sums of the first rows, and to their number."""
    cells_are: ClassVar[str]
    """What cells must be."""

    def __post_init__(self) -> None:
        require_positive(self.scale_name, self._scale)
        if self.mean is not None:
            self._check_mean(as_vector("mean", self.mean))

    @abstractmethod
    def _check_mean(self, mean: Floats) -> None:
        """Raise ValueError if these expected means are invalid."""

    @abstractmethod
    def _takes(self, cells: Floats) -> NDArray[np.bool_]:
        """Return which cells are valid for this family."""

    @property
    def _scale(self) -> float:
        scale: float | None = getattr(self, self.scale_name)
        return 1.0 if scale is None else scale

    def rescaled(self, factor: float) -> Self:
        """Return these columns with the scale of the base measure times a factor."""
        return self._replaced(factor * self._scale)

    @property
    def is_informed(self) -> bool:
        """Return whether the expected means are known."""
        return self.mean is not None

    def informed(self, X: Any) -> Self:
        """Return this family with expected means from some rows, smoothed a little."""
        if self.is_informed:
            return self
        there = ~np.isnan(cells := as_cells(X))
        self.check_cells(cells)
        sums, count = np.where(there, cells, 0.0).sum(axis=0), there.sum(axis=0)
        more, rows = self.smoothing
        return replace(self, mean=(sums + more) / (count + rows))

    def check_cells(self, cells: Floats) -> None:
        """Raise ValueError if a cell is not valid for this family."""
        said = f"{type(self).__name__} columns must be {self.cells_are}"
        refuse_cells(cells, ~(np.isnan(cells) | self._takes(cells)), said)

    @property
    def n_pairs(self) -> int:
        """Return 2D: counts and sums."""
        return 2 * self.n_columns

    def pairs_of(self, cells: Floats) -> tuple[Floats, Floats]:
        """Return ones and values of the present cells."""
        there = ~np.isnan(cells)
        high = np.hstack([there, np.where(there, cells, 0.0)])
        return high, np.zeros_like(high)

    def _totals(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return n_j and S_j of each cluster, each (K, D)."""
        D = self.n_columns
        return statistics[:, :D], statistics[:, D : 2 * D]
