"""Rows of statistics for NumPy: reading and writing a table, dense or hashed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.statistics.table import (
    EMPTY,
    N_COLUMNS,
    Table,
    count_stored,
    empty_table,
    gather,
    list_stored,
    scatter,
    spread_row,
)

Columns = slice | NDArray[np.integer]


def column_numbers(table: Table, columns: Any) -> Integers:
    """Return a slice, a number or numbers of columns as numbers from zero on.

    Numbers are not looked up in a list of all columns: an open vocabulary has two billion.
    """
    D = int(table.shape[N_COLUMNS])
    if isinstance(columns, slice):
        return np.arange(*columns.indices(D))
    where = np.asarray(columns, np.int64)
    return np.where(where < 0, where + D, where)


class HashedRows:
    """Some rows of a table that can be indexed by columns, [:, columns]."""

    def __init__(self, table: Table, slots: Integers) -> None:
        self._table, self._slots = table, slots
        self.shape = (slots.size, int(table.shape[N_COLUMNS]))

    def __getitem__(self, key: tuple[slice, Any]) -> Floats:
        rows, columns = key
        slots, where = self._slots[rows], column_numbers(self._table, columns)
        found = np.empty((slots.size, where.size))
        gather(self._table, slots, np.atleast_1d(where), found)
        return found[:, 0] if where.ndim == 0 else found


def dense_rows(table: Table) -> Floats | None:
    """Return all rows as a (capacity, D) view, or None if some are hashed."""
    shape = (table.starts.size, int(table.shape[N_COLUMNS]))
    return None if table.keys.size > 0 else table.values.reshape(shape)


def read_rows(table: Table, slots: Integers, columns: Columns) -> Floats:
    """Return some columns of some rows."""
    return HashedRows(table, np.asarray(slots, np.int64))[:, columns]


def first_columns(table: Table, slots: Integers, n_columns: int) -> Floats:
    """Return the first columns of some rows, from their stored entries and without lookups."""
    dense = dense_rows(table)
    if dense is not None:
        return dense[slots, :n_columns]
    found = np.zeros((slots.size, n_columns))
    for row, slot in zip(found, slots.tolist(), strict=True):
        spread_row(table, slot, row)
    return found


def sparse_row(table: Table, slot: int) -> tuple[Integers, Floats]:
    """Return the nonzero columns of one row, in ascending order, and their values."""
    start, size = int(table.starts[slot]), int(table.sizes[slot])
    inside = slice(start, start + size)
    values = table.values[inside]
    if size == table.shape[N_COLUMNS]:
        columns = np.flatnonzero(values != 0.0)  # four times as fast as on the numbers themselves
        return columns, values[columns]
    found = np.flatnonzero((table.keys[inside] != EMPTY) & (values != 0.0))
    columns = table.keys[inside][found].astype(np.int64)
    order = np.argsort(columns)
    return columns[order], values[found[order]]


def sparse_rows(table: Table, slots: Integers) -> csr_array:
    """Return some rows, with columns in ascending order."""
    ends = np.zeros(slots.size + 1, np.int64)
    count_stored(table, slots, ends[1:])
    ends = np.cumsum(ends)
    n = int(ends[-1])
    columns, values = np.empty(n + 1, np.int64), np.empty(n + 1)
    list_stored(table, slots, columns, values)
    shape = (slots.size, int(table.shape[N_COLUMNS]))
    found = csr_array((values[:n], columns[:n], ends), shape=shape)
    found.sort_indices()
    return found


def write_rows(table: Table, slots: Integers, columns: Columns, values: Floats) -> Table:
    """Replace some columns of some rows; return the table, which may have moved."""
    where = column_numbers(table, columns)
    for slot, row in zip(slots, values, strict=True):
        table = scatter(table, slot, where, row)
    return table


def rows_of(statistics: Any, capacity: int, *, dense: bool = False) -> Table:
    """Return a table whose first rows are those of a (K, D) array or sparse array."""
    table = empty_table(capacity, statistics.shape[1], dense=dense)
    rows = dense_rows(table)
    if rows is not None:
        full = statistics if isinstance(statistics, np.ndarray) else statistics.toarray()
        rows[: len(full)] = full
        return table
    matrix = csr_array(statistics)
    for k in range(matrix.shape[0]):
        inside = slice(matrix.indptr[k], matrix.indptr[k + 1])
        table = write_rows(table, np.array([k]), matrix.indices[inside], matrix.data[inside][None])
    return table
