"""The driver of a stream: hands out partitions, waits for workers, applies results in order."""

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from distributed import KilledWorker
from distributed.comm.core import CommClosedError

from bnpstream.distributed.book import Book
from bnpstream.distributed.messages import Outcome, Task, unpacked
from bnpstream.distributed.notes import begin, take_over
from bnpstream.distributed.partitions import (
    Inside,
    large_tasks,
    list_partitions,
    name_of,
    needs_dask,
)
from bnpstream.distributed.results import Applied, Reached, StreamError
from bnpstream.distributed.worker import absorb_partition, forget, unreadable
from bnpstream.engine import Phase, require_whole
from bnpstream.engine.parallel.changes import OpenedStream
from bnpstream.engine.parallel.replica import Replica
from bnpstream.engine.parallel.staleness import Order, check_staleness, is_head
from bnpstream.estimators.stream_estimator import StreamEstimator
from bnpstream.runs.journal import Journal
from bnpstream.sources import Options

LOOK_FOR_WORKERS = 2.0
"""Seconds between two checks for workers that joined or left."""
LONGEST_TRANSFER = 60.0
"""Longest time in seconds that a result may be in transit."""

Model = StreamEstimator | OpenedStream
"""``runs`` have streams that take rows directly; estimators open theirs."""


def opened(model: Model) -> OpenedStream:
    """Return the stream of a model."""
    return model.open_stream() if isinstance(model, StreamEstimator) else model


@dataclass
class Flight:
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
class Driver:
    """A stream in progress; parameters are those of `stream_partitions`."""

    client: Any
    model: Model
    staleness: int
    settle_every: int | None
    start: Reached | None
    source_options: Options | None
    journal: Journal | None

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
        self.flights: dict[int, Flight] = {}
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

    def _apply(self, flight: Flight, outcome: Outcome) -> Applied:
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
    ) -> Flight:
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
        return Flight(task, partition, index, worker, future, block)

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

    def _outcome(self, flight: Flight) -> Outcome | None:
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

    def _result(self, flight: Flight) -> Outcome | None:
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

    def _is_taken(self, flight: Flight) -> bool:
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
