"""The posterior, its window and its history as named arrays, and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import GONE, N_CLUSTERS, NEXT_ID, Clusters, Sites
from bnpstream.kernels.statistics.table import empty_table
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.mixture.contributions import Contributions
from bnpstream.mixture.lineage import KINDS, LEVELS, Event
from bnpstream.mixture.saved import MOST, require, require_ends, require_numbers, rows_from
from bnpstream.mixture.sites import SiteBuffer
from bnpstream.mixture.state import MixtureState
from bnpstream.mixture.tables import dense_rows, write_rows
from bnpstream.mixture.window import Window

Arrays = dict[str, NDArray[Any]]
NOBODY = -1
"""Stands for no survivor."""


def state_arrays(state: MixtureState) -> Arrays:
    """Return the posterior: nonzero statistics, in order of slot and column."""
    arrays, K, dense = state.arrays, state.n_clusters, dense_rows(state.arrays.table)
    if dense is None:
        rows: Any = state.sparse_rows(np.arange(K))
        ends, columns, values = rows.indptr[1:], rows.indices, rows.data
    else:
        slots, columns = np.nonzero((dense[:K] != 0.0) | np.signbit(dense[:K]))
        ends, values = np.cumsum(np.bincount(slots, minlength=K)), dense[slots, columns]
    return {
        "statistics.ends": ends.astype(np.int64),
        "statistics.columns": columns.astype(np.int64),
        "statistics.values": values,
        "statistics.shape": np.array([K, state.n_statistics]),
        "masses": arrays.masses[:K],
        "log_vacancy": arrays.log_vacancy[:K],
        "ids": arrays.ids[:K],
        "counters": arrays.counters,
        "totals": arrays.totals,
    }


def state_from(arrays: Arrays, *, paired: bool) -> MixtureState:
    """Return the posterior that `state_arrays` described; ValueError if it is not valid."""
    K, D = (int(x) for x in arrays["statistics.shape"])
    _check_state(arrays, K, D)
    state = MixtureState(D, paired=paired)
    counters = arrays["counters"].copy()
    while state.arrays.masses.size < K + 2:  # as if all clusters had been opened one by one
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


def _check_state(arrays: Arrays, K: int, D: int) -> None:
    """Raise ValueError for arrays that must not reach compiled loops, which check nothing."""
    for name in ("masses", "log_vacancy", "ids", "statistics.ends"):
        require(name, arrays[name].shape == (K,))
    for name in ("counters", "totals"):
        require(name, arrays[name].shape == (3,))
    for name in ("masses", "log_vacancy", "totals", "statistics.values"):
        require(name, arrays[name].dtype == np.float64)
    for name in ("counters", "ids", "statistics.ends", "statistics.columns"):
        require(name, arrays[name].dtype == np.int64)
    require_numbers("masses", arrays["masses"], (K,), 0.0)
    require("masses", arrays["masses"].sum() <= MOST)
    require("log_vacancy", (arrays["log_vacancy"] <= 1.0).all())  # a log probability, rounded
    totals = arrays["totals"]  # there is no log U before the first row
    require("totals", 0.0 <= totals[0] <= MOST and not np.isposinf(totals).any())
    counters, ids = arrays["counters"], arrays["ids"]
    require("counters", (counters < MOST).all())
    require("counters", counters[N_CLUSTERS] == K and (counters >= 0).all())
    inside = (ids >= 0) & (ids < counters[NEXT_ID])
    require("ids", inside.all() and np.unique(ids).size == K)
    columns, values = arrays["statistics.columns"], arrays["statistics.values"]
    require("statistics.columns", ((columns >= 0) & (columns < D)).all())
    require("statistics.values", values.shape == columns.shape and np.isfinite(values).all())
    require_ends("statistics.ends", np.append(0, arrays["statistics.ends"]), columns.size)


def window_arrays(window: Window) -> Arrays:
    """Return the window's sites, and its rows if it keeps them."""
    sites = window.sites
    found = {
        "window.indptr": sites.arrays.indptr[: sites.n_visited + 1],
        "window.slots": sites.arrays.slots[: sites.n_entries],
        "window.shares": sites.arrays.shares[: sites.n_entries],
    }
    if sites.contributions is not None:
        found["window.contributions.indptr"] = sites.contributions.indptr
        found["window.contributions.values"] = sites.contributions.values
    if window.keep_rows and window.n_rows > 0:
        found |= {f"window.rows.{name}": x for name, x in window.rows().arrays().items()}
    if (fading := window.fading) is not None:
        found["window.fading"] = fading
    return found


