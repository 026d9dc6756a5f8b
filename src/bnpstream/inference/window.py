"""One loop with a window: ADF if it holds nothing, EP if it holds everything.

New rows are visited once as they come and enter the window. When it is full, all its rows are
revisited and the older half is frozen. Everything happens at row counts, never at the end of a
call, so nothing depends on how the stream was split into batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bnpstream.inference import ep
from bnpstream.inference.forgetting import Ticks
from bnpstream.inference.merge import merge_all
from bnpstream.inference.response import Settings
from bnpstream.inference.split import split_all
from bnpstream.inference.visits import KernelFor, Record, visit
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch
from bnpstream.mixture import Event, MixtureState, Model, SiteBuffer
from bnpstream.mixture.window import Window


@dataclass(frozen=True)
class Schedule:
    """When rows are revisited, and clusters merged and split.

    Parameters
    ----------
    size : int or None
        Rows in the window; None for all.
    n_revisits : int
        Sweeps over the window before its older half is frozen.
    tolerance : float
        Sweeps stop early when responsibilities change by no more than this on average.
    merge_threshold : float or None
        Log odds that a merge must exceed; None never merges.
    split_threshold : float or None
        Log odds that a split must exceed; None never splits.
    """

    size: int | None
    n_revisits: int
    tolerance: float = 0.0
    merge_threshold: float | None = None
    split_threshold: float | None = None


class Merges(NamedTuple):
    """Clusters merged at one time."""

    events: list[Event]


class Splits(NamedTuple):
    """Clusters split at one time."""

    events: list[Event]


class Settled(NamedTuple):
    """Clusters opened, merged, split and emptied while the first rows of a stream were settled."""

    events: list[Event]


class Progress(NamedTuple):
    """How much of a revisit is done."""

    n_merges: int = 0
    n_sweeps: int = 0
    settled: bool = False
    """Whether the last sweep changed nothing."""
    split: tuple[tuple[int, ...], ...] | None = None
    """Ids of clusters that were one before this revisit; None before splits were tried."""

    def after(self, outcome: "Outcome", tolerance: float) -> "Progress":
        """Return the progress after one more outcome."""
        if isinstance(outcome, Merges):
            return self._replace(n_merges=self.n_merges + 1)
        if isinstance(outcome, Splits):
            return self._replace(split=tuple(event.children for event in outcome.events))
        if isinstance(outcome, ep.Epoch):
            settled = outcome.settled(tolerance)
            return self._replace(n_sweeps=self.n_sweeps + 1, settled=settled)
        return self


Outcome = Record | ep.Epoch | Merges | Splits | Settled


def run(
    model: Model,
    state: MixtureState,
    window: Window,
    batch: Batch,
    settings: Settings,
    schedule: Schedule,
    kernel_for: KernelFor,
    ticks: Ticks | None = None,
) -> Iterator[Outcome]:
    """Absorb the rows of a batch in order, revisiting whenever the window is full.

    Parameters
    ----------
    model, state, batch, settings
        As in `visit`.
    window : Window
        The last rows before these; changed in place.
    schedule : Schedule
        When to revisit and merge.
    kernel_for : callable
        Batch -> KernelArguments for the compiled engine, or None for the reference.
    ticks : Ticks, optional
        When earlier rows fade.

    Yields
    ------
    outcome : Record, Epoch, Merges or Splits
        For new rows, a sweep, merges, or splits.
    """
    start = 0
    while start < len(batch):
        # A full window is swept when the next row comes; with size >= n that never happens.
        while schedule.size is not None and window.n_rows >= schedule.size:
            yield from finish(model, state, window, settings, schedule, kernel_for)
            window.freeze(_frozen(schedule, window.n_rows))
        room = len(batch) if schedule.size is None else schedule.size - window.n_rows
        retired: list[Event] = []
        if ticks is not None:
            retired = ticks.before(start, model, state, settings, window)
            room = min(room, ticks.room(start))
        part = batch.part(start, start + room)
        sites = SiteBuffer(len(part))
        try:
            visited = (model, state, part, SiteBuffer(), sites, settings, kernel_for(part))
            for record in visit(*visited, others=[window.sites]):
                yield record._replace(events=retired + record.events)
                retired = []
        finally:  # after an interrupt, visited rows are in the window
            window.append(part.part(0, sites.n_visited), sites)
        start += len(part)


def _frozen(schedule: Schedule, rows: int) -> int:
    """Return how many rows a full window releases: half, or all if none is ever revisited."""
    return rows if schedule.n_revisits == 0 else (rows + 1) // 2


def finish(
    model: Model,
    state: MixtureState,
    window: Window,
    settings: Settings,
    schedule: Schedule,
    kernel_for: KernelFor,
    past: Progress | None = None,
    sweep: ep.Sweep = ep.sweep,
) -> Iterator[Outcome]:
    """Merge and sweep the rows in the window, as when it is full.

    Given the progress of an interrupted call, it continues from there.
    """
    if window.n_rows > 0:
        batch = window.batch() if schedule.n_revisits > 0 else None
        held = (window.sites, batch, window.fading)
        yield from revisit(model, state, *held, settings, schedule, kernel_for, past, sweep)


def revisit(
    model: Model,
    state: MixtureState,
    sites: SiteBuffer,
    batch: Batch | None,
    fading: Floats | None,
    settings: Settings,
    schedule: Schedule,
    kernel_for: KernelFor,
    past: Progress | None = None,
    sweep: ep.Sweep = ep.sweep,
) -> Iterator[Outcome]:
    """Merge, split, sweep the rows, and merge once more.

    Clusters that were just split are not merged in the same revisit. Steps in `past` are already
    done. `fading` is the weight of each row after forgetting, which the batch includes.
    """
    past = past or Progress()
    merging = schedule.merge_threshold
    if merging is not None and past.n_merges == 0:
        yield Merges(merge_all(model, state, sites, merging, fading))
    if batch is None:
        return
    if schedule.split_threshold is not None and past.split is None:
        splitting = (schedule.split_threshold, settings, kernel_for)
        splits = Splits(split_all(model, state, batch, sites, *splitting))
        past = past.after(splits, schedule.tolerance)
        yield splits
    if not past.settled:
        yield from ep.run(
            model,
            state,
            batch,
            sites,
            settings,
            kernel_for(batch),
            n_sweeps=schedule.n_revisits - past.n_sweeps,
            tolerance=schedule.tolerance,
            sweep=sweep,
        )
    if merging is not None and past.n_merges < 2:
        apart = {"apart": past.split} if past.split else {}
        yield Merges(merge_all(model, state, sites, merging, fading, **apart))
