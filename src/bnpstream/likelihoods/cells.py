"""Rows of cells, one per column: validation, batches, and what their families share."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.cells.columns import Cells, Columns, Derived
from bnpstream.kernels.cells.rows import add_up, derive_all
from bnpstream.kernels.statistics.table import Table
from bnpstream.likelihoods.base import Draw, InputTraits, Likelihood, Score
from bnpstream.likelihoods.batch import Batch, Row, filled, read_only
from bnpstream.likelihoods.errors import RowError
from bnpstream.likelihoods.frames import as_array, check_table

LARGEST = 1e100
"""Larger cells would overflow when squared and summed."""
APART = 8
"""Columns added to rows of `Derived`, so that rows do not fall into the same cache lines."""


class WrongWidthError(ValueError):
    """Rows have more or fewer columns than a family."""


def as_cells(X: Any) -> Floats:
    """Return X as a float64 matrix in which NaN stands for a missing cell.

    Parameters
    ----------
    X : array-like or sparse of shape (n, D)
        Numbers; NaN, None and masked cells are missing. Never modified.
    """
    if type(X) is not np.ndarray:
        X = as_matrix(X)
    check_table(X)
    if X.dtype.kind not in "biuf":
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise _no_number(X, error) from None
    cells = np.ascontiguousarray(X, dtype=np.float64)
    if all_numbers(cells):
        return cells
    bad = ~(np.isnan(cells) | (np.abs(cells) <= LARGEST))
    refuse_cells(cells, bad, f"cells must be numbers up to {LARGEST:g}, or missing")
    return cells


def refuse_cells(cells: Floats, bad: NDArray[np.bool_], said: str) -> None:
    """Raise an error that names the first bad cell, if any, and says what cells must be."""
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise RowError(int(row), f"column {column} is {cells[row, column]}: {said}")


def as_matrix(X: Any) -> NDArray[Any]:
    """Return a data frame, a sparse or masked matrix, or lists as an array."""
    X = as_array(X)
    if issparse(X):
        matrix: Any = X
        X = matrix.toarray()
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    return np.asarray(X)


def all_numbers(cells: NDArray[Any]) -> bool:
    """Return whether every cell is a number up to `LARGEST`; NaN fails the comparison."""
    low, high = float(cells.min(initial=0)), float(cells.max(initial=0))
    return high <= LARGEST and low >= -LARGEST


def _no_number(X: Any, error: TypeError | ValueError) -> Exception:
    """Return an error that names the first cell that is not a number."""
    said = f"X must hold numbers: {error}"
    for (row, column), cell in np.ndenumerate(X):
        try:
            np.float64(cell)
        except (TypeError, ValueError):
            found = RowError(row, f"column {column} is {cell!r}: {said}")
            return found if isinstance(error, ValueError) else TypeError(str(found))
    return type(error)(said)


class Block(NamedTuple):
    """A family's part of the compiled score, see ``kernels.cells.blocks``."""

    kind: int
    cells: int
    """Columns; for a categorical block, levels."""
    columns: int
    """Columns."""
    statistics: int
    derived: int
    parameters: Floats


