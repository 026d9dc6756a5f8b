"""What travels between driver and workers, as compressed bytes.

- `Task`, driver to worker: a partition, the version of the posterior to start from, and what the
  worker lacks of it.
- `Outcome`, worker to driver: what the partition changed, or why it could not be read.
- `Update`, driver to workers, with later tasks: what brings a posterior from one version to the
  next.

A version counts the tasks applied: version v is the posterior after tasks 0..v-1. A task is a
partition, but for the head of a stream, whose partitions may be several tasks.
Messages are made and read by the processes of one run, over Dask's own connections; none is kept
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
"""Of compression: on a delta level 3 takes twice as long for 3 % less."""


class Update(NamedTuple):
    """What brings a posterior from the version before to this one."""

    version: int
    change: bytes | None
    """A packed change, as the worker sent it; None: nothing changed."""
    resolution: bytes | None = None
    """Packed, of an `Added`."""

    @property
    def nbytes(self) -> int:
        """Return its size."""
        return len(self.change or b"") + len(self.resolution or b"")

    def apply(self, replica: Replica) -> None:
        """Bring a posterior to this version."""
        if self.version != replica.version + 1:
            raise ValueError(
                f"version {replica.version} cannot become {self.version}: updates are applied one "
                "after the other, each once"
            )
        change = None if self.change is None else unpacked(self.change)
        replica.take(change, None if self.resolution is None else unpacked(self.resolution))


class PackedReplica(NamedTuple):
    """A version of a posterior, all of it, for workers that have none."""

    version: int
    message: bytes
    """The stream, packed; its history stays behind."""

    @classmethod
    def of(cls, replica: Replica) -> "PackedReplica":
        """Return the posterior as it is now."""
        return cls(replica.version, packed(without_history(replica.opened)))

    def replica(self) -> Replica:
        """Return the posterior."""
        return Replica(unpacked(self.message), self.version)


class Task(NamedTuple):
    """A partition to be absorbed, or some of it."""

    run: str
    """Tells the posterior of this run from those of others."""
    number: int
    """Its place in the order of tasks, from 0."""
    base: int
    """Version to start from; that of the task's number is the newest."""
    snapshot: PackedReplica | None
    """For a worker that has no posterior."""
    updates: tuple[Update, ...]
    """From what the worker is thought to have, or from the snapshot, to `base`."""
    name: str
    """What the partition is called in rejects."""
    options: Options | None
    schema: Schema | None
    """What the records of earlier files are."""
    journal: Journal | None = None
    """Where its rows are noted (see `notes`); None: nowhere."""
    start: Inside | None = None
    """Where in the partition to begin; None: at its beginning."""
    head: bool = False
    """Absorb the first records only: others wait for this posterior."""

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
    """Of the task."""
    worker: str
    """Its address."""
    lacks: bool = False
    """It has not the posterior to start from, and needs a snapshot."""
    change: bytes | None = None
    """As in `Update`."""
    events: tuple[Event, ...] = ()
    """What became of clusters; of an `Added` nothing, as births are resolved."""
    n_rows: int = 0
    n_records: int = 0
    """Rejected ones included."""
    rejects: tuple[Reject, ...] = ()
    """Numbered from the first record of the task on."""
    unread: bool = False
    """What was to be read is in rejects as a whole."""
    schema: Schema | None = None
    after: Inside | None = None
    """Where the partition goes on; None: it was read to its end."""
    notes: bytes | None = None
    """The journal of its rows, packed, if there is one."""
    seconds: float = 0.0
    """What the thread worked, reading included."""


def packed(message: Any) -> bytes:
    """Return a message as compressed bytes."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(dumps(message))


def unpacked(message: bytes) -> Any:
    """Return what `packed` was given."""
    return loads(zstandard.ZstdDecompressor().decompress(message))
