"""Encoded rows: sufficient statistics t(x) and log h(x)."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from bnpstream.kernels.arrays import Floats, SparseRows
from bnpstream.kernels.statistics.pairs import add_product
from bnpstream.kernels.statistics.table import DENSE_UP_TO


class Row(NamedTuple):
    """One observation: sufficient statistics t(x), given at some columns and zero elsewhere."""

    columns: slice | NDArray[np.integer]
    values: Floats
    log_base: float
    """log h(x)."""
    weight: float = 1.0
    """Number of rows that it counts for."""


@dataclass(frozen=True)
class Batch:
    """Encoded observations: one row of sufficient statistics, and log h(x), for each.

    Parameters
    ----------
    statistics : ndarray or csr_array of shape (n, D)
        t(x). Sparse rows are canonical: sorted columns, no duplicates.
    log_base : ndarray of shape (n,)
        log h(x).
    weights : ndarray of shape (n,), optional
        Number of rows that each row counts for; by default one.
    """

    statistics: Floats | csr_array
    log_base: Floats
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.log_base)

    @property
    def n_statistics(self) -> int:
        """Return D, the length of a row of sufficient statistics."""
        return int(self.statistics.shape[1])

    def row(self, i: int) -> Row:
        """Return observation i."""
        log_base, weight = float(self.log_base[i]), float(self.row_weights[i])
        if isinstance(self.statistics, np.ndarray):
            return Row(slice(None), self.statistics[i], log_base, weight)
        inside = slice(self.statistics.indptr[i], self.statistics.indptr[i + 1])
        return Row(self.statistics.indices[inside], self.statistics.data[inside], log_base, weight)

    @cached_property
    def row_weights(self) -> Floats:
        """Return the number of rows that each row counts for."""
        return filled(len(self), 1.0) if self.weights is None else self.weights

    @property
    def has_gaps(self) -> bool:
        """Return whether some cells are missing."""
        return False

    def weighted(self, weights: Floats | None) -> Self:
        """Return the same observations with other weights."""
        return dataclasses.replace(self, weights=weights)

    def part(self, start: int, stop: int) -> Self:
        """Return observations start..stop-1."""
        return self.chosen(slice(start, stop))

    def chosen(self, rows: NDArray[np.intp] | slice) -> Self:
        """Return some observations; those of a slice, from start to stop, are not copied."""
        statistics: Any = self.statistics
        if isinstance(rows, slice) and not isinstance(statistics, np.ndarray):
            statistics = rows_between(statistics, rows.start, rows.stop)
        else:
            statistics = statistics[rows]
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(statistics, self.log_base[rows], weights)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the observations of several batches of one class, in order."""
        blocks: list[Any] = [part.statistics for part in parts]
        dense = isinstance(blocks[0], np.ndarray)
        statistics: Any = np.concatenate(blocks) if dense else vstack(blocks, format="csr")
        return cls(statistics, *cls._joined_ends(parts))

    @staticmethod
    def _joined_ends(parts: Sequence["Batch"]) -> tuple[Floats, Floats | None]:
        """Return log h(x) and the weights of several batches."""
        log_base = np.concatenate([part.log_base for part in parts])
        if all(part.weights is None for part in parts):
            return log_base, None
        return log_base, np.concatenate([part.row_weights for part in parts])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that `Likelihood.batch_of` needs to restore these rows."""
        ends = {"log_base": self.log_base, "weights": self.row_weights}
        if isinstance(self.statistics, np.ndarray):
            return {"statistics": self.statistics, **ends}
        sparse = self.statistics
        return {
            "indptr": sparse.indptr,
            "indices": sparse.indices,
            "data": sparse.data,
            "shape": np.array(sparse.shape),
            **ends,
        }

    def totals(self, n_columns: int) -> Floats:
        """Return the first columns of the statistics summed over all observations."""
        totals: Floats = np.asarray(self.row_weights @ self.statistics)
        return totals[:n_columns]

    def weighted_sums(self, responsibilities: csr_array) -> Any:
        """Return the (K, D) summed statistics given (n, K) responsibilities, sparse if wide."""
        sums = responsibilities.T @ self.statistics
        if not isinstance(sums, np.ndarray) and self.n_statistics <= DENSE_UP_TO:
            sums = sums.toarray()
        return sums

    has_sparse_rows: ClassVar[bool] = True
    """Whether `kernel_rows` are `SparseRows`."""
    scores_alone: ClassVar[bool] = True
    """Whether compiled loops can score a row in one cluster, without the cache of all clusters."""

    @cached_property
    def kernel_rows(self) -> Any:
        """Return the arrays for compiled loops, or None if this layout has no loops."""
        return self.sparse_rows()

    def sparse_rows(self) -> SparseRows:
        """Return statistics of any kind for compiled loops; a dense row has every column."""
        n, D = len(self), self.n_statistics
        if isinstance(self.statistics, np.ndarray):
            indptr: NDArray[np.int64] = D * np.arange(n + 1)
            indices = np.tile(np.arange(D, dtype=np.uint32), n)
            values = self.statistics.reshape(-1)
        else:
            indptr = self.statistics.indptr.astype(np.int64, copy=False)
            indices = self.statistics.indices.astype(np.uint32)
            values = self.statistics.data
        return plain_rows(indptr, indices, values, self.log_base, self.row_weights)


def rows_between(matrix: csr_array, start: int, stop: int) -> csr_array:
    """Return rows start..stop-1 of a matrix, sharing its memory."""
    ends = matrix.indptr[start : stop + 1]
    inside = slice(ends[0], ends[-1])
    parts = (matrix.data[inside], matrix.indices[inside], ends - ends[0])
    return csr_array(parts, shape=(ends.size - 1, matrix.shape[1]))


def plain_rows(
    indptr: NDArray[np.int64],
    columns: NDArray[np.integer],
    values: Floats,
    log_base: Floats,
    weights: Floats,
) -> SparseRows:
    """Return rows for compiled loops, without tokens spelt out."""
    none, nowhere = np.zeros(indptr.size, np.int64), np.empty(0, np.int64)
    return SparseRows(
        indptr,
        columns.astype(np.uint32),
        _plain(values),
        _plain(log_base),
        _plain(weights),
        none,
        nowhere,
        none,
        nowhere.astype(np.uint32),
        np.empty(0),
    )


def filled(n: int, value: float | bool) -> NDArray[Any]:
    """Return n equal values, four times as fast as `np.full` for a single row."""
    found = np.empty(n, type(value))
    found.fill(value)
    return found


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return a view for compiled loops, which would be compiled again for rows that may be written.

    Rows of other processes, and of files that are mapped, may not be.
    """
    seen = values.view()
    seen.flags.writeable = False
    return seen


