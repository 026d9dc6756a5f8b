"""What a part of a stream did to a posterior, so that other copies can do the same."""

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from bnpstream.engine.learner import Learner
from bnpstream.engine.parallel.staleness import only_adds
from bnpstream.engine.phase import Phase
from bnpstream.inference.merge import join_into
from bnpstream.inference.retirement import retire
from bnpstream.inference.visits import slots_of
from bnpstream.kernels.arrays import (
    LOG_AUXILIARY,
    LOG_EVIDENCE,
    N_OBSERVATIONS,
    NEXT_ID,
    TOTAL_MASS,
    Floats,
    Integers,
)
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.mixture import Event, MixtureState
from bnpstream.mixture.entries import Entries, touched_slots
from bnpstream.priors import Prior

if TYPE_CHECKING:
    from bnpstream.engine.stream import Stream


class OpenedStream(Protocol):
    """A stream, and whatever is needed to give it rows."""

    stream: "Stream"

    @property
    def likelihood(self) -> Likelihood:
        """Return the likelihood as given; parameters may be unset."""

    def absorb(self, rows: Any, times: Any = None, /) -> Any:
        """Absorb rows; ValueError names a bad one, and nothing is absorbed."""


class Learnt(NamedTuple):
    """What is learnt along a stream: see `Stream.adopt`."""

    prior: Prior
    likelihood: Likelihood | None
    """None: unchanged."""
    learner: Learner | None


class Whole(NamedTuple):
    """A whole posterior, without its history."""

    opened: Any


class Assigned(NamedTuple):
    """Result of a plain pass that started from the newest posterior: numbers to copy."""

    slots: Integers
    """Slots of the rows that changed."""
    entries: Entries
    masses: Floats
    """(K,): for all clusters, like the following."""
    log_vacancy: Floats
    ids: Integers
    counters: Integers
    totals: Floats
    learnt: Learnt

    @classmethod
    def between(cls, before: "Stream", after: "Stream") -> Self:
        """Return the change from one posterior to another."""
        state = after.state
        slots = touched_slots(before.state, state)
        other = None if after.likelihood is before.likelihood else after.likelihood
        return cls(
            slots,
            Entries.replaced(before.state, state, slots),
            state.masses,
            state.log_vacancy,
            state.ids,
            state.arrays.counters,
            state.arrays.totals,
            Learnt(after.prior, other, after.learner),
        )

    def apply(self, stream: "Stream") -> Integers:
        """Apply the change to a posterior; return the slots of the rows that changed."""
        state = stream.state
        for id in self.ids[state.n_clusters :].tolist():
            _open(state, id)
        arrays = state.arrays
        arrays.counters[:], arrays.totals[:] = self.counters, self.totals
        state.masses[:], state.log_vacancy[:] = self.masses, self.log_vacancy
        self.entries.write(state, self.slots)
        stream.adopt(*self.learnt)
        return self.slots


class Resolution(NamedTuple):
    """The result of `resolve` for an `Added`."""

    targets: Integers
    """Ids of the clusters that its rows are added to."""
    opened: Integers
    """Those of them that must be opened first, in order."""
    next_id: int
    learnt: Learnt
    removed: list[Event]
    """Merges and retirements by a budget, in order, after the addition."""


class Added(NamedTuple):
    """What a plain pass added to an older posterior: differences, one row per cluster touched.

    The first rows are clusters of that posterior; the others were opened by this part.
    """

    ids: Integers
    """Stable ids of the clusters of that posterior."""
    born: Integers
    """Rows that this part had absorbed when it opened each of the others."""
    entries: Entries
    masses: Floats
    log_vacancy: Floats
    total_mass: float
    log_evidence: float
    auxiliary: float
    """log U at the last row."""
    n_rows: int
    next_id: int
    """Ids from here on were assigned after that posterior."""
    probe: Batch | None
    """The first rows, which decide on a scale if it is to be learnt again here."""

    @classmethod
    def between(
        cls, old: MixtureState, new: MixtureState, events: Iterable[Event], probe: Batch | None
    ) -> Self:
        """Return the change from one posterior to another; births are among the events between."""
        slots = touched_slots(old, new)
        known = slots[slots < old.n_clusters]
        masses, log_vacancy = new.masses[slots], new.log_vacancy[slots]
        masses[: known.size] -= old.masses[known]
        log_vacancy[: known.size] -= old.log_vacancy[known]
        births = [
            event.n_observations
            for event in events
            if event.kind == "birth" and event.level == "cluster"
        ]
        return cls(
            old.ids[known],
            np.array(births, np.int64) - old.n_observations,
            Entries.added(old, new, slots),
            masses,
            log_vacancy,
            new.total_mass - old.total_mass,
            new.log_evidence - old.log_evidence,
            new.auxiliary,
            new.n_observations - old.n_observations,
            old.next_id,
            probe,
        )

    @property
    def own_ids(self) -> Integers:
        """Return the ids of the clusters of all rows, as this part numbered them."""
        return np.append(self.ids, self.next_id + np.arange(self.born.size))

    def renamed(self, ids: Integers, targets: Integers) -> Integers:
        """Return ids of clusters, as this part numbered them, as ids in the newer posterior.

        Parameters
        ----------
        ids : ndarray
            Some of `own_ids`.
        targets : ndarray
            New ids of `own_ids`, see `Resolution`.
        """
        n_known = self.ids.size
        found, born = ids.copy(), ids >= self.next_id
        found[born] = targets[n_known:][ids[born] - self.next_id]
        for row in np.flatnonzero(self.ids != targets[:n_known]).tolist():
            found[ids == self.ids[row]] = targets[row]
        return found

    def apply(self, stream: "Stream", resolution: Resolution) -> Integers:
        """Apply the change to a newer posterior; return the slots of the rows before removals."""
        state = stream.state
        for id in resolution.opened.tolist():
            _open(state, id)
        slots = slots_of(state, resolution.targets)
        np.add.at(state.arrays.masses, slots, self.masses)
        np.add.at(state.arrays.log_vacancy, slots, self.log_vacancy)
        self.entries.add(state, slots)
        counters, totals = state.arrays.counters, state.arrays.totals
        counters[N_OBSERVATIONS] += self.n_rows
        counters[NEXT_ID] = resolution.next_id
        totals[TOTAL_MASS] += self.total_mass
        totals[LOG_EVIDENCE] += self.log_evidence
        totals[LOG_AUXILIARY] = self.auxiliary
        for event in resolution.removed:
            if event.into is None:
                retire(state, [], int(slots_of(state, np.array([event.id]))[0]))
            else:
                join_into(state, [], event.into, event.id)
        stream.adopt(*resolution.learnt)
        return slots


def exact_change(before: "Stream", opened: OpenedStream) -> Assigned | Whole:
    """Return the change by a part that started from the newest posterior."""
    if only_adds(opened.stream) and before.phase is Phase.RUNNING:
        return Assigned.between(before, opened.stream)
    return Whole(without_history(opened))


def without_history(opened: Any) -> Any:
    """Return a stream without its history; the rest is shared."""
    other = copy(opened)
    other.stream = opened.stream.without_history()
    return other


def _open(state: MixtureState, id: int) -> None:
    """Open a cluster with an id."""
    state.arrays.counters[NEXT_ID] = id
    state.open()