class CellBatch(Batch):
    """Encoded rows of cells; their statistics are computed when needed.

    Parameters
    ----------
    cells : ndarray of shape (n, D)
        Numbers; NaN for missing cells.
    log_base : ndarray of shape (n,)
        log h(x).
    family : ColumnLikelihood
        Computes the statistics.
    weights : ndarray of shape (n,), optional
        Number of rows that each row counts for; by default one.
    """

    def __init__(
        self,
        cells: Floats,
        log_base: Floats,
        family: "ColumnLikelihood",
        weights: Floats | None = None,
    ) -> None:
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "log_base", log_base)
        object.__setattr__(self, "family", family)
        object.__setattr__(self, "weights", weights)

    cells: Floats
    family: "ColumnLikelihood"
    has_sparse_rows: ClassVar[bool] = False
    scores_alone: ClassVar[bool] = False

    @property
    def n_statistics(self) -> int:
        """Return D, the length of a row of sufficient statistics."""
        return 2 * self.family.n_pairs

    @property
    def has_gaps(self) -> bool:
        """Return whether some cells are missing."""
        return bool(np.isnan(self.cells).any())

    @cached_property
    def statistics(self) -> Floats:
        """Return t(x) of all rows, shape (n, D)."""
        return self.family.statistics_of(self.cells)

    def row(self, i: int) -> Row:
        """Return observation i."""
        values = self.family.statistics_of(self.cells[i : i + 1])[0]
        return Row(slice(None), values, float(self.log_base[i]), float(self.row_weights[i]))

    def weighted(self, weights: Floats | None) -> Self:
        """Return the same observations with other weights."""
        return type(self)(self.cells, self.log_base, self.family, weights)

    def chosen(self, rows: NDArray[np.intp] | slice) -> Self:
        """Return some observations."""
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(self.cells[rows], self.log_base[rows], self.family, weights)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the observations of several batches, in order."""
        cells = np.concatenate([part.cells for part in parts])
        log_base, weights = cls._joined_ends(parts)
        return cls(cells, log_base, parts[0].family, weights)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that `ColumnLikelihood.batch_of` needs to restore these rows."""
        return {"cells": self.cells, "log_base": self.log_base, "weights": self.row_weights}

    def weighted_sums(self, responsibilities: csr_array) -> Floats:
        """Return the (K, D) summed statistics given (n, K) responsibilities."""
        out = np.zeros((responsibilities.shape[1], self.n_statistics))
        indptr, slots = (
            part.astype(np.int64) for part in (responsibilities.indptr, responsibilities.indices)
        )
        columns = self.family.kernel_parameters(self.n_statistics)
        add_up(columns, self.kernel_rows, indptr, slots, responsibilities.data, out)
        return out

    @cached_property
    def kernel_rows(self) -> Cells:
        """Return the arrays for compiled loops."""
        cells, n, weights = self.cells, len(self.log_base), self.weights
        complete = filled(n, True) if all_numbers(cells) else (cells == cells).all(axis=1)
        weights = filled(n, 1.0) if weights is None else weights
        return Cells(read_only(cells), complete, self.log_base, weights)


