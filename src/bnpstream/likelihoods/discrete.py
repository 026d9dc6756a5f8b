"""Counts, yes-or-no and labels: Poisson, Bernoulli and categorical columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from bnpstream.kernels.columns import BERNOULLI, CATEGORICAL, POISSON
from bnpstream.likelihoods.base import Floats, Likelihood, Row
from bnpstream.likelihoods.cells import (
    Block,
    CellBatch,
    ColumnLikelihood,
    WrongWidthError,
    as_cells,
    as_vector,
    no_options,
    require_positive,
)
from bnpstream.likelihoods.counts import LARGEST_COUNT
from bnpstream.likelihoods.frames import as_labels
from bnpstream.likelihoods.words import log_rising


@dataclass(frozen=True, eq=False)
class _Summed(ColumnLikelihood):
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


@dataclass(frozen=True, eq=False)
class Poisson(_Summed):
    """Counts, independent given the cluster: gamma-Poisson. Missing cells are integrated out.

    x_j ~ Poisson(lambda_j), lambda_j ~ Gamma(a, a/mean_j). A cell in a cluster is negative
    binomial: with a' = a + S_j and b' = a/mean_j + n_j,

        log p(x | S) = log Gamma(a' + x) - log Gamma(a') + a' log(b'/(b' + 1)) - x log(b' + 1)
                     - log x!.

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        Rates that are expected. Default the means of the first rows.
    shape : float
        a: the smaller, the more rates may differ between clusters. 1 is an exponential
        distribution of rates.
    """

    mean: ArrayLike | None = None
    shape: float = 1.0

    def __post_init__(self) -> None:
        require_positive("shape", self.shape)
        if self.mean is not None:
            require_positive("mean", as_vector("mean", self.mean))

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
            raise ValueError(
                f"row {row}, column {column} is {cells[row, column]}: "
                "Poisson columns are whole numbers >= 0"
            )

    def log_base_of(self, cells: Floats) -> Floats:
        """Return -sum_j log x_j!."""
        total: Floats = -np.nansum(gammaln(cells + 1.0), axis=1)
        return total

    def _posterior(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return a' and b', each (K, D)."""
        n, sums = self._totals(statistics)
        return self.shape + sums, self.shape / as_vector("mean", self.mean) + n

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
        rate = self.shape / as_vector("mean", self.mean)
        parameters = np.concatenate([np.full(D, float(self.shape)), rate])
        return [Block(POISSON, D, D, self.n_pairs, 3 * D, parameters)]


