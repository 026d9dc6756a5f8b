"""The driver: it hands out partitions to workers, and applies what comes back in order."""

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from distributed import KilledWorker
from distributed.comm.core import CommClosedError

from bnpstream.distributed.book import Book, Costs
from bnpstream.distributed.messages import Model, Outcome, Task, opened, unpacked
from bnpstream.distributed.notes import begin, take_notes
from bnpstream.distributed.partitions import (
    Inside,
    large_tasks,
    list_partitions,
    name_of,
    needs_dask,
)
from bnpstream.distributed.replica import Replica
from bnpstream.distributed.worker import absorb_partition, forget, unreadable
from bnpstream.engine import Phase, Stream
from bnpstream.estimators.stream_estimator import StreamEstimator
from bnpstream.runs.journal import Journal
from bnpstream.sources import Options, Reject, Schema

LOOK_FOR_WORKERS = 2.0
"""Seconds after which workers that came or went are noticed."""


class Reached(NamedTuple):
    """How far a stream has come: with the model, all that is needed to go on from there."""

    partitions: int = 0
    """Partitions behind it: in the posterior or in rejects, and nothing else, but for `inside`."""
    records: int = 0
    """Records behind it, rejected ones included."""
    schema: Schema | None = None
    """What the records of its files are."""
    inside: Inside | None = None
    """Where in the next partition it stands; None: at its beginning."""


class Applied(NamedTuple):
    """A partition that has just been applied, or, at the head of a stream, some of it."""

    partition: int
    name: str
    model: Any
    """With the posterior; an estimator is the same object every time, changed by the next step."""
    stream: Stream
    """The posterior."""
    reached: Reached
    n_rows: int
    """Rows of it that went into the posterior."""
    rejects: tuple[Reject, ...]
    """Records of it that could not be used; `record` counts from the start of the stream."""
    unread: bool
    """It could not be read: nothing of it is in the posterior."""
    costs: Costs
    """Of the run so far."""


