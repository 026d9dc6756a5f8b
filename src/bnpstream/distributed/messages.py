"""Messages between driver and workers, as compressed bytes.

- `Task`, driver to worker: a partition, the version of the posterior to start from, and what the
  worker lacks of it.
- `Outcome`, worker to driver: what the partition changed, or why it could not be read.
- `Update`, driver to workers, with later tasks: what turns one version of a posterior into the
  next.

A version counts the tasks applied: version v is the posterior after tasks 0..v-1. A task is a
partition, except at the head of a stream, whose partitions may be several tasks.
Messages are made and read by the processes of one run, over Dask's own connections; none is stored
in a file.
"""

from typing import Any, NamedTuple

import zstandard
from distributed.protocol.pickle import dumps, loads

from bnpstream.distributed.partitions import Inside
from bnpstream.engine.parallel.changes import without_history
from bnpstream.engine.parallel.replica import Replica
from bnpstream.mixture import Event
from bnpstream.runs.journal import Journal
from bnpstream.sources import Options, Reject, Schema

LEVEL = 1
"""Level of compression: on a delta, level 3 takes twice as long to save 3 %."""


class Update(NamedTuple):
    """What turns the previous version of a posterior into this one."""

    version: int
    change: bytes | None
    """A packed change, as the worker sent it; None: nothing changed."""
    resolution: bytes | None = None
    """Packed, for an `Added`."""

    @property
    def nbytes(self) -> int:
        """Return its size."""
        return len(self.change or b"") + len(self.resolution or b"")

    def apply(self, replica: Replica) -> None:
        """Bring a posterior to this version."""
        if self.version != replica.version + 1:
            raise ValueError(
                f"version {replica.version} cannot become {self.version}: updates must be applied "
                "in order, each once"
            )
        change = None if self.change is None else unpacked(self.change)
        replica.take(change, None if self.resolution is None else unpacked(self.resolution))


class PackedReplica(NamedTuple):
    """A complete version of a posterior, for workers that have none."""

    version: int
    message: bytes
    """The stream, packed, without its history."""

    @classmethod
    def of(cls, replica: Replica) -> "PackedReplica":
        """Return the current posterior."""
        return cls(replica.version, packed(without_history(replica.opened)))

    def replica(self) -> Replica:
        """Return the posterior."""
        return Replica(unpacked(self.message), self.version)


class Task(NamedTuple):
    """A partition to absorb, or a part of one."""

    run: str
    """Identifies the run that the posterior belongs to."""
    number: int
    """Its position in the order of tasks, from 0."""
    base: int
    """Version to start from; the newest has the task's number."""
    snapshot: PackedReplica | None
    """For a worker that has no posterior."""
    updates: tuple[Update, ...]
    """From what the worker is believed to have, or from the snapshot, to `base`."""
    name: str
    """Name of the partition in rejects."""
    options: Options | None
    schema: Schema | None
    """Schema of earlier files."""
    journal: Journal | None = None
    """Journal for its rows (see `notes`); None for no journal."""
    start: Inside | None = None
    """Where to start in the partition; None: at its beginning."""
    head: bool = False
    """Absorb only the first records, because others wait for this posterior."""

    @property
    def exact(self) -> bool:
        """Return whether it starts from the newest posterior."""
        return self.base == self.number

    def leads_from(self, version: int) -> bool:
        """Return whether its updates lead from a version to its base."""
        n_updates = sum(update.version > version for update in self.updates)
        return version <= self.base <= version + n_updates


class Outcome(NamedTuple):
    """What a worker returns."""

    number: int
    """Number of the task."""
    worker: str
    """Address of the worker."""
    lacks: bool = False
    """The worker lacks the posterior to start from, and needs a snapshot."""
    change: bytes | None = None
    """As in `Update`."""
    events: tuple[Event, ...] = ()
    """Events of clusters; none for an `Added`, whose births are resolved."""
    n_rows: int = 0
    n_records: int = 0
    """Including rejects."""
    rejects: tuple[Reject, ...] = ()
    """Numbered from the first record of the task."""
    unread: bool = False
    """Nothing could be read; the reason is in `rejects`."""
    schema: Schema | None = None
    after: Inside | None = None
    """Where the partition continues; None: it was read to its end."""
    notes: bytes | None = None
    """The journal of its rows, packed, if there is one."""
    seconds: float = 0.0
    """Time that the thread worked, including reading."""


def packed(message: Any) -> bytes:
    """Return a message as compressed bytes."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(dumps(message))


def unpacked(message: bytes) -> Any:
    """Return the message that `packed` was given."""
    return loads(zstandard.ZstdDecompressor().decompress(message))