@dataclass(frozen=True, eq=False)
class Bernoulli(_Summed):
    """Yes or no, independent given the cluster: beta-Bernoulli. Missing cells are integrated out.

    x_j ~ Bernoulli(p_j), p_j ~ Beta(c m_j, c (1 - m_j)).

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: shares of ones that are expected. Default those of the first rows.
    strength : float
        c: how many rows the expectation is worth.
    """

    mean: ArrayLike | None = None
    strength: float = 1.0

    def __post_init__(self) -> None:
        require_positive("strength", self.strength)
        if self.mean is not None:
            mean = as_vector("mean", self.mean)
            if not ((mean > 0) & (mean < 1)).all():
                raise ValueError(f"mean must be in (0, 1), got {mean}")

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
            raise ValueError(
                f"row {row}, column {column} is {cells[row, column]}: "
                "Bernoulli columns are 0 or 1, False or True"
            )

    def _posterior(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return the beta distribution's two parameters, each (K, D)."""
        n, ones = self._totals(statistics)
        yes = self.strength * as_vector("mean", self.mean)
        return yes + ones, self.strength - yes + np.maximum(n - ones, 0.0)

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
        D, yes = self.n_columns, self.strength * as_vector("mean", self.mean)
        parameters = np.concatenate([yes, self.strength - yes])
        return [Block(BERNOULLI, D, D, self.n_pairs, 2 * D, parameters)]


@dataclass(frozen=True, eq=False)
class Categorical(ColumnLikelihood):
    """Labels, independent given the cluster: Dirichlet-categorical. Missing cells integrate out.

    x_j ~ Categorical(p_j), p_j ~ Dirichlet(alpha). Every column has one more level for all labels
    that are not among `levels`: a label that comes up later is no error.

    Parameters
    ----------
    levels : sequence of sequences, optional
        The labels of every column. Default those of the first rows, sorted.
    alpha : float
        Base measure of every level.

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
        """Return the number of levels of every column, the one for other labels included."""
        self.require_informed()
        return np.array([len(known) + 1 for known in self.levels or ()], np.int64)

    @property
    def n_pairs(self) -> int:
        """Return the number of levels of all columns."""
        return int(self.sizes.sum())

    def continues(self, other: Likelihood) -> bool:
        """Return whether statistics that another likelihood summed are of the same labels."""
        return isinstance(other, Categorical) and (
            [list(known) for known in self.levels or ()]
            == [list(known) for known in other.levels or ()]
        )

    def check_rows(self, X: Any) -> None:
        """Raise ValueError if X is no table."""
        as_labels(X)

    def encode(self, X: Any) -> CellBatch:
        """Return the level's number of every cell; NaN where it is missing.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Labels; None and NaN are missing.
        """
        labels = as_labels(X)
        if labels.shape[1] != self.n_columns:
            raise WrongWidthError(
                f"X has {labels.shape[1]} columns, but Categorical has {self.n_columns}"
            )
        cells = np.empty(labels.shape)
        for j, known in enumerate(self.levels or ()):
            numbers: dict[Any, float] = {label: float(i) for i, label in enumerate(known)}
            numbers[None] = np.nan
            cells[:, j] = [numbers.get(label, float(len(known))) for label in labels[:, j]]
        return CellBatch(cells, np.zeros(len(cells)), self)

    def pairs_of(self, cells: Floats) -> tuple[Floats, Floats]:
        """Return ones at the cells' levels."""
        starts = np.cumsum(self.sizes) - self.sizes
        rows, columns = np.nonzero(~np.isnan(cells))
        high = np.zeros((len(cells), self.n_pairs))
        high[rows, starts[columns] + cells[rows, columns].astype(np.int64)] = 1.0
        return high, np.zeros_like(high)

    def _columns(self, statistics: Floats) -> list[Floats]:
        """Return alpha + S of every column, (K, levels) each."""
        counts = statistics[:, : self.n_pairs] + self.alpha
        return np.split(counts, np.cumsum(self.sizes)[:-1], axis=1)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return sum_l log Gamma(alpha + S_l) - log Gamma(sum_l alpha + S_l) of all columns."""
        total = np.zeros(len(statistics))
        for counts in self._columns(statistics):
            total += gammaln(counts).sum(axis=1) - gammaln(counts.sum(axis=1))
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the summed log probabilities of the cells that are there."""
        levels = np.flatnonzero(row.values[: self.n_pairs])
        total: Floats = np.log(self.posterior_mean(statistics)[:, levels]).sum(axis=1)
        return total

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return the probability of every level of every column, side by side."""
        return np.hstack([c / c.sum(axis=1, keepdims=True) for c in self._columns(statistics)])

    def sample(
        self, statistics: Floats, rng: np.random.Generator, **options: Any
    ) -> NDArray[np.object_]:
        """Draw one row of labels from the posterior predictive of every cluster.

        Other labels come out as None.
        """
        no_options(self, options)
        rows = np.empty((len(statistics), self.n_columns), dtype=object)
        for j, counts in enumerate(self._columns(statistics)):
            ends = np.cumsum(counts, axis=1)
            drawn = (rng.random((len(ends), 1)) * ends[:, -1:] >= ends).sum(axis=1)
            rows[:, j] = [[*(self.levels or ())[j], None][level] for level in drawn]
        return rows

    def blocks(self) -> list[Block]:
        """Return a block a column."""
        return [
            Block(CATEGORICAL, size, 1, size, size, np.full(size, float(self.alpha)))
            for size in self.sizes.tolist()
        ]


def _sort_key(label: Any) -> tuple[str, Any]:
    """Sort labels of one type by themselves, types by name."""
    return type(label).__name__, label