@dataclass
class StreamResult:
    """What became of a stream.

    Parameters
    ----------
    model : StreamingMixture or DocumentMixture
        The fitted model.
    reached : Reached
        Partitions and records behind it.
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
    """The cluster failed; the posterior of the last partition applied is there.

    Attributes
    ----------
    reason : str
        What failed.
    model : StreamingMixture or DocumentMixture
        That posterior.
    reached : Reached
        What is in it: ``fit_stream(..., start=error.reached)`` goes on from there.
    """

    def __init__(self, reason: str, model: Any, reached: Reached) -> None:
        others = "no others" if reached.inside is None else "the beginning of the next"
        super().__init__(
            f"{reason}: the first {reached.partitions} partitions are in the model, and {others}: "
            "go on from there with start=error.reached"
        )
        self.reason, self.model, self.reached = reason, model, reached


@dataclass
class _Flight:
    """A task that is out."""

    task: Task
    partition: Any
    index: int
    """Of the partition."""
    worker: str | None
    future: Any
    block: Any = None
    """What Dask computes of the partition."""


class Run:
    """A stream on its way.

    Parameters are those of `stream_partitions`.
    """

    def __init__(
        self,
        client: Any,
        model: Model,
        start: Reached,
        staleness: int,
        settle_every: int | None,
        options: Options | None,
        journal: Journal | None,
    ) -> None:
        self.client, self.reached, self.staleness = client, start, staleness
        self.settle_every, self.options, self.journal = settle_every, options, journal
        self.name = uuid.uuid4().hex
        self._model = model
        self.book = Book(Replica(opened(model), start.partitions), staleness)
        self.flights: dict[int, _Flight] = {}
        self.next = self.settled = start.partitions
        self._left: Inside | None = None
        """Where the partition goes on whose beginning was applied last."""
        self._kept: Any = None
        """What Dask computed of it: not to be computed again."""
        self.known: dict[str, int] = {}
        """By worker: the version that it will have when its tasks are done."""
        self.failed = False
        self._workers: list[str] = []
        self._looked = -LOOK_FOR_WORKERS

    def _up_to_date(self) -> Model:
        """Return the model with the newest posterior: an estimator is the same one every time."""
        if isinstance(self._model, StreamEstimator):
            found: Any = self.book.opened
            self._model.take_stream(found)
            return self._model
        return self.book.opened

    def over(self, partitions: Any) -> Iterator[Applied]:
        """Hand out partitions and apply what comes back, in order."""
        pieces = self._pieces(partitions)
        while True:
            self._hand_out(pieces)
            if not self.flights:
                return
            flight = self.flights[self.book.version]
            with self._failing():
                outcome = self._outcome(flight)
            if outcome is not None:
                del self.flights[self.book.version]
                yield self._apply(flight, outcome)

    def _pieces(self, partitions: Any) -> Iterator[tuple[Any, Inside | None]]:
        """Yield partitions that are left, and where in them to begin.

        Of the head of a stream a task absorbs the beginning of a partition only. Nobody asks for
        more until that is applied, so that it is known whether the partition goes on.
        """
        start = self.reached.inside
        for partition in islice(list_partitions(self.client, partitions), self.next, None):
            yield partition, start
            while self._left is not None:
                start, self._left = self._left, None
                yield partition, start
            start = None

    def _apply(self, flight: _Flight, outcome: Outcome) -> Applied:
        history = len(self.book.stream.lineage)
        self.book.apply(outcome)
        stream = self.book.stream
        if self.journal is not None and outcome.notes is not None:
            events = stream.lineage[history:]
            K = stream.state.n_clusters if stream.phase is Phase.RUNNING else 0
            notes, records = unpacked(outcome.notes), self.reached.records
            take_notes(self.journal, notes, records, self.book.renamed, K, events)
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

    def _base(self, number: int) -> int | None:
        """Return the version that a task starts from, or None if it is not there yet."""
        version = self.book.version
        if is_head(self.book.stream):
            self.settled = number
            return number if number == version else None
        base = max(number - self.staleness, self.settled)
        if self.settle_every is not None:
            base = max(base, number - self._index(number) % self.settle_every)
        return base if base <= version else None

    def _index(self, number: int) -> int:
        """Return the partition of a task: there is one more task for each that was cut so far."""
        return number - (self.book.version - self.reached.partitions)

    def _hand_out(self, pieces: Iterator[tuple[Any, Inside | None]]) -> None:
        """Hand out everything whose posterior is there."""
        began = time.thread_time()
        while (base := self._base(self.next)) is not None:
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
        about = (name_of(partition, index), self.options, self.reached.schema, before, start)
        head = self.staleness > 0 and is_head(self.book.stream)
        task = Task(self.name, number, base, snapshot, updates, *about, head)
        where: Any = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        block = self.client.compute(partition, **where) if needs_dask(partition) else None
        # The name of a task is new every time: a result is never taken for that of another.
        key = f"absorb_partition-{self.name}-{number}-{uuid.uuid4().hex}"
        with large_tasks():
            what = partition if block is None else block
            future = self.client.submit(absorb_partition, task, what, key=key, **where)
        if worker is not None:
            self.known[worker] = base
        return _Flight(task, partition, index, worker, future, block)

    def _choose_worker(self) -> str | None:
        """Return the worker with the fewest tasks; of those, the one that lacks least."""
        now = time.monotonic()
        if now - self._looked >= LOOK_FOR_WORKERS:
            # All of them: some versions of Dask name five. None if it is not connected.
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
            outcome = flight.future.result()
        except (CancelledError, CommClosedError, KilledWorker, TimeoutError):
            raise
        except Exception as error:
            if flight.block is None or flight.block.status != "error":
                raise
            outcome = unreadable(flight.task, "", error)
        finally:
            self.book.costs.waiting += time.perf_counter() - began
        if flight.worker is not None and outcome.worker != flight.worker:
            self.known.pop(flight.worker, None)  # it is gone, or was spared this task
        if not outcome.lacks:
            return outcome
        self.book.costs.n_repeated += 1
        self.known.pop(outcome.worker, None)
        task = flight.task
        self.flights[task.number] = self._sent(
            task.number, task.base, flight.partition, task.start, anew=True
        )
        return None

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Say what is there when the cluster fails."""
        try:
            yield
        except Exception as error:
            self.failed = True
            lost = isinstance(error, CancelledError | CommClosedError | OSError | TimeoutError)
            gone = lost or self.client.status != "running"
            what = f"the scheduler cannot be reached any more ({error})" if gone else str(error)
            raise StreamError(what, self._up_to_date(), self.reached) from error

    def close(self) -> None:
        """Call back what is out, and let workers forget the posterior."""
        for flight in self.flights.values():
            flight.future.release()
        if not self.failed:
            self.client.run(forget, self.name, on_error="ignore")


def is_head(stream: Stream) -> bool:
    """Return whether the first rows are still to decide on something."""
    if stream.phase is not Phase.RUNNING:
        return True
    learner = stream.learner
    return learner is not None and stream.state.n_observations < learner.n_first
