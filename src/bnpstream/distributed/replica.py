"""A posterior that is kept in several processes, and brought from version to version by updates.

Every process applies the same updates in the same order to the same numbers, so that a version is
the same bits wherever it is, however it got there.
"""

from copy import copy, deepcopy
from typing import Any

import numpy as np

from bnpstream.distributed.messages import (
    Added,
    Assigned,
    Integers,
    Opened,
    Resolution,
    Update,
    Whole,
    packed,
    unpacked,
)
from bnpstream.engine import FixedColumns, Phase, Stream
from bnpstream.inference.merge import join_into
from bnpstream.inference.retirement import retire
from bnpstream.inference.visits import slots_of
from bnpstream.kernels.arrays import (
    LOG_AUXILIARY,
    LOG_EVIDENCE,
    N_OBSERVATIONS,
    NEXT_ID,
    TOTAL_MASS,
)
from bnpstream.mixture import Event, MixtureState
from bnpstream.mixture.entries import add_entries, write_entries

NOTHING = -1
NOWHERE: tuple[Integers, Integers] = (np.empty(0, np.int64), np.empty(0, np.int64))


class Replica:
    """A posterior and its version.

    Parameters
    ----------
    opened : Opened
        Its stream is changed in place; where all of it changes, another takes its place.
    version : int
        Tasks that are in it.
    """

    def __init__(self, opened: Opened, version: int) -> None:
        self.opened, self.version = opened, version
        self._spare: MixtureState | None = None
        self._task, self._kept, self._grown = NOTHING, 0, [NOWHERE]

    @classmethod
    def of(cls, snapshot: tuple[int, bytes]) -> "Replica":
        """Return what a snapshot holds."""
        version, message = snapshot
        return cls(unpacked(message).opened, version)

    @property
    def stream(self) -> Stream:
        """Return the posterior."""
        return self.opened.stream

    def snapshot(self) -> tuple[int, bytes]:
        """Return the posterior with its version; its history stays here."""
        return self.version, packed(Whole(without_history(self.opened)))

    def apply(self, update: Update) -> None:
        """Bring the posterior to the next version."""
        if update.version != self.version + 1:
            raise ValueError(
                f"version {self.version} cannot become {update.version}: updates are applied one "
                "after the other, each once"
            )
        change = None if update.change is None else unpacked(update.change)
        resolution = None if update.resolution is None else unpacked(update.resolution)
        self.take(change, resolution)

    def working_copy(self) -> Opened:
        """Return an independent copy to absorb rows with.

        If it is given back (`give_back`), its arrays are used again by the next one, and of its
        cache only what has grown has to be looked at.
        """
        stream, spare = self.stream, self._spare
        fixed: list[Any] = [stream.prior, stream.given_prior]
        if isinstance(stream.encoder, FixedColumns):
            fixed.append(stream.likelihood)
        shared: dict[int, Any] = {id(x): x for x in fixed}
        self._spare = None
        if stream.phase is Phase.RUNNING:
            state = stream.state
            if spare is None:
                spare = state.copy()
            else:
                slots, columns = (np.concatenate(x) for x in zip(*self._grown, strict=True))
                spare.follow(state, self._kept, (slots, columns))
            shared[id(state)] = spare
        return deepcopy(without_history(self.opened), shared)

    def give_back(self, state: MixtureState, task: int) -> None:
        """Take the posterior of a working copy back.

        Parameters
        ----------
        state : MixtureState
            Rows were only added to its clusters, and new ones opened.
        task : int
            Whose rows they were.
        """
        self._spare, self._task = state, task
        self._kept, self._grown = self.stream.state.n_clusters, [NOWHERE]

    def take(self, change: Any, resolution: Resolution | None) -> None:
        """Take over what a task changed."""
        match change:
            case Whole():
                change.opened.stream.lineage = self.stream.lineage
                self.opened, self._spare = change.opened, None
            case Assigned():
                _assign(self.stream, change)
                self._note(change.slots, change.entries.places)
            case Added():
                assert resolution is not None
                self._note(_add(self.stream, change, resolution), change.entries.places)
                if resolution.removed:
                    self._spare = None
        self.stream.last = None
        self.version += 1

    def _note(self, slots: Integers, places: Integers) -> None:
        """Remember what may be larger than in the posterior that was given back.

        That one has what its own task added; whatever others added there too is noted anyway.
        """
        if self._spare is None:
            return
        rows, columns = np.divmod(places, self._spare.n_statistics)
        at = slots[rows]
        if self.version == self._task:
            new = at >= self._kept
            at, columns = at[new], columns[new]
        self._grown.append((at, columns))


def without_history(opened: Opened) -> Opened:
    """Return a stream without its history; the rest is shared."""
    other = copy(opened)
    other.stream = opened.stream.without_history()
    return other


def _assign(stream: Stream, change: Assigned) -> None:
    state = stream.state
    for id in change.ids[state.n_clusters :].tolist():
        _open(state, id)
    arrays = state.arrays
    arrays.counters[:], arrays.totals[:] = change.counters, change.totals
    state.masses[:], state.log_vacancy[:] = change.masses, change.log_vacancy
    write_entries(state, change.slots, change.entries.places, change.entries.values)
    stream.adopt(change.prior, change.likelihood, change.learner)


def _add(stream: Stream, change: Added, resolution: Resolution) -> Integers:
    """Add to clusters; return their slots before any are removed."""
    state = stream.state
    for id in resolution.opened.tolist():
        _open(state, id)
    slots = slots_of(state, resolution.targets)
    add_entries(state, slots, change.entries.places, change.entries.values)
    np.add.at(state.arrays.masses, slots, change.masses)
    np.add.at(state.arrays.log_vacancy, slots, change.log_vacancy)
    counters, totals = state.arrays.counters, state.arrays.totals
    counters[N_OBSERVATIONS] += change.n_rows
    counters[NEXT_ID] = resolution.next_id
    totals[TOTAL_MASS] += change.total_mass
    totals[LOG_EVIDENCE] += change.log_evidence
    totals[LOG_AUXILIARY] = change.auxiliary
    for event in resolution.removed:
        remove(state, event)
    stream.adopt(resolution.prior, resolution.likelihood, resolution.learner)
    return slots


def _open(state: MixtureState, id: int) -> None:
    """Open a cluster with an id."""
    state.arrays.counters[NEXT_ID] = id
    state.open()


def remove(state: MixtureState, event: Event) -> None:
    """Do again what an event says: a merge or a retirement."""
    if event.into is None:
        retire(state, [], int(slots_of(state, np.array([event.id]))[0]))
    else:
        join_into(state, [], event.into, event.id)
