"""Summed sufficient statistics: a row a cluster, dense or hashed.

Rows lie one after the other in one long array. A narrow row is dense. A wide one, a vocabulary of
a hundred thousand words, is an open-addressing hash table of the columns it has seen; it doubles as
it fills, and is dense once hashing would save nothing. A row's values do not depend on how it is
stored, so results do not either.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.jit.decorators import entry, inlined, inner

DENSE_UP_TO = 8192
"""Columns that are always stored densely: a row is 64 KB then."""
FIRST_SIZE = 64
EMPTY = -1
NOTHING = 0
"""The first entry of a hashed table belongs to no row and stays zero."""
N_COLUMNS, END = 0, 1
SLOT = FIRST_SIZE + 8
"""Entries that a cluster takes whatever it has: the least row, and its numbers in other arrays."""


class Table(NamedTuple):
    """Rows of statistics. Free rows are empty: they read as zero."""

    values: NDArray[np.float64]
    """(length,): the rows' entries."""
    keys: NDArray[np.int32]
    """(length,): the column of every entry of a hashed row, or EMPTY; size 0 if none is hashed."""
    starts: NDArray[np.int64]
    """(capacity,): where a row begins."""
    sizes: NDArray[np.int64]
    """(capacity,): entries of a row: a power of two if hashed, D if dense, 0 if free."""
    filled: NDArray[np.int64]
    """(capacity,): keys of a hashed row."""
    shape: NDArray[np.int64]
    """(2,): number of columns D, and where the next row may begin."""


def empty_table(capacity: int, n_columns: int, *, dense: bool = False) -> Table:
    """Return `capacity` empty rows; `dense` ones are so however wide they are."""
    hashed = n_columns > DENSE_UP_TO and not dense
    starts = np.zeros(capacity, np.int64)
    sizes = np.zeros(capacity, np.int64)
    if not hashed:
        starts[:] = np.arange(capacity) * n_columns
        sizes[:] = n_columns
    length = FIRST_SIZE if hashed else capacity * n_columns
    return Table(
        np.zeros(length),
        np.full(length if hashed else 0, EMPTY, np.int32),
        starts,
        sizes,
        np.zeros(capacity, np.int64),
        np.array([n_columns, NOTHING + 1 if hashed else length]),
    )


@inlined
def find(keys: Any, start: int, size: int, column: int) -> Any:
    """Return the entry of a hashed row for a column, or the free one it would take.

    Columns are often numbered by frequency: unscattered, the frequent ones would fill one stretch
    of the row, and all others would have to be sought beyond its end.
    """
    scattered = np.int64(column) * 2654435769  # 2^32 over the golden ratio
    at = (scattered ^ (scattered >> 16)) & (size - 1)
    while keys[start + at] != column and keys[start + at] != EMPTY:
        at = (at + 1) & (size - 1)
    return start + at


@inlined
def entry_of(table: Table, k: int, column: int) -> Any:
    """Return where row k holds a column; a zero if it lacks it."""
    start, size = table.starts[k], table.sizes[k]
    if size == table.shape[N_COLUMNS]:
        return start + column
    return find(table.keys, start, size, column) if size > 0 else NOTHING


@inlined
def locate(table: Table, k: int, columns: Any, first: int, last: int, entries: Any) -> None:
    """Fill `entries` with where row k holds columns[first:last]; a zero for what it lacks."""
    start, size = table.starts[k], table.sizes[k]
    if size == table.shape[N_COLUMNS]:
        for j in range(first, last):
            entries[j - first] = start + columns[j]
        return
    keys = table.keys
    for j in range(first, last):
        entries[j - first] = find(keys, start, size, columns[j]) if size > 0 else NOTHING


