"""Forgetting: the statistics of all clusters are multiplied by one factor.

Both engines use these loops, as they use those that read and write rows of a table.
"""

import numpy as np

from bnpstream.kernels.jit.decorators import entry
from bnpstream.kernels.statistics.pairs import add_product
from bnpstream.kernels.statistics.table import EMPTY, FIRST_SIZE, N_COLUMNS, Table, find


@entry
def fade_rows(table: Table, n_rows: int, factor: float) -> None:
    """Multiply the first rows by a factor."""
    for k in range(n_rows):
        start = table.starts[k]
        values = table.values[start : start + table.sizes[k]]
        for at in range(values.size):
            values[at] *= factor


@entry
def fade_pairs(table: Table, n_rows: int, factor: float) -> None:
    """Multiply the first rows of pairs of doubles by a factor: no digit of a pair is lost."""
    pairs = table.shape[N_COLUMNS] // 2
    for k in range(n_rows):
        start = table.starts[k]
        row = table.values[start : start + 2 * pairs]
        for s in range(pairs):
            row[s], row[s + pairs] = add_product(0.0, 0.0, factor, row[s], row[s + pairs])


@entry
def clear_traces(table: Table, n_rows: int, least: float) -> None:
    """Set entries of the first rows that are not zero but below `least` to zero."""
    for k in range(n_rows):
        start = table.starts[k]
        values = table.values[start : start + table.sizes[k]]
        for at in range(values.size):
            if abs(values[at]) < least:
                values[at] = 0.0


@entry
def drop_empty(table: Table, n_rows: int) -> None:
    """Let hashed rows forget columns whose entries are zero, and shrink if few are left.

    What a shorter row leaves behind is freed when rows are next moved (`lengthened`).
    """
    for k in range(n_rows):
        start, size = table.starts[k], table.sizes[k]
        if table.keys.size == 0 or size == table.shape[N_COLUMNS]:
            continue
        keys, values = table.keys[start : start + size], table.values[start : start + size]
        live = np.flatnonzero(values != 0.0)
        if live.size == table.filled[k]:
            continue
        columns, kept = keys[live], values[live]
        keys[:] = EMPTY
        values[:] = 0.0
        while size > FIRST_SIZE and 3 * size >= 16 * live.size:  # half of it is 3/8 full then
            size //= 2
        table.sizes[k], table.filled[k] = size, live.size
        for j in range(live.size):
            at = find(table.keys, start, size, columns[j])
            table.keys[at], table.values[at] = columns[j], kept[j]
