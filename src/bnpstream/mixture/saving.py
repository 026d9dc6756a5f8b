"""The posterior, its window and its history as named arrays, and back."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import N_CLUSTERS, Clusters, Sites
from bnpstream.kernels.table import EMPTY, empty_table
from bnpstream.likelihoods import Likelihood
from bnpstream.mixture.lineage import Event
from bnpstream.mixture.rows import dense_rows, write_rows
from bnpstream.mixture.sites import SiteBuffer
from bnpstream.mixture.state import MixtureState
from bnpstream.mixture.window import Window

Arrays = dict[str, NDArray[Any]]
KINDS: tuple[Literal["birth", "merge", "death"], ...] = ("birth", "merge", "death")
NOBODY = -1
"""Stands for no survivor."""


def state_arrays(state: MixtureState) -> Arrays:
    """Return the posterior: of the statistics what is not zero, in order of slot and column."""
    arrays, K = state.arrays, state.n_clusters
    slots, columns, values = _entries(state)
    return {
        "statistics.ends": np.cumsum(np.bincount(slots, minlength=K)),
        "statistics.columns": columns,
        "statistics.values": values,
        "statistics.shape": np.array([K, state.n_statistics]),
        "masses": arrays.masses[:K],
        "log_vacancy": arrays.log_vacancy[:K],
        "ids": arrays.ids[:K],
        "counters": arrays.counters,
        "totals": arrays.totals,
    }


def _entries(state: MixtureState) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[Any]]:
    """Return slot, column and value of every statistic that is not zero, sorted."""
    table, K = state.arrays.table, state.n_clusters
    dense = dense_rows(table)
    if dense is not None:
        slots, columns = np.nonzero((dense[:K] != 0.0) | np.signbit(dense[:K]))
        return slots, columns.astype(np.int64), dense[slots, columns]
    parts = []
    for slot in range(K):
        inside = slice(table.starts[slot], table.starts[slot] + table.sizes[slot])
        keys, values = table.keys[inside], table.values[inside]
        if table.sizes[slot] == state.n_statistics:  # a row that is dense for once
            keys = np.arange(keys.size, dtype=keys.dtype)
        there = np.flatnonzero((keys != EMPTY) & (values != 0.0))
        there = there[np.argsort(keys[there])]
        parts.append((np.full(there.size, slot), keys[there].astype(np.int64), values[there]))
    empty: Any = (np.empty(0, np.intp), np.empty(0, np.int64), np.empty(0))
    found = [np.concatenate(column) for column in zip(empty, *parts, strict=True)]
    return found[0], found[1], found[2]


def state_from(arrays: Arrays, *, paired: bool) -> MixtureState:
    """Return the posterior that `state_arrays` described."""
    K, D = (int(x) for x in arrays["statistics.shape"])
    state = MixtureState(D, paired=paired)
    counters = arrays["counters"].copy()
    while state.arrays.masses.size < K + 2:  # room as if all clusters had been opened one by one
        state.arrays.counters[N_CLUSTERS] = state.arrays.masses.size - 1
        state.make_room()
    table = empty_table(state.arrays.masses.size, D, dense=paired)
    start = 0
    for slot, stop in enumerate(arrays["statistics.ends"].tolist()):
        columns = arrays["statistics.columns"][start:stop]
        values = arrays["statistics.values"][start:stop]
        table = write_rows(table, np.array([slot]), columns, values[None])
        start = stop
    old = state.arrays
    state.arrays = Clusters(
        table, old.masses, old.log_vacancy, old.ids, counters, arrays["totals"].copy()
    )
    state.masses[:] = arrays["masses"]
    state.log_vacancy[:] = arrays["log_vacancy"]
    state.ids[:] = arrays["ids"]
    return state


def window_arrays(window: Window) -> Arrays:
    """Return the window's sites, and its rows if it keeps them."""
    sites = window.sites
    found = {
        "window.indptr": sites.arrays.indptr[: sites.n_visited + 1],
        "window.slots": sites.arrays.slots[: sites.n_entries],
        "window.shares": sites.arrays.shares[: sites.n_entries],
    }
    if window.keep_rows and window.n_rows > 0:
        found |= {f"window.rows.{name}": x for name, x in window.batch().arrays().items()}
    return found


def window_from(arrays: Arrays, likelihood: Likelihood, *, keep_rows: bool) -> Window:
    """Return the window that `window_arrays` described."""
    window, sites = Window(keep_rows=keep_rows), SiteBuffer()
    sites.n_visited = arrays["window.indptr"].size - 1
    sites.arrays = Sites(
        *(arrays[f"window.{name}"].copy() for name in ("indptr", "slots", "shares"))
    )
    prefix = "window.rows."
    rows = {name[len(prefix) :]: x for name, x in arrays.items() if name.startswith(prefix)}
    if rows:
        window.append(likelihood.batch_of(rows), sites)
    else:
        window.sites = sites
    return window


def lineage_arrays(events: Sequence[Event]) -> Arrays:
    """Return births, merges and deaths."""
    into = [NOBODY if event.into is None else event.into for event in events]
    return {
        "lineage.kinds": np.array([KINDS.index(event.kind) for event in events], np.uint8),
        "lineage.ids": np.array([event.id for event in events], np.int64),
        "lineage.into": np.array(into, np.int64),
        "lineage.times": np.array([event.n_observations for event in events], np.int64),
        "lineage.masses": np.array([event.mass for event in events], np.float64),
    }


def lineage_from(arrays: Arrays) -> list[Event]:
    """Return the events that `lineage_arrays` described."""
    names = ("kinds", "ids", "into", "times", "masses")
    columns = (arrays[f"lineage.{name}"].tolist() for name in names)
    return [
        Event(KINDS[kind], id, None if into == NOBODY else into, time, mass)
        for kind, id, into, time, mass in zip(*columns, strict=True)
    ]