def _plain(values: Any) -> Floats:
    """Return float64 for compiled loops: contiguous and writable; copied if necessary."""
    return np.require(values, np.float64, ["C", "W"])


class PairedBatch(Batch):
    """Encoded observations whose statistics are pairs of doubles, see `Likelihood.paired`.

    They have no compiled loops.
    """

    def weighted_sums(self, responsibilities: csr_array) -> Floats:
        """Return the (K, D) summed statistics given (n, K) responsibilities, row by row."""
        sums, rows = np.zeros((responsibilities.shape[1], self.n_statistics)), responsibilities
        for i in range(len(self)):
            inside = slice(rows.indptr[i], rows.indptr[i + 1])
            slots, shares = rows.indices[inside], rows.data[inside]
            row = self.row(i)
            place = np.ix_(slots, np.arange(self.n_statistics)[row.columns])
            sums[place] = plus(sums[place], shares, row.values, paired=True)
        return sums

    @property
    def kernel_rows(self) -> None:
        """Return None: compiled loops add doubles."""
        return None


def plus(before: Floats, shares: Floats, values: Floats, *, paired: bool) -> Floats:
    """Return summed statistics plus shares times those of a row.

    Parameters
    ----------
    before : ndarray of shape (K, D)
        Summed statistics.
    shares : ndarray of shape (K,)
        Share of the row that each cluster takes.
    values : ndarray of shape (D,) or (K, D)
        The row's statistics, or one row per cluster.
    paired : bool
        Whether statistics are pairs of doubles, see `Likelihood.paired`.
    """
    if not paired:
        return before + shares[:, None] * values
    half = before.shape[-1] // 2
    high, low, value, rest = (
        part[..., columns]
        for part in (before, values)
        for columns in (slice(None, half), slice(half, None))
    )
    return np.concatenate(add_product(high, low, shares[:, None], value, rest), axis=-1)
