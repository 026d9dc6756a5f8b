"""`fit_stream`: one pass over a stream by many workers, with bounded staleness.

The driver hands out partitions to workers, and applies the results in order; see
`bnpstream.engine.parallel` for details. A long partition at the head of a stream is divided, so
that others only wait for its beginning. With a staleness of 0 everything is absorbed undivided,
one partition after the other, and the bits are those of `partial_fit`.
"""

import time
import uuid
from collections.abc import Generator, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from distributed import KilledWorker
from distributed.comm.core import CommClosedError

from bnpstream.distributed.book import Book, Costs
from bnpstream.distributed.messages import Outcome, Task, unpacked
from bnpstream.distributed.notes import begin, take_over
from bnpstream.distributed.partitions import (
    Inside,
    large_tasks,
    list_partitions,
    name_of,
    needs_dask,
)
from bnpstream.distributed.worker import absorb_partition, forget, unreadable
from bnpstream.engine import Phase, Stream, require_whole
from bnpstream.engine.parallel.changes import OpenedStream
from bnpstream.engine.parallel.replica import Replica
from bnpstream.engine.parallel.staleness import Order, check_staleness, is_head
from bnpstream.estimators.stream_estimator import StreamEstimator
from bnpstream.runs.journal import Journal
from bnpstream.sources import Options, Reject, Schema

LOOK_FOR_WORKERS = 2.0
"""Seconds between two checks for workers that joined or left."""
LONGEST_TRANSFER = 60.0
"""Longest time in seconds that a result may be in transit."""

Model = StreamEstimator | OpenedStream
"""``runs`` have streams that take rows directly; estimators open theirs."""


def opened(model: Model) -> OpenedStream:
    """Return the stream of a model."""
    return model.open_stream() if isinstance(model, StreamEstimator) else model


class Reached(NamedTuple):
    """How far a stream has come: with the model, all that is needed to continue from there."""

    partitions: int = 0
    """Partitions done, in the posterior or as rejects; `inside` may add a part of the next."""
    records: int = 0
    """Records done, including rejects."""
    schema: Schema | None = None
    """Schema of the records in its files."""
    inside: Inside | None = None
    """Position in the next partition; None: at its beginning."""


class Applied(NamedTuple):
    """A partition that has just been applied, or, at the head of a stream, a part of one."""

    partition: int
    name: str
    model: Any
    """With the posterior; an estimator is always the same object, changed by the next step."""
    stream: Stream
    """The posterior."""
    reached: Reached
    n_rows: int
    """Number of its rows added to the posterior."""
    rejects: tuple[Reject, ...]
    """Its invalid records; `record` counts from the start of the stream."""
    unread: bool
    """It could not be read; none of it is in the posterior."""
    costs: Costs
    """Costs of the run so far."""


@dataclass
class StreamResult:
    """Result of a stream.

    Parameters
    ----------
    model : StreamingMixture or DocumentMixture
        The fitted model.
    reached : Reached
        Partitions and records done.
    n_rows : int
        Rows absorbed.
    rejects : list of Reject
        Records and partitions that could not be used, in order.
    unread : list of str
        Names of the partitions that could not be read, or not to their end: see `rejects`.
    costs : Costs
        Bytes and seconds.
    """

    model: Any
    reached: Reached = field(default_factory=Reached)
    n_rows: int = 0
    rejects: list[Reject] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    costs: Costs = field(default_factory=Costs)


class StreamError(RuntimeError):
    """The cluster failed; the posterior of the last applied partition is available.

    Attributes
    ----------
    reason : str
        What failed.
    model : StreamingMixture or DocumentMixture
        That posterior.
    reached : Reached
        What it contains: ``fit_stream(..., start=error.reached)`` continues from there.
    """

    def __init__(self, reason: str, model: Any, reached: Reached) -> None:
        others = "no others" if reached.inside is None else "the beginning of the next"
        super().__init__(
            f"{reason}: the first {reached.partitions} partitions are in the model, and {others}: "
            "continue from there with start=error.reached"
        )
        self.reason, self.model, self.reached = reason, model, reached


