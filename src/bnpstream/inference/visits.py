"""Visits rows in order: one loop for ADF, EP and the window.

Compiled twin: ``kernels.passes.visits``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from bnpstream.inference.budget import keep_within
from bnpstream.inference.response import Settings, respond
from bnpstream.kernels.arrays import (
    GONE,
    IS_OUT,
    MORE_LINES,
    NEXT_ROW,
    Events,
    Floats,
    Integers,
    Sites,
    Trace,
)
from bnpstream.kernels.passes import visits as compiled
from bnpstream.likelihoods import Batch, Row
from bnpstream.mixture import Event, KernelArguments, MixtureState, Model, SiteBuffer
from bnpstream.mixture.contributions import Contributions
from bnpstream.mixture.lineage import read_events

KernelFor = Callable[[Batch], KernelArguments | None]
RECORD_ROWS = 512
"""Rows between two records: often enough for a progress bar, rare enough to cost nothing."""


class Responsibilities(NamedTuple):
    """Sparse responsibilities of some rows, with clusters by id."""

    indptr: Integers
    """(n + 1,): where each row starts."""
    ids: Integers
    shares: Floats
    contributions: Contributions | None = None
    """What the rows have added, if that depends on the cluster and they will be revisited."""

    @classmethod
    def joined(cls, parts: Sequence["Responsibilities"]) -> "Responsibilities":
        """Return those of several blocks of rows, in order."""
        lengths = [np.diff(part.indptr) for part in parts]
        indptr = np.append(0, np.cumsum(np.concatenate(lengths)))
        return cls(
            indptr,
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.shares for part in parts]),
            Contributions.joined(part.contributions for part in parts),
        )

    @classmethod
    def of(
        cls,
        state: MixtureState,
        sites: SiteBuffer,
        start: int,
        stop: int,
        *,
        contributions: bool = True,
    ) -> "Responsibilities":
        """Return sites start..stop-1 with the ids of their clusters, -1 for clusters that are gone.

        What the rows have added is included if it is kept, and wanted.
        """
        indptr, slots, shares = sites.arrays
        first, last = int(indptr[start]), int(indptr[stop])
        slots = slots[first:last]
        ids = state.arrays.ids[slots]
        ids[slots == GONE] = GONE
        kept = sites.contributions if contributions else None
        lines = None if kept is None else kept.part(start, stop)
        return cls(indptr[start : stop + 1] - first, ids, shares[first:last].copy(), lines)

    def sites(self, state: MixtureState) -> SiteBuffer:
        """Return the sites with the slots of their clusters in a posterior."""
        buffer = SiteBuffer()
        buffer.n_visited = self.indptr.size - 1
        slots = slots_of(state, self.ids)
        buffer.arrays = Sites(self.indptr.copy(), slots, self.shares.copy())
        if self.contributions is not None:
            buffer.contributions = self.contributions.part(0, buffer.n_visited)
        return buffer

    def part(self, start: int) -> "Responsibilities":
        """Return those of the rows from `start` on."""
        first, n = self.indptr[start], self.indptr.size - 1
        kept = self.contributions
        return Responsibilities(
            self.indptr[start:] - first,
            self.ids[first:],
            self.shares[first:],
            None if kept is None else kept.part(start, n),
        )

    def ranked(self) -> "Responsibilities":
        """Return the same with the largest share of each row first."""
        rows = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
        order = np.lexsort((-self.shares, rows))
        return Responsibilities(self.indptr, self.ids[order], self.shares[order])


class Record(NamedTuple):
    """What happened to some rows in order."""

    n_observations: int
    """Rows seen after the last of them."""
    rows: Trace
    """Log evidence, clusters, most likely cluster and change of each row."""
    events: list[Event]
    """Events of clusters meanwhile."""
    responsibilities: Responsibilities
    """Responsibilities of each row, clusters by id; for a first visit, as the rows arrived."""


class Absorbed(NamedTuple):
    """Results for rows when they were absorbed."""

    rows: Trace
    responsibilities: Responsibilities

    def part(self, start: int) -> "Absorbed":
        """Return the results for the rows from `start` on."""
        rows = self.rows.part(start, self.rows.ids.size)
        return Absorbed(rows, self.responsibilities.part(start))

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Absorbed":
        """Return the results in records."""
        if len(records) == 1:
            return cls(records[0].rows, records[0].responsibilities)
        return cls.joined([cls(record.rows, record.responsibilities) for record in records])

    @classmethod
    def joined(cls, parts: Sequence["Absorbed"]) -> "Absorbed":
        """Return the results for several blocks of rows, in order."""
        columns = zip(*(part.rows for part in parts), strict=True)
        return cls(
            Trace._make(np.concatenate(column) for column in columns),
            Responsibilities.joined([part.responsibilities for part in parts]),
        )


def visit(
    model: Model,
    state: MixtureState,
    batch: Batch,
    old: SiteBuffer,
    new: SiteBuffer,
    settings: Settings,
    kernel: KernelArguments | None,
    *,
    keep_sites: bool = True,
    pauses: Integers | None = None,
    others: Sequence[SiteBuffer] = (),
) -> Iterator[Record]:
    """Visit the rows of a batch that have no site in `new`, yielding a record now and then.

    Parameters
    ----------
    model : Model
        Prior and likelihood.
    state : MixtureState
        The posterior; changed in place.
    batch : Batch
        Encoded rows.
    old : SiteBuffer
        What the rows contributed at their last visit; a row without a site is visited for the
        first time. Its entries follow the clusters that are dropped meanwhile.
    new : SiteBuffer
        Receives the sites; row i of the batch is site i.
    settings : Settings
        New-cluster threshold, cut and pruning.
    kernel : KernelArguments or None
        From `Model.kernel_arguments` for the compiled engine; None for the reference. Both
        make the same decisions from the same state.
    keep_sites : bool
        Whether `new` is needed afterwards.
    pauses : ndarray, optional
        Rows, ascending, before which a record ends, so that the caller can change the posterior.
    others : sequence of SiteBuffer
        Sites of other rows, which follow the clusters that are merged or retired meanwhile.
    """
    n = len(batch)
    old.make_room(n, 0)
    old.arrays.indptr[old.n_visited + 1 :] = old.n_entries  # the rest has no site yet
    new.make_room(n, 0)
    trace = Trace.empty(n)
    while (start := new.n_visited) < n:
        stop = min(start + RECORD_ROWS, n)
        if pauses is not None:
            later = pauses[np.searchsorted(pauses, start, side="right") :]
            stop = min(stop, int(later[0])) if later.size > 0 else stop
        if kernel is None:
            events = [
                event
                for i in range(start, stop)
                for event in (
                    *keep_within(settings.budget, model, state, (old, new, *others)),
                    *_visit_row(model, state, batch, i, old, new, settings, trace),
                )
            ]
        else:
            events = _visit_compiled(
                model, state, batch, stop, old, new, others, settings, kernel, trace, keep_sites
            )
        shares = Responsibilities.of(state, new, start, stop, contributions=False)
        if not keep_sites:
            new.discard(start)
        rows = trace if stop - start == n else trace.part(start, stop)
        yield Record(state.n_observations, rows, events, shares)


def slots_of(state: MixtureState, ids: Integers) -> Integers:
    """Return the slots of clusters given by id, -1 for clusters that are gone."""
    order = np.argsort(state.ids)
    known = state.ids[order]
    places = np.minimum(np.searchsorted(known, ids), known.size - 1)
    return np.where(known[places] == ids, order[places], GONE)


def _visit_row(
    model: Model,
    state: MixtureState,
    batch: Batch,
    i: int,
    old: SiteBuffer,
    new: SiteBuffer,
    settings: Settings,
    trace: Trace,
) -> Iterator[Event]:
    """Take row i out if it is in, respond, put it in, drop clusters that are too light."""
    row = batch.row(i)
    slots, shares = old.row(i)
    present = slots != GONE
    before = old.added(i, row)
    state.take_out(slots[present], shares[present], before)
    response = respond(model, state, row, settings)
    q, opens = response.responsibilities, response.opens
    home = _home(state, slots[present], shares[present], settings.dead_mass(model))
    if opens and home is not None:  # a singleton reborn keeps its slot and id
        q[home] += q[-1]
        q, opens = q[:-1], False
    if opens:
        state.open()
    chosen, lines = np.flatnonzero(q), None
    moved_away = np.abs(q[slots[present]] - shares[present]) - q[slots[present]]
    trace.change[i] = 0.5 * (1.0 + moved_away.sum() + shares[~present].sum())
    if model.likelihood.latent:
        lines = model.likelihood.contributions(state.candidates, row, chosen)
        row = row._replace(values=lines)
        moved = _share_moved(slots[present], shares[present], before, chosen, q[chosen], row)
        trace.change[i] = max(trace.change[i], moved)
    state.add(q, row)
    state.auxiliary = response.auxiliary
    if slots.size == 0:
        state.count_row(row.weight * response.log_evidence)
    if opens:
        yield _event("birth", state, state.n_clusters - 1)
    new.append(chosen, q[chosen], lines)
    trace.log_evidence[i] = response.log_evidence
    trace.ids[i] = state.ids[np.argmax(q)]
    trace.shares[i] = q.max()
    trace.novelty[i] = response.novelty
    yield from _drop_light(state, slots, old, new, settings.least_mass)
    trace.n_clusters[i] = state.n_clusters


def _share_moved(
    slots: Integers, shares: Floats, before: Row, chosen: Integers, q: Floats, now: Row
) -> float:
    """Return how much of what a row adds, before and now, has moved; 0 if it adds nothing.

    If it adds t(x) to every cluster, that is half the summed change of its responsibilities.
    """
    gone, come = shares[:, None] * before.values, q[:, None] * now.values
    total = np.abs(gone).sum() + np.abs(come).sum()
    if shares.size == 0 or total == 0.0:
        return 0.0
    _, one, other = np.intersect1d(slots, chosen, return_indices=True)
    stayed = np.abs(gone[one]) + np.abs(come[other]) - np.abs(gone[one] - come[other])
    return float(1.0 - stayed.sum() / total)


def _home(state: MixtureState, slots: Integers, shares: Floats, dead_mass: float) -> int | None:
    """Return the heaviest cluster that would not exist without the row, or None."""
    dead = state.masses[slots] <= dead_mass
    if not dead.any():
        return None
    return int(slots[np.argmax(np.where(dead, shares, -1.0))])


def _drop_light(
    state: MixtureState, slots: Integers, old: SiteBuffer, new: SiteBuffer, least: float
) -> Iterator[Event]:
    """Drop the clusters of one site, a view into `old`, whose mass is now below `least`."""
    for j in range(slots.size):
        slot = int(slots[j])
        if slot != GONE and state.masses[slot] < least:
            yield _event("death", state, slot)
            moved = state.drop(slot)
            old.relabel(slot, moved)
            new.relabel(slot, moved)


def _event(kind: Literal["birth", "death"], state: MixtureState, slot: int) -> Event:
    return Event(kind, int(state.ids[slot]), None, state.n_observations, float(state.masses[slot]))


def _visit_compiled(
    model: Model,
    state: MixtureState,
    batch: Batch,
    stop: int,
    old: SiteBuffer,
    new: SiteBuffer,
    others: Sequence[SiteBuffer],
    settings: Settings,
    kernel: KernelArguments,
    trace: Trace,
    keep_sites: bool,
) -> list[Event]:
    """Visit rows up to `stop`, making space whenever the compiled loop needs more."""
    found: list[Event] = []
    reached, latent = np.array([new.n_visited, False, 0]), model.likelihood.latent
    try:
        while (start := new.n_visited) < stop:
            found += keep_within(settings.budget, model, state, (old, new, *others))
            state.make_room()
            slots = state.n_clusters + 1
            new.make_room(0, 2 * (stop - start) + slots)
            events = Events.empty(stop - start + 2 * slots)
            more, n = int(reached[MORE_LINES]), len(batch)
            reached[MORE_LINES] = 0
            wanted = compiled.visit(
                kernel.prior,
                kernel.likelihood,
                state.arrays,
                state.cache(model.likelihood),
                kernel.rows,
                old.latent_arrays(n, 0) if latent else old.arrays,
                new.latent_arrays(n, more, keeps=keep_sites) if latent else new.arrays,
                reached,
                stop,
                settings.options(model, state),
                trace,
                events,
            )
            new.reach(int(reached[NEXT_ROW]))
            state.make_space(wanted)
            found += read_events(events)
    finally:  # a signal may have prevented the lines after the loop
        new.reach(int(reached[NEXT_ROW]))
        if reached[IS_OUT]:
            _put_back(state, batch.row(new.n_visited), old, new.n_visited)
    return found


def _put_back(state: MixtureState, row: Row, sites: SiteBuffer, i: int) -> None:
    """Add row i according to its site."""
    slots, shares = sites.row(i)
    present = slots != GONE
    responsibilities = np.zeros(state.n_clusters)
    responsibilities[slots[present]] = shares[present]
    added = sites.added(i, row)
    if added is not row:  # one line per cluster, in the order of slots
        added = added._replace(values=added.values[np.argsort(slots[present])])
    state.add(responsibilities, added)
