"""Categorical columns, for labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.cells.blocks import kind_of
from bnpstream.kernels.cells.families import categorical
from bnpstream.likelihoods.base import InputTraits, Likelihood
from bnpstream.likelihoods.batch import Row
from bnpstream.likelihoods.cells import (
    Block,
    ColumnLikelihood,
    no_options,
    require_positive,
)
from bnpstream.likelihoods.features import OTHER
from bnpstream.likelihoods.frames import as_labels
from bnpstream.likelihoods.registry import register


@register("categorical")
@dataclass(frozen=True, eq=False)
class Categorical(ColumnLikelihood):
    """Independent columns of labels (Dirichlet-categorical); missing cells are integrated out.

    x_j ~ Categorical(p_j), p_j ~ Dirichlet(alpha). Each column has one extra level for labels that
    are not among `levels`, so a label that appears later is not an error.

    Parameters
    ----------
    levels : sequence of sequences, optional
        The labels of each column. Default those of the first rows, sorted.
    alpha : float
        Dirichlet parameter of each level (the base measure).

    Examples
    --------
    >>> from bnpstream import Categorical
    >>> likelihood = Categorical(levels=[["blue", "red"]])
    >>> likelihood.encode([["red"], [None], ["green"]]).cells
    array([[ 1.], [nan], [ 2.]])
    """

    levels: Sequence[Sequence[Any]] | None = None
    alpha: float = 0.5

    def __post_init__(self) -> None:
        require_positive("alpha", self.alpha)
        for j, known in enumerate(self.levels or ()):
            if len(set(known)) < len(known):
                raise ValueError(f"levels[{j}] names a label twice: {list(known)!r}")

    @property
    def input(self) -> InputTraits:
        """Return what rows this family takes: labels, some of which may be missing."""
        return InputTraits(allow_nan=True, categorical=True, string=True)

    @property
    def is_informed(self) -> bool:
        """Return whether the levels are known."""
        return self.levels is not None

    def informed(self, X: Any) -> "Categorical":
        """Return this family with the labels of some rows as levels."""
        if self.is_informed:
            return self
        columns = as_labels(X).T
        found = [sorted({x for x in column if x is not None}, key=_sort_key) for column in columns]
        return replace(self, levels=found)

    @property
    def n_columns(self) -> int:
        """Return D."""
        return self.sizes.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of levels of each column, including the one for other labels."""
        self.require_informed()
        return np.array([len(known) + 1 for known in self.levels or ()], np.int64)

    @property
    def n_pairs(self) -> int:
        """Return the number of levels of all columns."""
        return int(self.sizes.sum())

    def continues(self, other: Likelihood) -> bool:
        """Return whether statistics summed under another likelihood are of the same labels."""
        return isinstance(other, Categorical) and (
            [list(known) for known in self.levels or ()]
            == [list(known) for known in other.levels or ()]
        )

    def _checked(self, X: Any) -> NDArray[np.object_]:
        return as_labels(X)

    def _numbers(self, table: NDArray[np.object_]) -> Floats:
        """Return the number of each label's level; NaN if missing."""
        cells = np.empty(table.shape)
        for j, known in enumerate(self.levels or ()):
            numbers: dict[Any, float] = {label: float(i) for i, label in enumerate(known)}
            numbers[None] = np.nan
            cells[:, j] = [numbers.get(label, float(len(known))) for label in table[:, j]]
        return cells

    def pairs_of(self, cells: Floats) -> tuple[Floats, Floats]:
        """Return ones at the cells' levels."""
        starts = np.cumsum(self.sizes) - self.sizes
        rows, columns = np.nonzero(~np.isnan(cells))
        high = np.zeros((len(cells), self.n_pairs))
        high[rows, starts[columns] + cells[rows, columns].astype(np.int64)] = 1.0
        return high, np.zeros_like(high)

    def _columns(self, statistics: Floats) -> list[Floats]:
        """Return alpha + S of each column, (K, levels) each."""
        counts = statistics[:, : self.n_pairs] + self.alpha
        return np.split(counts, np.cumsum(self.sizes)[:-1], axis=1)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return sum_l log Gamma(alpha + S_l) - log Gamma(sum_l alpha + S_l) of all columns."""
        total = np.zeros(len(statistics))
        for counts in self._columns(statistics):
            total += gammaln(counts).sum(axis=1) - gammaln(counts.sum(axis=1))
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the summed log probabilities of the present cells."""
        levels = np.flatnonzero(row.values[: self.n_pairs])
        total: Floats = np.log(self.posterior_mean(statistics)[:, levels]).sum(axis=1)
        return total

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return the probability of each level of each column, side by side."""
        return np.hstack([c / c.sum(axis=1, keepdims=True) for c in self._columns(statistics)])

    def sample(
        self, statistics: Floats, rng: np.random.Generator, **options: Any
    ) -> NDArray[np.object_]:
        """Draw one row of labels from the posterior predictive of each cluster.

        Other labels become None.
        """
        no_options(self, options)
        rows = np.empty((len(statistics), self.n_columns), dtype=object)
        for j, counts in enumerate(self._columns(statistics)):
            ends = np.cumsum(counts, axis=1)
            drawn = (rng.random((len(ends), 1)) * ends[:, -1:] >= ends).sum(axis=1)
            rows[:, j] = [[*(self.levels or ())[j], None][level] for level in drawn]
        return rows

    def mean_names(self, names: Sequence[str]) -> list[str]:
        """Return a name for the share of each label: "column = label"."""
        self.require_informed()
        return [
            f"{name} = {level}"
            for name, levels in zip(names, self.levels or (), strict=True)
            for level in [*levels, OTHER]
        ]

    def blocks(self) -> list[Block]:
        """Return one block per column."""
        return [
            Block(kind_of(categorical), size, 1, size, size, np.full(size, float(self.alpha)))
            for size in self.sizes.tolist()
        ]


def _sort_key(label: Any) -> tuple[str, Any]:
    """Sort labels of one type by value, types by name."""
    return type(label).__name__, label