def fit_stream(
    client: Any,
    partitions: Any,
    model: StreamEstimator,
    *,
    staleness: int = 1,
    settle_every: int | None = None,
    start: Reached | None = None,
    source_options: Options | None = None,
) -> StreamResult:
    """Absorb a stream by the workers of a Dask cluster, and `finish`.

    Parameters
    ----------
    client : distributed.Client
        Each worker handles one partition at a time: give it one thread.
    partitions
        The partitions of the stream, in order: a Dask bag, data frame or array; the path of a
        directory, a pattern of files, or a Parquet file, which is divided into its row groups; or
        any iterable of paths that `bnpstream.sources.open_source` reads, of
        `dask.delayed` blocks, or of blocks of rows. The workers read them.
    model : StreamingMixture or DocumentMixture
        Fitted or not; changed in place, as by `partial_fit`. Attributes that describe the rows of
        the last call, such as ``labels_``, are not available.
    staleness : int
        s: a partition may start from a posterior that lacks the s partitions before it, so that
        s + 1 are processed in parallel. 0 gives the bits of `partial_fit`, whatever the settings of
        the model; more than 0 needs a plain pass: no revisits, merges by shared rows, or
        half-life. A budget of clusters or memory is enforced after each partition.
    settle_every : int, optional
        Partitions after which the next one waits for all before it. A run that is stopped there
        and resumed ends with the same bits as an uninterrupted one.
    start : Reached, optional
        Where an earlier run of this model ended: partitions up to there are skipped.
    source_options : Options, optional
        Options of the source, for files.

    Returns
    -------
    result : StreamResult
        The model, rejects, and costs.
    """
    result = StreamResult(model, start or Reached())
    for applied in stream_partitions(
        client,
        partitions,
        model,
        staleness=staleness,
        settle_every=settle_every,
        start=start,
        source_options=source_options,
    ):
        result.reached, result.costs = applied.reached, applied.costs
        result.n_rows += applied.n_rows
        result.rejects += applied.rejects
        if applied.unread:
            result.unread.append(applied.name)
    if result.n_rows > 0:
        model.finish()
    return result


def stream_partitions(
    client: Any,
    partitions: Any,
    model: Model,
    *,
    staleness: int = 1,
    settle_every: int | None = None,
    start: Reached | None = None,
    source_options: Options | None = None,
    journal: Journal | None = None,
) -> Generator[Applied]:
    """Absorb a stream by the workers of a Dask cluster, yielding after each partition.

    At the head of a stream, with a staleness above 0, also inside long ones (`Reached.inside`).

    Parameters
    ----------
    client, partitions, model
        As in `fit_stream`; the stream is not finished.
    staleness, settle_every, start, source_options
        As in `fit_stream`.
    journal : Journal, optional
        Journal for the rows of files, as with a single process; changed in place.

    Yields
    ------
    applied : Applied
        In the order of partitions, each row once.
    """
    run = _Run(client, model, staleness, settle_every, start, source_options, journal)
    try:
        yield from run.over(partitions)
    finally:
        run.close()


@dataclass
class _Flight:
    """A task in progress."""

    task: Task
    partition: Any
    index: int
    """Number of the partition."""
    worker: str | None
    future: Any
    block: Any = None
    """What Dask computes for the partition."""