def window_from(
    arrays: Arrays, likelihood: Likelihood, state: MixtureState, *, keep_rows: bool
) -> Window:
    """Return the window of a posterior that `window_arrays` described; ValueError as above."""
    window, sites = Window(keep_rows=keep_rows), SiteBuffer()
    slots, shares = arrays["window.slots"], arrays["window.shares"]
    require_ends("window.indptr", arrays["window.indptr"], slots.size)
    require("window.slots", slots.dtype == np.int64 and slots.ndim == 1)
    there = (slots >= 0) & (slots < state.n_clusters)
    require("window.slots", (there | (slots == GONE)).all())
    require("window.shares", shares.dtype == np.float64 and shares.shape == slots.shape)
    require("window.shares", ((shares >= 0.0) & (shares <= 1.0 + 1e-6)).all())
    sites.n_visited = arrays["window.indptr"].size - 1
    sites.arrays = Sites(
        *(arrays[f"window.{name}"].copy() for name in ("indptr", "slots", "shares"))
    )
    if "window.contributions.values" in arrays:
        sites.contributions = _contributions_from(arrays, sites)
    if any(name.startswith("window.rows.") for name in arrays):
        batch = rows_from(arrays, "window.rows.", likelihood, state.n_statistics)
        require("window.rows", len(batch) == sites.n_visited)
        require("window.contributions.values", _fit(sites, batch))
        window.append(batch, sites)
    else:
        window.sites = sites
    if "window.fading" in arrays:
        fading = arrays["window.fading"]
        require("window.fading", fading.dtype == np.float64 and fading.shape == (window.n_rows,))
        require("window.fading", ((fading > 0.0) & (fading <= 1.0)).all())
        window.set_fading(fading)
    return window


def _fit(sites: SiteBuffer, batch: Batch) -> bool:
    """Return whether sites have added as many values as rows have, if they keep them."""
    if sites.contributions is None:
        return True
    n_clusters, n_values = (np.diff(x) for x in (sites.arrays.indptr, sites.contributions.indptr))
    columns = [batch.row(i).values.size for i in range(len(batch))]
    return bool((n_values == n_clusters * columns).all())


def _contributions_from(arrays: Arrays, sites: SiteBuffer) -> Contributions:
    """Return what the rows of a window have added; ValueError as above."""
    indptr, values = (arrays[f"window.contributions.{name}"] for name in ("indptr", "values"))
    require_ends("window.contributions.indptr", indptr, values.size)
    require("window.contributions.indptr", indptr.size == sites.n_visited + 1)
    n_clusters, n_values = np.diff(sites.arrays.indptr), np.diff(indptr)
    whole = n_values == n_clusters * (n_values // np.maximum(n_clusters, 1))
    require("window.contributions.indptr", whole.all())
    require("window.contributions.values", values.dtype == np.float64)
    require("window.contributions.values", np.isfinite(values).all())
    return Contributions(indptr.copy(), values.copy())


def lineage_arrays(events: Sequence[Event]) -> Arrays:
    """Return the events; further heirs and levels only if there are any."""
    found: Arrays = {}
    if any(event.others for event in events):
        found["lineage.others"] = np.array([x for e in events for x in e.others], np.int64)
        found["lineage.heirs"] = np.array([len(event.others) for event in events], np.int64)
    if any(event.level != "cluster" for event in events):
        found["lineage.levels"] = np.array([LEVELS.index(e.level) for e in events], np.uint8)
    into = [NOBODY if event.into is None else event.into for event in events]
    return {
        "lineage.kinds": np.array([KINDS.index(event.kind) for event in events], np.uint8),
        "lineage.ids": np.array([event.id for event in events], np.int64),
        "lineage.into": np.array(into, np.int64),
        "lineage.times": np.array([event.n_observations for event in events], np.int64),
        "lineage.masses": np.array([event.mass for event in events], np.float64),
        **found,
    }


def lineage_from(arrays: Arrays) -> list[Event]:
    """Return the events that `lineage_arrays` described."""
    names = ("kinds", "ids", "into", "times", "masses")
    for name, array in arrays.items():
        if name.startswith("lineage."):
            require(name, array.ndim == 1 and (array.dtype.kind in "iu") != name.endswith("masses"))
    columns = [arrays[f"lineage.{name}"].tolist() for name in names]
    n = len(columns[0])
    ends = np.cumsum(arrays.get("lineage.heirs", np.zeros(n, np.int64))).tolist()
    others = arrays.get("lineage.others", np.empty(0, np.int64)).tolist()
    require("lineage.heirs", len(others) == (ends[-1] if ends else 0))
    levels = arrays.get("lineage.levels", np.zeros(n, np.uint8)).tolist()
    heirs = (tuple(others[start:end]) for start, end in zip([0, *ends], ends, strict=False))
    return [
        Event(KINDS[kind], id, None if into == NOBODY else into, time, mass, rest, LEVELS[level])
        for kind, id, into, time, mass, rest, level in zip(*columns, heirs, levels, strict=True)
    ]