class ColumnLikelihood(Likelihood):
    """A family of columns that are independent of all others given the cluster.

    Statistics are pairs of doubles, so that offsets of 1e6 and clusters 1e6 apart lose no accuracy:
    the first half of a row holds the numbers, the second half the rounding errors. A subclass gives
    its statistics, its normaliser, and its blocks of the compiled score.
    """

    paired: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True
    merges_when_done: ClassVar[bool] = True
    settles_first: ClassVar[bool] = True

    @property
    def input(self) -> InputTraits:
        """Return what rows this family takes; cells may be missing if they integrate out."""
        return InputTraits(allow_nan=self.takes_missing)

    def expected_score(self, batch: Batch, draw: Draw, score: Score) -> tuple[Floats, Floats]:
        """Return the log predictives expected of rows with the same cells missing."""
        missing = np.isnan(cast(CellBatch, batch).cells)
        rows = np.asarray(draw())
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        gap: Any = None if rows.dtype == object else np.nan
        expected = [
            score(np.where(pattern, gap, rows)) if not pattern.all() else (0.0, 1.0)
            for pattern in patterns
        ]
        means, spreads = np.array(expected)[which.ravel()].T
        return means, spreads

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Return the number of columns; ValueError if not known yet."""

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Return the number of sufficient statistics."""

    @abstractmethod
    def pairs_of(self, cells: Floats) -> tuple[Floats, Floats]:
        """Return the statistics of rows, and their rounding errors, each (n, n_pairs)."""

    @abstractmethod
    def blocks(self) -> list[Block]:
        """Return the blocks of the compiled score."""

    def require_informed(self) -> None:
        """Raise ValueError if some parameters are not set."""
        if not self.is_informed:
            raise ValueError(
                f"{type(self).__name__} has no base measure yet: call informed(X) with some rows, "
                "or give all its parameters"
            )

    def continues(self, other: Likelihood) -> bool:
        """Return whether statistics summed under another likelihood are valid for this one."""
        related = isinstance(self, type(other)) or isinstance(other, type(self))
        return related and self.n_pairs == getattr(other, "n_pairs", 0)

    def log_base_of(self, cells: Floats) -> Floats:
        """Return log h(x) of rows."""
        return np.zeros(len(cells))

    def check_cells(self, cells: Floats) -> None:
        """Raise ValueError if a cell is not valid for this family."""

    def statistics_of(self, cells: Floats) -> Floats:
        """Return t(x) of rows, shape (n, 2 n_pairs)."""
        return np.concatenate(self.pairs_of(cells), axis=1)

    def encode(self, X: Any) -> CellBatch:
        """Return the rows of X, validated.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
            Rows; NaN, None and masked cells are missing.
        """
        table = self._checked(X)
        if table.shape[1] != self.n_columns:
            raise WrongWidthError(
                f"X has {table.shape[1]} columns, but {type(self).__name__} has {self.n_columns}"
            )
        cells = self._numbers(table)
        return CellBatch(cells, self.log_base_of(cells), self)

    def batch_of(self, arrays: dict[str, NDArray[Any]]) -> CellBatch:
        """Return the rows that `CellBatch.arrays` described."""
        return CellBatch(arrays["cells"], arrays["log_base"], self, arrays["weights"])

    def check_rows(self, X: Any) -> None:
        """Raise ValueError if a cell is not valid for this family."""
        self._checked(X)

    def _numbers(self, table: Any) -> Floats:
        """Return validated cells as numbers; by default they are numbers."""
        numbers: Floats = table
        return numbers

    def _checked(self, X: Any) -> Any:
        """Return the cells of X; ValueError if one is not valid for this family."""
        cells = as_cells(X)
        if not self.takes_missing and not all_numbers(cells) and np.isnan(cells).any():
            row, column = np.argwhere(np.isnan(cells))[0]
            raise RowError(
                int(row),
                f"column {column} is missing (NaN): {type(self).__name__} needs all cells; "
                "DiagonalGaussian allows missing cells",
            )
        self.check_cells(cells)
        return cells

    def kernel_parameters(self, n_statistics: int) -> Columns:
        """Return the parameters of the compiled score."""
        blocks = self.blocks()
        ends = np.zeros((len(blocks) + 1, 4), np.int64)
        sizes = [
            (block.columns, block.statistics, block.derived, block.parameters.size)
            for block in blocks
        ]
        ends[1:] = np.cumsum(sizes, axis=0)
        table = [
            (block.kind, end[0], block.cells, end[1], end[2], end[3])
            for block, end in zip(blocks, ends[:-1].tolist(), strict=True)
        ]
        parameters = np.concatenate([block.parameters for block in blocks])
        return Columns(np.array(table, np.int64), parameters, int(ends[-1, 1]), int(ends[-1, 2]))

    def faded_cache(
        self, cache: Derived, table: Table, masses: Floats, n_clusters: int, *, exact: bool
    ) -> Derived:
        """Return the same arrays, derived again."""
        derive_all(self.kernel_parameters(int(table.shape[0])), table, n_clusters, cache)
        return cache

    def cache(self, table: Table, masses: Floats, n_clusters: int) -> Derived:
        """Return means, inverse factors and constants of all clusters."""
        columns = self.kernel_parameters(int(table.shape[0]))
        capacity = table.starts.size
        derived = Derived(
            np.zeros((columns.n_derived, capacity + APART)),
            np.zeros(columns.n_derived),
            np.zeros(capacity, np.bool_),
            np.zeros(columns.n_derived),
        )
        derive_all(columns, table, n_clusters, derived)
        return derived


def as_vector(name: str, value: Any, size: int | None = None) -> Floats:
    """Return numbers, one per column, or raise ValueError."""
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {value!r}") from None
    if size is not None and found.ndim == 0:
        found = np.full(size, float(found))
    if found.ndim != 1 or (size is not None and found.size != size):
        raise ValueError(f"{name} must be one number per column, got an array of {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite, got {found[~np.isfinite(found)][0]}")
    return found


def require_positive(name: str, values: Any) -> None:
    """Raise ValueError unless all numbers are above zero."""
    bad = ~(np.asarray(values, dtype=np.float64) > 0)
    if bad.any():
        raise ValueError(
            f"{name} must be > 0, got {np.asarray(values).reshape(-1)[bad.ravel()][0]}"
        )


def no_options(family: Likelihood, options: dict[str, Any]) -> None:
    """Raise TypeError if a sampler is given options."""
    if options:
        raise TypeError(f"{type(family).__name__}.sample takes no {', '.join(options)}")