@dataclass
class _Run:
    """A stream in progress; parameters are those of `stream_partitions`."""

    client: Any
    model: Model
    staleness: int = 1
    settle_every: int | None = None
    start: Reached | None = None
    source_options: Options | None = None
    journal: Journal | None = None

    def __post_init__(self) -> None:
        require_whole("staleness", self.staleness, 0)
        if self.settle_every is not None:
            require_whole("settle_every", self.settle_every, 1)
        stream = opened(self.model)
        check_staleness(stream.stream, self.staleness, type(self.model).__name__)
        self.name, self.reached = uuid.uuid4().hex, self.start or Reached()
        self.next = self.reached.partitions
        self.replica = Replica(stream, self.next)
        self.book = Book(self.replica, self.staleness)
        self.order = Order(self.staleness, self.settle_every, self.next)
        self.flights: dict[int, _Flight] = {}
        self._left: Inside | None = None
        """Where the partition continues whose beginning was applied last."""
        self._kept: Any = None
        """What Dask computed for it, to avoid computing it again."""
        self.known: dict[str, int] = {}
        """By worker: the version that it will have when its tasks are done."""
        self.failed = False
        self._workers: list[str] = []
        self._looked = -LOOK_FOR_WORKERS

    def _up_to_date(self) -> Model:
        """Return the model with the newest posterior; an estimator is always the same object."""
        if not isinstance(self.model, StreamEstimator):
            return self.replica.opened
        newest: Any = self.replica.opened
        self.model.take_stream(newest)
        return self.model

    def over(self, partitions: Any) -> Iterator[Applied]:
        """Hand out partitions and apply the results, in order."""
        pieces = self._pieces(partitions)
        while True:
            self._hand_out(pieces)
            if not self.flights:
                return
            flight = self.flights[self.replica.version]
            with self._failing():
                outcome = self._outcome(flight)
            if outcome is not None:
                del self.flights[self.replica.version]
                yield self._apply(flight, outcome)

    def _pieces(self, partitions: Any) -> Iterator[tuple[Any, Inside | None]]:
        """Yield the remaining partitions, and where to start in them.

        At the head of a stream, a task absorbs only the beginning of a partition. The next piece is
        requested only after that is applied, when it is known whether the partition continues.
        """
        start = self.reached.inside
        for partition in islice(list_partitions(self.client, partitions), self.next, None):
            yield partition, start
            while self._left is not None:
                start, self._left = self._left, None
                yield partition, start
            start = None

    def _apply(self, flight: _Flight, outcome: Outcome) -> Applied:
        history = len(self.replica.stream.lineage)
        self.book.apply(outcome)
        stream = self.replica.stream
        if self.journal is not None and outcome.notes is not None:
            events = stream.lineage[history:]
            K = stream.state.n_clusters if stream.phase is Phase.RUNNING else 0
            notes, records = unpacked(outcome.notes), self.reached.records
            take_over(self.journal, notes, records, self.book.renamed, K, events)
        rejects = tuple(
            reject._replace(record=reject.record + self.reached.records)
            for reject in outcome.rejects
        )
        schema = self.reached.schema or outcome.schema
        records = self.reached.records + outcome.n_records
        goes_on = outcome.after is not None
        self._left, self._kept = outcome.after, flight.block if goes_on else None
        partitions = flight.index + (not goes_on)
        self.reached = Reached(partitions, records, schema, outcome.after)
        return Applied(
            flight.index,
            flight.task.name,
            self._up_to_date(),
            stream,
            self.reached,
            outcome.n_rows,
            rejects,
            outcome.unread,
            self.book.costs,
        )

    def _next_base(self) -> int | None:
        """Return the version that the next task starts from, or None if there is none yet."""
        newest, index = self.replica, self._index(self.next)
        return self.order.base(newest.stream, newest.version, self.next, index)

    def _index(self, number: int) -> int:
        """Return the partition of a task; each division so far added one task."""
        return number - (self.replica.version - self.reached.partitions)

    def _hand_out(self, pieces: Iterator[tuple[Any, Inside | None]]) -> None:
        """Hand out all tasks whose posterior is available."""
        began = time.thread_time()
        while (base := self._next_base()) is not None:
            for partition, start in islice(pieces, 1):
                with self._failing():
                    self.flights[self.next] = self._sent(self.next, base, partition, start)
                self.next += 1
                break
            else:
                break
        self.book.costs.sending += time.thread_time() - began

    def _sent(
        self, number: int, base: int, partition: Any, start: Inside | None, *, anew: bool = False
    ) -> _Flight:
        worker, index = self._choose_worker(), self._index(number)
        version = None if anew or worker is None else self.known.get(worker)
        snapshot, updates = self.book.since(version, base)
        before = None if self.journal is None else begin(self.journal, self.reached.records)
        about = (name_of(partition, index), self.source_options, self.reached.schema, before, start)
        head = self.staleness > 0 and is_head(self.replica.stream)
        task = Task(self.name, number, base, snapshot, updates, *about, head)
        where: Any = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        block = self.client.compute(partition, **where) if needs_dask(partition) else None
        # The name of each task is unique, so that a result is never taken for that of another.
        key = f"absorb_partition-{self.name}-{number}-{uuid.uuid4().hex}"
        with large_tasks():
            what = partition if block is None else block
            future = self.client.submit(absorb_partition, task, what, key=key, **where)
        if worker is not None:
            self.known[worker] = base
        return _Flight(task, partition, index, worker, future, block)

    def _choose_worker(self) -> str | None:
        """Return the worker with the fewest tasks; among those, the one that lacks least."""
        now = time.monotonic()
        if now - self._looked >= LOOK_FOR_WORKERS:
            # All of them: some versions of Dask list only five. None if it is not connected.
            found = self.client.scheduler_info(n_workers=-1).get("workers", {})
            self._workers, self._looked = sorted(found), now
        busy = [f.worker for f in self.flights.values() if not f.future.done()]
        return min(
            self._workers,
            key=lambda worker: (busy.count(worker), -self.known.get(worker, -1)),
            default=None,
        )

    def _outcome(self, flight: _Flight) -> Outcome | None:
        """Wait for a task; return None if it had to be handed out again."""
        began, outcome = time.perf_counter(), None
        try:
            outcome = self._result(flight)
        except (CancelledError, CommClosedError, KilledWorker, TimeoutError):
            raise
        except Exception as error:
            if flight.block is None or flight.block.status != "error":
                raise
            outcome = unreadable(flight.task, "", error)
        finally:
            self.book.costs.waiting += time.perf_counter() - began
        worker = None if outcome is None else outcome.worker
        if flight.worker is not None and worker != flight.worker:
            self.known.pop(flight.worker, None)  # it is gone, or was spared this task
        if outcome is not None and not outcome.lacks:
            return outcome
        self.book.costs.n_repeated += 1
        if outcome is not None:
            self.known.pop(outcome.worker, None)
        task = flight.task
        self.flights[task.number] = self._sent(
            task.number, task.base, flight.partition, task.start, anew=True
        )
        return None

    def _result(self, flight: _Flight) -> Outcome | None:
        """Wait for a task; return None, and cancel it, if no worker is going to run it.

        Dask does not give a task to workers that join after all have left, if it was sent to one of
        those that left, although any other may take it.
        """
        patience = LOOK_FOR_WORKERS
        while True:
            try:
                outcome: Outcome = flight.future.result(timeout=patience)
                return outcome
            except TimeoutError:
                if flight.future.status == "error":
                    raise
            there = self.client.scheduler_info(n_workers=-1).get("workers", {})
            if flight.worker in there or self._is_taken(flight):
                patience = min(2.0 * patience, LONGEST_TRANSFER)
            elif there and flight.worker is not None:
                for one in (flight.block, flight.future):
                    if one is not None:
                        one.release()
                return None

    def _is_taken(self, flight: _Flight) -> bool:
        """Return whether a worker runs a task, reads for it, or has its result."""
        out = {one.key for one in (flight.block, flight.future) if one is not None}
        running = {key for keys in self.client.processing().values() for key in keys}
        return bool(out & running or self.client.who_has([flight.future])[flight.future.key])

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Report what is available when the cluster fails."""
        try:
            yield
        except Exception as error:
            self.failed = True
            lost = isinstance(error, CancelledError | CommClosedError | OSError | TimeoutError)
            gone = lost or self.client.status != "running"
            what = f"the scheduler can no longer be reached ({error})" if gone else str(error)
            raise StreamError(what, self._up_to_date(), self.reached) from error

    def close(self) -> None:
        """Cancel tasks in progress, and let workers forget the posterior."""
        for flight in self.flights.values():
            flight.future.release()
        if not self.failed:
            self.client.run(forget, self.name, on_error="ignore")
