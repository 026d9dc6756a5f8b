"""Revisits rows at the end of a stream, or when they are given again."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bnpstream.engine.absorption import Absorption
from bnpstream.engine.checks import require_weights, require_whole
from bnpstream.engine.parallel.sweeps import sweep_shards
from bnpstream.inference import ep, window
from bnpstream.mixture.sites import totals

if TYPE_CHECKING:
    from bnpstream.engine.stream import Stream

SAME_ROWS = 1e-6
"""Relative tolerance with which rows given again must add up to the posterior."""


def finishing(stream: "Stream", began: Absorption | None) -> Iterator[Absorption | None]:
    """Revisit the rows in the window, then freeze it, yielding after each step.

    Parameters
    ----------
    stream : Stream
        Running; if it was saved between two steps, it continues from there.
    began : Absorption or None
        Results for rows that had waited; yielded with the first step.
    """
    schedule, kept = stream.schedule, stream.window
    if schedule is None:
        kept.prepare(size=0, keep_rows=False)
        if began is not None:
            yield began
        return
    model, visits = stream.model, stream.visits
    kept.prepare(size=schedule.size, keep_rows=schedule.n_revisits > 0)
    kernel_for = partial(stream.kernel, model)
    last = stream.settings.last_merges(schedule) if model.likelihood.merges_when_done else None
    stages = [schedule] if last is None else [schedule, last]
    sweep = ep.sweep if stream.settings.staleness == 0 else partial(sweep_shards, stream)
    begun, past = stream.progress or (0, window.Progress())
    for stage, plan in enumerate(stages):
        if stage < begun:
            continue
        done = past if stage == begun else window.Progress()
        held = (model, stream.state, kept, visits, plan, kernel_for, done, sweep)
        for outcome in window.finish(*held):
            stream.keep([outcome])
            done = done.after(outcome, plan.tolerance)
            stream.progress = (stage, done)
            yield began
            began = None
    stream.progress = None
    if not stream.settings.keep_sites:
        kept.freeze(kept.n_rows)
    if began is not None:
        yield began


def refine(stream: "Stream", rows: Any, weights: Any, n_sweeps: int) -> None:
    """Revisit all rows of a running stream, given again; ValueError if they differ."""
    state, model, visits, sites = stream.state, stream.model, stream.visits, stream.window.sites
    sweeps, settings = require_whole("n_passes", n_sweeps, 1), stream.settings
    if not (settings.keep_sites and sites.n_visited == state.n_observations):
        raise ValueError("refine needs the sites of all rows: fit with keep_sites=True")
    found = stream.encoder.prepared(rows)
    weighed = require_weights(weights, len(found))
    if weighed is not None:
        places = np.flatnonzero(weighed)
        found = found.chosen(places).weighted(weighed[places])
    if len(found) != sites.n_visited:
        raise ValueError(
            f"refine needs the {sites.n_visited} rows absorbed so far, in order; got {len(found)}"
        )
    batch, fading = stream.encoder.view(found), stream.window.fading
    if fading is not None:
        if (fading < visits.least_mass).any():
            raise ValueError(
                f"refine: {int((fading < visits.least_mass).sum())} rows now count for less than "
                f"prune_threshold, {visits.least_mass:g}, and could not be clusters: give a longer "
                "half_life, or revisit=... to revisit only the last rows"
            )
        batch = batch.weighted(batch.row_weights * fading)
    again = totals(sites, batch, state.n_clusters)[0]
    if state.distance(again) > SAME_ROWS * (1.0 + np.abs(again).max()):
        raise ValueError(
            "refine needs the rows absorbed so far, in order and with the same weights; these "
            "are different"
        )
    revisits = window.Schedule(None, sweeps, settings.tol, settings.merge_odds, settings.split_odds)
    kernel_for, held = partial(stream.kernel, model), (sites, batch, fading)
    stream.epochs = []
    stream.keep(window.revisit(model, state, *held, visits, revisits, kernel_for))
