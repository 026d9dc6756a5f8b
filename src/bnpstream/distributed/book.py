"""The driver's records: the posterior, updates for the workers, and costs."""

import time
from collections import deque
from dataclasses import dataclass, field

from bnpstream.distributed.messages import Outcome, PackedReplica, Update, packed, unpacked
from bnpstream.distributed.notes import Renamed
from bnpstream.engine.parallel.changes import Added
from bnpstream.engine.parallel.replica import Replica
from bnpstream.engine.parallel.resolution import resolve
from bnpstream.mixture import Event

UPDATES_PER_SNAPSHOT = 4
"""Bytes of updates between two snapshots, per byte of a snapshot, which is slower to make."""
SMALL = 1 << 22
"""Least size that a snapshot is assumed to have, 4 MB."""


@dataclass
class Costs:
    """Costs of a run, for modelling how it scales.

    Parameters
    ----------
    resolving, applying, packing, sending : float
        Seconds of work by the driver: on changes whose clusters must be matched; on changes applied
        as they are; on snapshots; on tasks.
    waiting : float
        Seconds spent waiting for workers.
    working : float
        Seconds of work by the workers, including reading.
    received, sent : int
        Bytes of changes from the workers, and of updates and snapshots to them.
    n_matched, n_born : int
        Clusters opened by partitions that were matched with one there, or not.
    n_snapshots, n_repeated : int
        Snapshots sent, and tasks that were repeated.
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
        How much older than the newest the posterior may be from which a task starts.
    """

    replica: Replica
    staleness: int
    costs: Costs = field(default_factory=Costs)

    def __post_init__(self) -> None:
        self.renamed: Renamed | None = None
        """New names of the clusters of the last task, if it started from an older posterior."""
        self._updates: deque[Update] = deque()
        self._snapshots = deque([self._snapshot()])
        # By version; the stream's own history may be moved to a file in the meantime.
        self._recent: deque[list[Event]] = deque(maxlen=self.staleness + 1)

    def apply(self, outcome: Outcome) -> bool:
        """Apply the change by a task, if it is its turn; return whether it was.

        A task that is already in the posterior is never applied again.
        """
        replica = self.replica
        if outcome.number != replica.version:
            return False
        began = time.thread_time()
        change = None if outcome.change is None else unpacked(outcome.change)
        resolution = self.renamed = None
        if isinstance(change, Added):
            recent = [event for some in self._recent for event in some]
            settled, events = resolve(replica.stream, change, recent)
            replica.stream.lineage += events + settled.removed
            replica.move_on()
            self._recent.append(settled.removed)
            resolution = packed(settled)
            self.renamed = change.own_ids, settled.targets
            n_matched = sum(event.kind == "merge" for event in events)
            self.costs.n_matched += n_matched
            self.costs.n_born += len(events) - 2 * n_matched
            self.costs.resolving += time.thread_time() - began
        else:
            replica.take(change)
            self._recent.append(list(outcome.events))
            replica.stream.lineage.extend(outcome.events)
            self.costs.applying += time.thread_time() - began
        self.costs.received += len(outcome.change or b"")
        self.costs.working += outcome.seconds
        self._updates.append(Update(replica.version, outcome.change, resolution))
        self._forget_old()
        return True

    def since(
        self, version: int | None, base: int
    ) -> tuple[PackedReplica | None, tuple[Update, ...]]:
        """Return what a worker with some version, or with none, needs to get to `base`."""
        oldest = self._updates[0].version - 1 if self._updates else self.replica.version
        snapshot = None
        if version is None or not oldest <= version <= base:
            snapshot = max(kept for kept in self._snapshots if kept.version <= base)
            version = snapshot.version
            self.costs.n_snapshots += 1
            self.costs.sent += len(snapshot.message)
        updates = tuple(u for u in self._updates if version < u.version <= base)
        self.costs.sent += sum(update.nbytes for update in updates)
        return snapshot, updates

    def _snapshot(self) -> PackedReplica:
        began = time.thread_time()
        made = PackedReplica.of(self.replica)
        self.costs.packing += time.thread_time() - began
        return made

    def _forget_old(self) -> None:
        """Make a snapshot when a worker without a posterior would be sent much more than one.

        The previous snapshot and its updates are kept for workers that lag a little.
        """
        kept, newest = self._snapshots, self._snapshots[-1]
        since = sum(u.nbytes for u in self._updates if u.version > newest.version)
        if since > UPDATES_PER_SNAPSHOT * max(len(newest.message), SMALL):
            kept.append(self._snapshot())
        while len(kept) > 2 and kept[1].version <= self.replica.version - self.staleness:
            kept.popleft()
        while self._updates and self._updates[0].version <= kept[0].version:
            self._updates.popleft()
