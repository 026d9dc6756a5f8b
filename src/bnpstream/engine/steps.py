"""Absorbs rows of a stream one after the other, and stops where something else is due.

Parameters are learnt and topics are found at fixed row counts, and new columns are added after the
rows that introduce them, so any split of the same rows into calls gives the same bits.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bnpstream.engine.opening import opening, settle_first
from bnpstream.inference import adf, window
from bnpstream.inference.forgetting import Clock, Ticks
from bnpstream.inference.visits import Record
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch
from bnpstream.mixture.interrupts import heed

if TYPE_CHECKING:
    from bnpstream.engine.stream import Stream

HEED_ROWS = 1024
"""Most rows between two checks for interrupts: often enough for a person."""


def steps(
    stream: "Stream",
    part: Callable[[int, int], Batch],
    room: Callable[[int], int],
    n: int,
    ticks: Ticks | None,
) -> Iterator[window.Outcome]:
    """Absorb rows; stop where something is learnt, or where columns are added.

    Parameters
    ----------
    stream : Stream
        Running.
    part : callable
        Returns rows start..stop-1, encoded.
    room : callable
        Returns the number of rows from one on before columns change.
    n : int
        Number of rows.
    ticks : Ticks or None
        When earlier rows fade.
    """
    start, learner, encoder, state = 0, stream.learner, stream.encoder, stream.state
    while start < n:
        stream.find_topics_in_time()
        if state.n_observations >= stream.n_together:
            heed()  # as between two calls
        stop = min(start + min(room(start), HEED_ROWS), n)
        if learner is not None:
            n_seen = state.n_observations
            stop = min(stop, start + learner.room(n_seen))
        stop = min(stop, start + stream.finder.n_next - state.n_observations)
        batch, is_first = part(start, stop), opening(stream) is not None
        if learner is not None and n_seen >= learner.n_next - learner.n_probe:
            learner.watch(stream.trial, stream.model, batch, state)
        outcomes = _outcomes(stream, batch, None if ticks is None else ticks.part(start, stop))
        yield from _noted(stream, batch, outcomes)
        start = stop
        if learner is not None and state.n_observations >= learner.n_next:
            if is_first:
                yield settle_first(stream)
            better = learner.again(stream.trial, stream.model, state)
            if better is not None:
                stream.adopt(better.prior, better.likelihood, stream.learner)
        encoder.grow(state, stream.window)
    stream.find_topics_in_time()


def _noted(
    stream: "Stream", batch: Batch, outcomes: Iterable[window.Outcome]
) -> Iterator[window.Outcome]:
    """Yield outcomes; a sample of absorbed rows may be kept for finding topics."""
    if stream.settings.max_memory is not None or not stream.likelihood.keeps_rows:
        yield from outcomes
        return
    ids: list[Any] = []
    try:
        for outcome in outcomes:
            if isinstance(outcome, Record):
                ids.append(outcome.rows.ids)
            yield outcome
    finally:
        if ids:
            forgets = stream.settings.half_life is not None
            stream.finder.memory.add(batch, np.concatenate(ids), forgets)


def _outcomes(stream: "Stream", batch: Batch, ticks: Ticks | None) -> Iterable[window.Outcome]:
    """Absorb rows by the schedule."""
    model, schedule = stream.model, stream.schedule or opening(stream)
    if schedule is None:
        stream.window.prepare(size=0, keep_rows=False)
        kernel = stream.kernel(model, batch)
        return adf.run(model, stream.state, batch, stream.visits, kernel, ticks)
    stream.window.prepare(size=schedule.size, keep_rows=schedule.n_revisits > 0)
    posterior = (model, stream.state, stream.window)
    kernel_for = partial(stream.kernel, model)
    return window.run(*posterior, batch, stream.visits, schedule, kernel_for, ticks)


def clock_ticks(stream: "Stream", n_rows: int, stamps: Floats | None) -> Ticks | None:
    """Return when earlier rows fade while these arrive, or None if nothing is forgotten."""
    if stream.settings.half_life is None:
        stream.clock = None
        return None
    by_time, half_life = stamps is not None, float(stream.settings.half_life)
    n_before, clock = stream.state.n_observations, stream.clock
    if clock is None or clock.half_life != half_life:  # changed: restart the ticks
        origin = float(n_before) if stamps is None else float(stamps[0])
        clock = stream.clock = Clock(half_life, by_time, origin, stream.ticks_per_half_life)
    return clock.ticks(n_before, n_rows, stamps)
