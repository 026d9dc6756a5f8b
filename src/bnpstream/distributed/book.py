"""What the driver keeps: the posterior, what others lack of it, and what it all cost.

What a partition added is applied in the order of partitions, to the posterior of the version
before: ids, matches, learning, a budget. Workers are told the outcome, and add the same numbers to
the same clusters.
"""

import time
from collections import deque
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.distributed.matching import ALONE, Clusters, match
from bnpstream.distributed.messages import (
    Added,
    Opened,
    Outcome,
    Renamed,
    Resolution,
    Update,
    packed,
    unpacked,
)
from bnpstream.distributed.replica import Replica
from bnpstream.engine import Stream
from bnpstream.inference.budget import keep_within
from bnpstream.mixture import Event, survivor
from bnpstream.mixture.entries import entry_rows

Integers = NDArray[np.int64]

UPDATES_PER_SNAPSHOT = 4
"""Bytes of updates between two snapshots, for one byte of a snapshot: making one takes longer."""
SMALL = 1 << 22
"""A snapshot is taken to weigh at least so much, 4 MB."""


@dataclass
class Costs:
    """What a run took, for models of how it scales.

    Parameters
    ----------
    resolving, applying, packing, sending : float
        Seconds that the driver worked: on changes whose clusters have to be matched; on those that
        are taken over as they are; on snapshots; on tasks.
    waiting : float
        Seconds that it waited for workers.
    working : float
        Seconds that the workers worked, reading included.
    received, sent : int
        Bytes of changes from the workers, and of updates and snapshots to them.
    n_matched, n_born : int
        Clusters that partitions opened and that were taken for one there, or for none.
    n_snapshots, n_repeated : int
        Snapshots sent, and tasks that were handed out again.
    """

    resolving: float = 0.0
    applying: float = 0.0
    packing: float = 0.0
    waiting: float = 0.0
    sending: float = 0.0
    working: float = 0.0
    received: int = 0
    sent: int = 0
    n_matched: int = 0
    n_born: int = 0
    n_snapshots: int = 0
    n_repeated: int = 0


@dataclass
class Book:
    """The newest posterior, and all updates since a snapshot.

    Parameters
    ----------
    replica : Replica
        The driver's posterior.
    staleness : int
        Tasks may start from posteriors so much older than the newest.
    """

    replica: Replica
    staleness: int
    costs: Costs = field(default_factory=Costs)

    def __post_init__(self) -> None:
        self.renamed: Renamed | None = None
        """What became of the clusters of the last task, if it started from older ones."""
        self._updates: deque[Update] = deque()
        self._snapshots = deque([self._snapshot()])
        # By version; the stream's own history may be moved to a file meanwhile.
        self._recent: deque[list[Event]] = deque(maxlen=self.staleness + 1)

    @property
    def version(self) -> int:
        """Return how many tasks are in the posterior, those included that found nothing."""
        return self.replica.version

    @property
    def opened(self) -> Opened:
        """Return the posterior, with how it takes rows."""
        return self.replica.opened

    @property
    def stream(self) -> Stream:
        """Return the posterior."""
        return self.replica.stream

    def apply(self, outcome: Outcome) -> bool:
        """Apply what a task changed, if it is its turn; return whether it was.

        A task that is in the posterior already is never applied again.
        """
        if outcome.number != self.version:
            return False
        began = time.thread_time()
        change = None if outcome.change is None else unpacked(outcome.change)
        resolution = self.renamed = None
        if isinstance(change, Added):
            recent = [event for some in self._recent for event in some]
            settled, events = resolve(self.replica, change, recent)
            self._recent.append(settled.removed)
            resolution = packed(settled)
            born = change.next_id + np.arange(change.born.size)
            self.renamed = Renamed(np.append(change.ids, born), settled.targets)
            n_matched = sum(event.kind == "merge" for event in events)
            self.costs.n_matched += n_matched
            self.costs.n_born += len(events) - 2 * n_matched
            self.costs.resolving += time.thread_time() - began
        else:
            self.replica.take(change, None)
            self._recent.append(list(outcome.events))
            self.stream.lineage.extend(outcome.events)
            self.costs.applying += time.thread_time() - began
        self.costs.received += len(outcome.change or b"")
        self.costs.working += outcome.seconds
        self._updates.append(Update(self.version, outcome.change, resolution))
        self._forget_old()
        return True

    def since(self, version: int | None, base: int) -> tuple[Any, tuple[Update, ...]]:
        """Return what a worker needs that has a version, or none, to get to `base`.

        That is a snapshot or None, and updates.
        """
        oldest = self._updates[0].version - 1 if self._updates else self.version
        snapshot = None
        if version is None or not oldest <= version <= base:
            snapshot = max(s for s in self._snapshots if s[0] <= base)
            version = snapshot[0]
            self.costs.n_snapshots += 1
            self.costs.sent += len(snapshot[1])
        updates = tuple(u for u in self._updates if version < u.version <= base)
        self.costs.sent += sum(update.nbytes for update in updates)
        return snapshot, updates

    def _snapshot(self) -> tuple[int, bytes]:
        began = time.thread_time()
        made = self.replica.snapshot()
        self.costs.packing += time.thread_time() - began
        return made

    def _forget_old(self) -> None:
        """Make a snapshot where a worker that has nothing would be sent much more than one.

        The one before is kept with what came since: workers that are a little behind have it.
        """
        newest = self._snapshots[-1]
        since = sum(u.nbytes for u in self._updates if u.version > newest[0])
        if since > UPDATES_PER_SNAPSHOT * max(len(newest[1]), SMALL):
            self._snapshots.append(self._snapshot())
        while len(self._snapshots) > 2 and self._snapshots[1][0] <= self.version - self.staleness:
            self._snapshots.popleft()
        while self._updates and self._updates[0].version <= self._snapshots[0][0]:
            self._updates.popleft()


