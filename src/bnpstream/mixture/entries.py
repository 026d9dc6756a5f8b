"""What a pass changed in the statistics of a posterior: single entries, written or added.

A pass that only adds rows leaves clusters in their slots and opens new ones after them, so its
effect is a list of entries.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.statistics.table import add_at
from bnpstream.likelihoods import plus
from bnpstream.mixture.state import MixtureState
from bnpstream.mixture.tables import dense_rows, read_rows


def touched_slots(before: MixtureState, after: MixtureState) -> Integers:
    """Return the slots that received rows, including new clusters."""
    K = before.n_clusters
    same = (before.masses == after.masses[:K]) & (before.log_vacancy == after.log_vacancy[:K])
    return np.append(np.flatnonzero(~same), np.arange(K, after.n_clusters)).astype(np.int64)


class Entries(NamedTuple):
    """Entries of some rows of statistics: a place is ``row * D + column``; places ascend."""

    gaps: NDArray[np.unsignedinteger[Any]]
    """Differences of places, in as few bytes as they need, because repeated bytes compress well."""
    values: Floats

    @classmethod
    def of(cls, places: Integers, values: Floats) -> Self:
        """Return entries at places in ascending order."""
        gaps = np.diff(places, prepend=0)
        return cls(gaps.astype(np.min_scalar_type(int(gaps.max(initial=0)))), values)

    @classmethod
    def replaced(cls, before: MixtureState, after: MixtureState, slots: Integers) -> Self:
        """Return what is new in some slots: the values of `after`."""
        places = _changed_places(before, after, slots)
        return cls.of(places, _read_entries(after, slots, places))

    @classmethod
    def added(cls, before: MixtureState, after: MixtureState, slots: Integers) -> Self:
        """Return what was added to some slots: `after` minus `before`."""
        places = _changed_places(before, after, slots)
        old, new = (_read_entries(state, slots, places) for state in (before, after))
        if not after.paired:
            return cls.of(places, new - old)
        shape = (slots.size, after.n_statistics)
        less = plus(new.reshape(shape), -np.ones(slots.size), old.reshape(shape), paired=True)
        return cls.of(places, less.ravel())

    @property
    def places(self) -> Integers:
        """Return the places."""
        return np.cumsum(self.gaps, dtype=np.int64)

    def rows(self, chosen: Integers, n_statistics: int) -> csr_array:
        """Return some rows, zero elsewhere."""
        places, values = self.places, self.values
        parts = [
            slice(*np.searchsorted(places, [row * n_statistics, (row + 1) * n_statistics]))
            for row in chosen.tolist()
        ]
        columns = [
            places[part] - row * n_statistics
            for part, row in zip(parts, chosen.tolist(), strict=True)
        ]
        ends = np.cumsum([0, *map(len, columns)])
        nothing = np.empty(0, np.int64)
        found = np.concatenate([nothing.astype(np.float64), *(values[part] for part in parts)])
        indices = np.concatenate([nothing, *columns])
        return csr_array((found, indices, ends), shape=(chosen.size, n_statistics))

    def write(self, state: MixtureState, slots: Integers) -> None:
        """Replace statistics of a posterior; the rows are its slots."""
        places, values = self.places, self.values
        if state.is_hashed:
            for slot, columns, inside in _by_row(state, slots, places):
                state._write(np.array([slot]), columns, values[inside][None])
            return
        state._cache = None
        state.arrays.table.values[_indices(state, slots, places)] = values

    def add(self, state: MixtureState, slots: Integers) -> None:
        """Add to statistics of a posterior whose masses have grown; rows may share a slot."""
        places, values, cache = self.places, self.values, state._cache
        self._add(state, slots, places, values)
        if cache is not None:
            rows = np.repeat(np.arange(slots.size), np.diff(_ends(state, slots, places)))
            columns = places - state.n_statistics * rows
            state.grow_cache(cache, state.n_clusters, (slots[rows], columns))

    @staticmethod
    def _add(state: MixtureState, slots: Integers, places: Integers, values: Floats) -> None:
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


def _changed_places(before: MixtureState, after: MixtureState, slots: Integers) -> Integers:
    """Return where statistics of some slots of `after` differ, as places in these rows.

    For pairs of doubles, every entry of such a row is given.
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


def _read_entries(state: MixtureState, slots: Integers, places: Integers) -> Floats:
    """Return the statistics at some places of some rows; zero if the slot does not exist yet."""
    table = state.arrays.table
    if table.keys.size == 0:
        n_places = np.diff(_ends(state, slots, places))
        there = np.repeat(slots < state.n_clusters, n_places)
        found = np.zeros(places.size)
        found[there] = table.values[_indices(state, slots, places)[there]]
        return found
    parts = [_read(state, slot, columns) for slot, columns, _ in _by_row(state, slots, places)]
    return np.concatenate([np.empty(0), *parts])


def _read(state: MixtureState, slot: int, columns: Integers) -> Floats:
    if slot >= state.n_clusters:
        return np.zeros(columns.size)
    found: Floats = read_rows(state.arrays.table, np.array([slot]), columns)[0]
    return found


def _ends(state: MixtureState, slots: Integers, places: Integers) -> Integers:
    """Return where in the list the places of each row start, and where the last row ends."""
    return np.searchsorted(places, state.n_statistics * np.arange(slots.size + 1))


def _indices(state: MixtureState, slots: Integers, places: Integers) -> Integers:
    """Return where a table of dense rows stores places."""
    away = state.n_statistics * (slots - np.arange(slots.size))
    return places + np.repeat(away, np.diff(_ends(state, slots, places)))


def _by_row(
    state: MixtureState, slots: Integers, places: Integers
) -> Iterator[tuple[int, Integers, slice]]:
    """Yield the slot, the columns and the position in the list of each row."""
    ends = _ends(state, slots, places).tolist()
    for row, slot in enumerate(slots.tolist()):
        inside = slice(ends[row], ends[row + 1])
        yield slot, places[inside] - row * state.n_statistics, inside