@inlined
def claim(table: Table, k: int, columns: Any, first: int, last: int, entries: Any) -> None:
    """Fill `entries` as `locate` does, taking a free entry for every column that has none."""
    locate(table, k, columns, first, last, entries)
    start, size, keys = table.starts[k], table.sizes[k], table.keys
    if size == table.shape[N_COLUMNS]:
        return
    for j in range(first, last):
        entry = find(keys, start, size, columns[j])
        if keys[entry] == EMPTY:
            keys[entry] = columns[j]
            table.filled[k] += 1
        entries[j - first] = entry


@inlined
def n_entries(table: Table, n_rows: int) -> int:
    """Return how many entries the first rows of a hashed table may take, and their slots.

    A row is up to 8/3 of its keys; a slot, and the least row, are worth `SLOT` entries. It depends
    on what is stored and not on where, so that a posterior that was saved and loaded counts alike.
    """
    D, stored = table.shape[N_COLUMNS], 0
    for k in range(n_rows):
        stored += D if table.sizes[k] == D else 3 * table.filled[k]
    return stored + SLOT * (n_rows + 1)


@inlined
def has_room(table: Table, k: int, columns: int) -> bool:
    """Return whether row k can take so many more columns: a hash table stays 3/4 full."""
    size = table.sizes[k]
    dense = size == table.shape[N_COLUMNS]
    return dense or 4 * (table.filled[k] + columns) <= 3 * size


@inner
def grow_row(table: Table, k: int, columns: int) -> int:
    """Make row k large enough for so many more columns, at the end; return 0.

    Where there is no space, nothing happens, and the entries that are wanted are returned: the
    table has to be `lengthened`, which only Python can do, since a compiled loop that Python calls
    returns no arrays.
    """
    needed, D = table.filled[k] + columns, table.shape[N_COLUMNS]
    size = FIRST_SIZE
    while 3 * size < 4 * needed:
        size *= 2
    if 2 * size > D:
        size = D
    if table.shape[END] + size > table.values.size:
        return size
    old_start, old_size = table.starts[k], table.sizes[k]
    table.starts[k], table.sizes[k], table.filled[k] = table.shape[END], size, 0
    table.shape[END] += size
    for at in range(old_start, old_start + old_size):
        if table.keys[at] != EMPTY:
            column = table.keys[at]
            entry = table.starts[k] + column
            if size < D:
                entry = find(table.keys, table.starts[k], size, column)
                table.keys[entry] = column
                table.filled[k] += 1
            table.values[entry] = table.values[at]
            table.keys[at] = EMPTY
            table.values[at] = 0.0
    return 0


def with_capacity(table: Table, capacity: int) -> Table:
    """Return the table with more free rows."""
    more, D = capacity - table.starts.size, int(table.shape[N_COLUMNS])
    if table.keys.size > 0:
        free = np.zeros(more, np.int64)
        return table._replace(
            starts=np.append(table.starts, free),
            sizes=np.append(table.sizes, free),
            filled=np.append(table.filled, free),
        )
    grown = empty_table(capacity, D, dense=True)
    grown.values[: table.values.size] = table.values
    return grown


def lengthened(table: Table, wanted: int) -> Table:
    """Return a hashed table with the same rows and space for so many entries more at the end.

    It is a quarter longer than what that takes; what rows that moved left behind is freed.
    """
    live = NOTHING + 1 + int(table.sizes.sum()) + wanted
    length = live + live // 4
    longer = Table(
        np.zeros(length),
        np.full(length, EMPTY, np.int32),
        np.zeros(table.starts.size, np.int64),
        table.sizes.copy(),
        table.filled.copy(),
        table.shape.copy(),
    )
    line_up(table, longer)
    return longer


@entry
def line_up(table: Table, out: Table) -> None:
    """Put the rows of a hashed table into another one, one after the other."""
    end = NOTHING + 1
    for k in range(table.starts.size):
        start, size = table.starts[k], table.sizes[k]
        for at in range(size):
            out.values[end + at] = table.values[start + at]
            out.keys[end + at] = table.keys[start + at]
        out.starts[k] = end
        end += size
    out.shape[END] = end


