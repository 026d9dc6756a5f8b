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

from typing import Any, NamedTuple, Protocol

import numpy as np
import zstandard
from distributed.protocol.pickle import dumps, loads
from numpy.typing import NDArray

from bnpstream.distributed.partitions import Inside
from bnpstream.engine import Learner, Stream
from bnpstream.estimators.stream_estimator import StreamEstimator
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.mixture import Event
from bnpstream.priors import Prior
from bnpstream.runs.description import Exemplar
from bnpstream.runs.journal import Waiting
from bnpstream.sources import Options, Reject, Schema

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEVEL = 1
"""Of compression: on a delta level 3 takes twice as long for 3 % less."""


class Opened(Protocol):
    """A stream that knows how it takes rows; ``runs`` have such models, estimators open theirs."""

    stream: Stream

    @property
    def likelihood(self) -> Likelihood:
        """Return the likelihood as it was given: it may leave something open."""

    def absorb(self, rows: Any, times: Any = None, /) -> Any:
        """Absorb rows; ValueError names a bad one, and nothing is absorbed."""


Model = StreamEstimator | Opened


def opened(model: Model) -> Opened:
    """Return the stream of a model."""
    return model.open_stream() if isinstance(model, StreamEstimator) else model


class Entries(NamedTuple):
    """Entries of rows of statistics, in order of their places (see ``mixture.entries``)."""

    gaps: NDArray[np.unsignedinteger[Any]]
    """From one place to the next, in as few bytes as they need: bytes that repeat pack well."""
    values: Floats

    @classmethod
    def of(cls, places: Integers, values: Floats) -> "Entries":
        """Return entries at places in ascending order."""
        gaps = np.diff(places, prepend=0)
        return cls(gaps.astype(np.min_scalar_type(int(gaps.max(initial=0)))), values)

    @property
    def places(self) -> Integers:
        """Return the places."""
        return np.cumsum(self.gaps, dtype=np.int64)


class Whole(NamedTuple):
    """A posterior, all of it, without its history."""

    opened: Opened


class Assigned(NamedTuple):
    """What a plain pass left where it started from the newest posterior: numbers to take over."""

    slots: Integers
    """Of the rows that changed."""
    entries: Entries
    masses: Floats
    """(K,): of all clusters, as the following."""
    log_vacancy: Floats
    ids: Integers
    counters: Integers
    totals: Floats
    prior: Prior
    likelihood: Likelihood | None
    """None: as it was."""
    learner: Learner | None


class Added(NamedTuple):
    """What a plain pass added to an older posterior: differences, a row a cluster that it touched.

    The first rows are clusters of that posterior, the others were opened by this partition.
    """

    ids: Integers
    """Stable ids of the clusters of that posterior."""
    born: Integers
    """Rows that this partition had absorbed when it opened each of the others."""
    entries: Entries
    masses: Floats
    log_vacancy: Floats
    total_mass: float
    log_evidence: float
    auxiliary: float
    """log U at the last row."""
    n_rows: int
    next_id: int
    """Ids from here on were given after that posterior."""
    probe: Batch | None
    """The first rows, which decide on a scale if it is to be learnt again here."""


class Resolution(NamedTuple):
    """What the driver made of an `Added`."""

    targets: Integers
    """Ids of the clusters that its rows are added to."""
    opened: Integers
    """Of these, ids of clusters that have to be opened first, in order."""
    next_id: int
    prior: Prior
    likelihood: Likelihood | None
    """None: as it was."""
    learner: Learner | None
    removed: list[Event]
    """Merges and retirements that a budget asked for, in order, after the addition."""


class Update(NamedTuple):
    """What brings a posterior from the version before to this one."""

    version: int
    change: bytes | None
    """A packed `Whole`, `Assigned` or `Added`, as the worker sent it; None: nothing changed."""
    resolution: bytes | None = None
    """Packed, of an `Added`."""

    @property
    def nbytes(self) -> int:
        """Return its size."""
        return len(self.change or b"") + len(self.resolution or b"")


class Before(NamedTuple):
    """What a worker has to know of the journal so far."""

    waiting: list[Waiting]
    """Records whose rows wait for more, numbered from the first of the task on: below 0."""
    ids: Integers
    floors: Floats
    """What a record has to exceed to be an exemplar of these clusters: others are not looked at."""


class Notes(NamedTuple):
    """What a worker noted of the rows of a task."""

    ids: Integers
    """Likeliest cluster of every row, in order, as the following; those that waited first."""
    evidence: Floats
    clusters: Integers
    """Clusters after it."""
    exemplars: list[tuple[int, list[Exemplar]]]
    n_tokens: int | None
    waiting: list[Waiting]
    """All records that wait now."""


class Renamed(NamedTuple):
    """What clusters of a worker are called by the driver."""

    ids: Integers
    """Of the worker."""
    targets: Integers


class Task(NamedTuple):
    """A partition to be absorbed, or some of it."""

    run: str
    """Tells the posterior of this run from those of others."""
    number: int
    """Its place in the order of tasks, from 0."""
    base: int
    """Version to start from; that of the task's number is the newest."""
    snapshot: tuple[int, bytes] | None
    """A version, and a packed `Whole` of it, for workers that have none."""
    updates: tuple[Update, ...]
    """From what the worker is thought to have, or from the snapshot, to `base`."""
    name: str
    """What the partition is called in rejects."""
    options: Options | None
    schema: Schema | None
    """What the records of earlier files are."""
    before: Before | None = None
    """Of the journal so far; None: there is none."""
    start: Inside | None = None
    """Where in the partition to begin; None: at its beginning."""
    head: bool = False
    """Absorb the first records only: others wait for this posterior."""

    @property
    def exact(self) -> bool:
        """Return whether it starts from the newest posterior."""
        return self.base == self.number


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
    """Packed `Notes` for the journal, if there is one."""
    seconds: float = 0.0
    """What the thread worked, reading included."""


def packed(message: Any) -> bytes:
    """Return a message as compressed bytes."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(dumps(message))


def unpacked(message: bytes) -> Any:
    """Return what `packed` was given."""
    return loads(zstandard.ZstdDecompressor().decompress(message))
