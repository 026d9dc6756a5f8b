"""What a pass changed in the statistics of a posterior: single entries, written or added.

A pass that only adds rows leaves clusters in their slots and opens new ones behind them, so what it
did is a list of entries. A place is ``row * D + column``; places are in ascending order.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.kernels.statistics.table import add_at
from bnpstream.likelihoods import plus
from bnpstream.mixture.state import MixtureState
from bnpstream.mixture.tables import dense_rows, read_rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def touched_slots(before: MixtureState, after: MixtureState) -> Integers:
    """Return the slots that got rows, new clusters included."""
    K = before.n_clusters
    same = (before.masses == after.masses[:K]) & (before.log_vacancy == after.log_vacancy[:K])
    return np.append(np.flatnonzero(~same), np.arange(K, after.n_clusters)).astype(np.int64)


def changed_places(before: MixtureState, after: MixtureState, slots: Integers) -> Integers:
    """Return where statistics of some slots of `after` differ, as places in these rows.

    Of pairs of doubles every entry of such a row is given.
    """
    D, parts = after.n_statistics, [np.empty(0, np.int64)]
    dense = dense_rows(after.arrays.table)
    for row, slot in enumerate(slots.tolist()):
        if after.paired:
            columns = np.arange(D)
        elif dense is None:
            columns, now = after.sparse_row(slot)
            columns = columns[now != _read(before, slot, columns)]
        elif slot < before.n_clusters:
            columns = np.flatnonzero(dense[slot] != before.statistics[slot])
        else:
            columns, _ = after.sparse_row(slot)
        parts.append(row * D + columns)
    return np.concatenate(parts)


def read_entries(state: MixtureState, slots: Integers, places: Integers) -> Floats:
    """Return the statistics at some places of some rows; zero where there is no such slot yet."""
    table = state.arrays.table
    if table.keys.size == 0:
        n_places = np.diff(_ends(state, slots, places))
        there = np.repeat(slots < state.n_clusters, n_places)
        found = np.zeros(places.size)
        found[there] = table.values[_indices(state, slots, places)[there]]
        return found
    parts = [_read(state, slot, columns) for slot, columns, _ in _by_row(state, slots, places)]
    return np.concatenate([np.empty(0), *parts])


def differences(
    before: MixtureState, after: MixtureState, slots: Integers, places: Integers
) -> Floats:
    """Return by how much `after` is above `before` at some places of some rows."""
    old, new = read_entries(before, slots, places), read_entries(after, slots, places)
    if not after.paired:
        return new - old
    shape = (slots.size, after.n_statistics)
    less = plus(new.reshape(shape), -np.ones(slots.size), old.reshape(shape), paired=True)
    return less.ravel()


def entry_rows(n_statistics: int, n_rows: int, places: Integers, values: Floats) -> csr_array:
    """Return entries as rows that are zero elsewhere."""
    ends = np.searchsorted(places, n_statistics * np.arange(n_rows + 1))
    columns = places - np.repeat(n_statistics * np.arange(n_rows), np.diff(ends))
    return csr_array((values, columns, ends), shape=(n_rows, n_statistics))


def write_entries(state: MixtureState, slots: Integers, places: Integers, values: Floats) -> None:
    """Replace the statistics at some places of some rows."""
    if state.is_hashed:
        for slot, columns, inside in _by_row(state, slots, places):
            state._write(np.array([slot]), columns, values[inside][None])
        return
    state._cache = None
    state.arrays.table.values[_indices(state, slots, places)] = values


def add_entries(state: MixtureState, slots: Integers, places: Integers, values: Floats) -> None:
    """Add to the statistics at some places of some rows, of which several may have one slot."""
    if state.paired:
        for row, slot in enumerate(slots.tolist()):
            more = values.reshape(slots.size, state.n_statistics)[row]
            now = plus(state.rows(np.array([slot])), np.ones(1), more, paired=True)
            state._write(np.array([slot]), slice(None), now)
        return
    if not state.is_hashed:
        state._cache = None
        add_at(state.arrays.table.values, _indices(state, slots, places), values)
        return
    for slot, columns, inside in _by_row(state, slots, places):
        now = _read(state, slot, columns) + values[inside]
        state._write(np.array([slot]), columns, now[None])


def _read(state: MixtureState, slot: int, columns: Integers) -> Floats:
    if slot >= state.n_clusters:
        return np.zeros(columns.size)
    found: Floats = read_rows(state.arrays.table, np.array([slot]), columns)[0]
    return found


def _ends(state: MixtureState, slots: Integers, places: Integers) -> Integers:
    """Return where in the list the places of every row begin, and where the last row's end."""
    return np.searchsorted(places, state.n_statistics * np.arange(slots.size + 1))


def _indices(state: MixtureState, slots: Integers, places: Integers) -> Integers:
    """Return where a table of dense rows holds places."""
    away = state.n_statistics * (slots - np.arange(slots.size))
    found: Integers = places + np.repeat(away, np.diff(_ends(state, slots, places)))
    return found


def _by_row(
    state: MixtureState, slots: Integers, places: Integers
) -> Iterator[tuple[int, Integers, slice]]:
    """Yield the slot, the columns and the place in the list of every row."""
    ends = _ends(state, slots, places).tolist()
    for row, slot in enumerate(slots.tolist()):
        inside = slice(ends[row], ends[row + 1])
        yield slot, places[inside] - row * state.n_statistics, inside