def resolve(
    replica: Replica, change: Added, recent: Iterable[Event]
) -> tuple[Resolution, list[Event]]:
    """Apply what a partition added to an older posterior; return what was decided, and births.

    Parameters
    ----------
    replica : Replica
        The driver's posterior; brought to the next version.
    change : Added
        What the partition added.
    recent : iterable of Event
        What became of clusters since that older posterior, in order.

    Returns
    -------
    resolution : Resolution
        What all others have to know.
    births : list of Event
        Of clusters that the partition opened; merges of those that were there already.
    """
    stream = replica.stream
    state, learner = stream.state, stream.learner
    due = learner is not None and state.n_observations + change.n_rows >= learner.n_next
    if learner is not None and due and change.probe is not None:
        learner.judge(stream.trial, stream.model, change.probe, state)
    targets, opened, events = _targets(stream, change, recent)
    settled = Resolution(
        targets,
        opened,
        state.next_id + sum(event.kind == "birth" for event in events),
        stream.prior,
        None,
        learner,
        [],
    )
    replica.take(change, settled)
    if due:
        settled = _learn_again(stream, settled)
    removed = keep_within(stream.settings.budget, stream.model, state, [])
    stream.lineage += events + removed
    # Later learning changes the learner; what is sent is what it is now.
    return settled._replace(removed=removed, learner=deepcopy(settled.learner)), events


def _learn_again(stream: Stream, settled: Resolution) -> Resolution:
    """Learn what is to be learnt at this row count, as a stream does by itself."""
    state, learner = stream.state, settled.learner
    assert learner is not None
    better = learner.again(stream.trial, stream.model, state)
    assert better is not None
    learner.skip(state.n_observations)
    likelihood = better.likelihood.relocated(state.totals(better.likelihood.n_located))
    stream.adopt(better.prior, likelihood, learner)
    return settled._replace(prior=better.prior, likelihood=likelihood)


def _targets(
    stream: Stream, change: Added, recent: Iterable[Event]
) -> tuple[Integers, Integers, list[Event]]:
    """Return the cluster of every row of a change, which of them are new, and what to log.

    A cluster that was merged away meanwhile has its survivor; what was retired opens anew. New
    clusters are matched with those born since the posterior that the partition started from.
    """
    state = stream.state
    targets = np.append(change.ids, np.full(change.born.size, ALONE))
    for row in np.flatnonzero(~np.isin(change.ids, state.ids)):
        lives_on = survivor(int(change.ids[row]), recent)
        targets[row] = ALONE if lives_on is None else lives_on
    new = np.flatnonzero(targets == ALONE)
    there = np.flatnonzero(state.ids >= change.next_id)
    D, entries = state.n_statistics, change.entries
    rows = entry_rows(D, targets.size, entries.places, entries.values)
    fresh = state.next_id + np.arange(new.size)
    clusters = Clusters(fresh, rows[new], change.masses[new], change.log_vacancy[new])
    same = match(stream.model, state, Clusters.of(state, there), clusters)
    targets[new] = np.where(same == ALONE, fresh, same)
    born = np.append(np.zeros(change.ids.size, np.int64), change.born)[new]
    events = []
    for id, at, row, into in zip(fresh, state.n_observations + born, new, same, strict=True):
        mass = float(change.masses[row])
        events.append(Event("birth", int(id), None, int(at), mass))
        if into != ALONE:
            events.append(Event("merge", int(id), int(into), int(at), mass))
    return targets, fresh[same == ALONE], events
