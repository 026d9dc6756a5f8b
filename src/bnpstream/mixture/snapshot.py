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
from bnpstream.mixture.sites import SiteBuffer
from bnpstream.mixture.state import MixtureState
from bnpstream.mixture.tables import dense_rows, write_rows
from bnpstream.mixture.window import Window

Arrays = dict[str, NDArray[Any]]
NOBODY = -1
"""Stands for no survivor."""


def state_arrays(state: MixtureState) -> Arrays:
    """Return the posterior: of the statistics what is not zero, in order of slot and column."""
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
    """Return the posterior that `state_arrays` described; ValueError if it cannot be one."""
    K, D = (int(x) for x in arrays["statistics.shape"])
    _check_state(arrays, K, D)
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


def _check_state(arrays: Arrays, K: int, D: int) -> None:
    """Raise ValueError for arrays that compiled loops, which check nothing, must not be given."""
    for name in ("masses", "log_vacancy", "ids", "statistics.ends"):
        _require(name, arrays[name].shape == (K,))
    for name in ("counters", "totals"):
        _require(name, arrays[name].shape == (3,))
    for name in ("masses", "log_vacancy", "totals", "statistics.values"):
        _require(name, arrays[name].dtype == np.float64)
    for name in ("counters", "ids", "statistics.ends", "statistics.columns"):
        _require(name, arrays[name].dtype == np.int64)
    _require(
        "masses", bool((arrays["masses"] >= 0.0).all()) and np.isfinite(arrays["masses"]).all()
    )
    counters, ids = arrays["counters"], arrays["ids"]
    _require("counters", counters[N_CLUSTERS] == K and (counters >= 0).all())
    inside = (ids >= 0) & (ids < counters[NEXT_ID])
    _require("ids", inside.all() and np.unique(ids).size == K)
    columns, values = arrays["statistics.columns"], arrays["statistics.values"]
    _require("statistics.columns", ((columns >= 0) & (columns < D)).all())
    _require("statistics.values", values.shape == columns.shape and np.isfinite(values).all())
    _check_ends("statistics.ends", np.append(0, arrays["statistics.ends"]), columns.size)


def _check_ends(name: str, ends: NDArray[Any], size: int) -> None:
    """Raise ValueError if these are not the ends of rows that lie one after the other."""
    _require(name, ends.dtype.kind == "i" and ends.ndim == 1 and ends.size > 0)
    _require(name, ends[0] == 0 and ends[-1] == size and (np.diff(ends) >= 0).all())


def _require(name: str, holds: bool | np.bool_) -> None:
    if not holds:
        raise ValueError(f"the array {name} cannot be what was saved")


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
    _check_ends("window.indptr", arrays["window.indptr"], slots.size)
    _require("window.slots", slots.dtype == np.int64 and slots.ndim == 1)
    there = (slots >= 0) & (slots < state.n_clusters)
    _require("window.slots", (there | (slots == GONE)).all())
    _require("window.shares", shares.dtype == np.float64 and shares.shape == slots.shape)
    _require("window.shares", (np.isfinite(shares) & (shares >= 0.0)).all())
    sites.n_visited = arrays["window.indptr"].size - 1
    sites.arrays = Sites(
        *(arrays[f"window.{name}"].copy() for name in ("indptr", "slots", "shares"))
    )
    if "window.contributions.values" in arrays:
        sites.contributions = _contributions_from(arrays, sites)
    prefix = "window.rows."
    rows = {name[len(prefix) :]: x for name, x in arrays.items() if name.startswith(prefix)}
    if rows:
        for name in {"log_base", "weights"} & rows.keys():
            found = rows[name]
            _require(prefix + name, found.shape == (sites.n_visited,) and found.dtype == np.float64)
        for name in {"indices", "columns"} & rows.keys():
            places = rows[name]
            _check_ends(prefix + "indptr", rows["indptr"], places.size)
            _require(prefix + name, ((places >= 0) & (places < state.n_statistics)).all())
        batch = likelihood.batch_of(rows)
        _require("window.rows", len(batch) == sites.n_visited)
        _require("window.rows", batch.n_statistics == state.n_statistics)
        _require("window.contributions.values", _fit(sites, batch))
        window.append(batch, sites)
    else:
        window.sites = sites
    if "window.fading" in arrays:
        fading = arrays["window.fading"]
        _require("window.fading", fading.dtype == np.float64 and fading.shape == (window.n_rows,))
        _require("window.fading", ((fading > 0.0) & (fading <= 1.0)).all())
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
    _check_ends("window.contributions.indptr", indptr, values.size)
    _require("window.contributions.indptr", indptr.size == sites.n_visited + 1)
    n_clusters, n_values = np.diff(sites.arrays.indptr), np.diff(indptr)
    whole = n_values == n_clusters * (n_values // np.maximum(n_clusters, 1))
    _require("window.contributions.indptr", whole.all())
    _require("window.contributions.values", values.dtype == np.float64)
    _require("window.contributions.values", np.isfinite(values).all())
    return Contributions(indptr.copy(), values.copy())


def lineage_arrays(events: Sequence[Event]) -> Arrays:
    """Return the events; further heirs and levels only where there are any."""
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
    columns = [arrays[f"lineage.{name}"].tolist() for name in names]
    n = len(columns[0])
    ends = np.cumsum(arrays.get("lineage.heirs", np.zeros(n, np.int64))).tolist()
    others = arrays.get("lineage.others", np.empty(0, np.int64)).tolist()
    levels = arrays.get("lineage.levels", np.zeros(n, np.uint8)).tolist()
    heirs = (tuple(others[start:end]) for start, end in zip([0, *ends], ends, strict=False))
    return [
        Event(KINDS[kind], id, None if into == NOBODY else into, time, mass, rest, LEVELS[level])
        for kind, id, into, time, mass, rest, level in zip(*columns, heirs, levels, strict=True)
    ]