@entry
def take_row(table: Table, k: int, last: int) -> None:
    """Free row k, then let it have what row `last` holds, which is free thereafter."""
    D = table.shape[N_COLUMNS]
    if table.keys.size == 0:
        to, source = table.starts[k], table.starts[last]
        for at in range(D):
            table.values[to + at] = table.values[source + at]
            table.values[source + at] = 0.0
        return
    for at in range(table.starts[k], table.starts[k] + table.sizes[k]):
        table.values[at] = 0.0
        table.keys[at] = EMPTY
    table.starts[k] = table.starts[last]
    table.sizes[k] = table.sizes[last]
    table.filled[k] = table.filled[last]
    table.sizes[last] = 0
    table.filled[last] = 0


@entry
def gather(table: Table, slots: Any, columns: Any, out: Any) -> None:
    """Fill out[r] with these columns of row slots[r]."""
    entries = np.empty(columns.size, np.uint64)
    for r in range(slots.size):
        locate(table, slots[r], columns, 0, columns.size, entries)
        for c in range(columns.size):
            out[r, c] = table.values[entries[c]]


@entry
def count_entries(table: Table, n_rows: int) -> int:
    """Return `n_entries`."""
    return n_entries(table, n_rows)


@entry
def add_rows(table: Table, n_rows: int, out: Any) -> None:
    """Add the first rows, which are hashed, to `out`, as many columns as it has."""
    for k in range(n_rows):
        start, size = table.starts[k], table.sizes[k]
        for j in range(size):
            column = j if size == table.shape[N_COLUMNS] else np.int64(table.keys[start + j])
            if 0 <= column < out.size:
                out[column] += table.values[start + j]


@entry
def count_stored(table: Table, slots: Any, out: Any) -> None:
    """Fill `out` with how many columns of some rows are not zero."""
    for r in range(slots.size):
        start, n = table.starts[slots[r]], 0
        for at in range(start, start + table.sizes[slots[r]]):
            n += table.values[at] != 0.0
        out[r] = n


@entry
def list_stored(table: Table, slots: Any, columns: Any, values: Any) -> None:
    """List the columns of some rows that are not zero, in the order of storage, and their values.

    An entry without a column is zero. The arrays have one place more than is needed: everything is
    written down, and what is zero is written over, as guessing which is which takes longer.
    """
    n = 0
    for r in range(slots.size):
        start, size = table.starts[slots[r]], table.sizes[slots[r]]
        dense = size == table.shape[N_COLUMNS]
        for j in range(size):
            value = table.values[start + j]
            columns[n] = j if dense else np.int64(table.keys[start + j])
            values[n] = value
            n += value != 0.0


@entry
def spread_row(table: Table, k: int, out: Any) -> None:
    """Write the columns that row k holds into `out`, as many as it has."""
    start, size = table.starts[k], table.sizes[k]
    for j in range(size):
        column = j if size == table.shape[N_COLUMNS] else np.int64(table.keys[start + j])
        if 0 <= column < out.size:
            out[column] = table.values[start + j]


@entry
def add_at(values: Any, at: Any, more: Any) -> None:
    """Add to some values, of which some may come several times; ``numpy.add.at`` takes longer."""
    for j in range(at.size):
        values[at[j]] += more[j]


def scatter(table: Table, k: int, columns: Any, values: Any) -> Table:
    """Set some columns of row k; return the table, which may have moved."""
    while (wanted := set_columns(table, k, columns, values)) > 0:
        table = lengthened(table, wanted)
    return table


@entry
def set_columns(table: Table, k: int, columns: Any, values: Any) -> int:
    """Set some columns of row k; return 0, or without doing so the entries wanted for it."""
    if not has_room(table, k, columns.size):
        wanted = grow_row(table, k, columns.size)
        if wanted > 0:
            return wanted
    entries = np.empty(columns.size, np.uint64)
    claim(table, k, columns, 0, columns.size, entries)
    for c in range(columns.size):
        table.values[entries[c]] = values[c]
    return 0
