"""`fit_stream`: one pass over a stream by many workers, with bounded staleness.

Partition p starts from the posterior after partition p - 1 - s, s being the staleness, and what
partitions changed is applied in their order. So the result depends on the partitions and on s, and
neither on how many workers there are nor on which of them is faster.

The head of a stream is absorbed with no staleness: until the first rows have decided on what is
learnt from them. With s = 0 everything is, and the bits are those of `partial_fit`.
"""

import time
import uuid
from collections.abc import Generator, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import dask.config
from distributed import KilledWorker
from distributed.comm.core import CommClosedError

from bnpstream.distributed.absorbing import absorb_partition, forget, is_plain, unreadable
from bnpstream.distributed.driving import Book, Costs
from bnpstream.distributed.messages import Outcome, Task, unpacked
from bnpstream.distributed.noting import begin, take_notes
from bnpstream.distributed.partitions import list_partitions, name_of, needs_dask
from bnpstream.distributed.replicas import Replica
from bnpstream.estimator.base import require_whole
from bnpstream.jobs.journal import Journal
from bnpstream.jobs.models import Mixture
from bnpstream.streams import Options, Reject, Schema

LOOK_FOR_WORKERS = 2.0
"""Seconds after which workers that came or went are noticed."""


class Reached(NamedTuple):
    """How far a stream has come: with the model, all that is needed to go on from there."""

    partitions: int = 0
    """Partitions behind it: these are in the posterior or in rejects, and no others."""
    records: int = 0
    """Records behind it, rejected ones included."""
    schema: Schema | None = None
    """What the records of its files are."""


class Applied(NamedTuple):
    """A partition that has just been applied."""

    partition: int
    name: str
    model: Mixture
    """The posterior: the same object every time, changed by the next step."""
    reached: Reached
    n_rows: int
    """Rows of the partition in the posterior."""
    rejects: tuple[Reject, ...]
    """Records of it that could not be used; `record` counts from the start of the stream."""
    unread: bool
    """The partition could not be read: nothing of it is in the posterior."""
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
        Names of the partitions of which nothing could be used.
    costs : Costs
        Bytes and seconds.
    """

    model: Mixture
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

    def __init__(self, reason: str, model: Mixture, reached: Reached) -> None:
        super().__init__(
            f"{reason}: the first {reached.partitions} partitions are in the model, and no "
            "others: go on from there with start=error.reached"
        )
        self.reason, self.model, self.reached = reason, model, reached


def fit_stream(
    client: Any,
    partitions: Any,
    model: Mixture,
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
        Workers are used one partition at a time each: give them one thread.
    partitions
        What the stream is cut into, in order: a Dask bag, data frame or array; a path, of a
        directory, of files by a pattern, or of a Parquet file, whose row groups they are then; or
        anything that gives one after the other paths that `bnpstream.streams.open_source` reads,
        `dask.delayed` blocks, or blocks of rows. They are read by the workers.
    model : StreamingMixture or DocumentMixture
        Fitted or not; changed in place, as by `partial_fit`. What describes the rows of the last
        call, such as ``labels_``, is not there.
    staleness : int
        s: a partition may start from a posterior that lacks the s partitions before it, so that
        s + 1 are worked on at a time. 0 gives the bits of `partial_fit`, whatever the settings of
        the model; more than 0 needs a plain pass: no rows that are revisited, merges by shared
        rows, or half-life. A budget of clusters or memory is kept after every partition.
    settle_every : int, optional
        Partitions after which the next one waits for all before it. A run that was stopped there
        and is started again ends with the same bits as one that was not.
    start : Reached, optional
        Where an earlier run of this model came to: partitions up to there are left out.
    source_options : Options, optional
        What is known about files.

    Returns
    -------
    result : StreamResult
        The model, what was rejected, and what it cost.
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
    model: Mixture,
    *,
    staleness: int = 1,
    settle_every: int | None = None,
    start: Reached | None = None,
    source_options: Options | None = None,
    journal: Journal | None = None,
) -> Generator[Applied]:
    """Absorb a stream by the workers of a Dask cluster, yielding after every partition.

    Parameters
    ----------
    client, partitions, model, staleness, settle_every, start, source_options
        As in `fit_stream`; the stream is not finished.
    journal : Journal, optional
        Where the rows of files are noted, as one process would; changed in place.

    Yields
    ------
    applied : Applied
        In the order of partitions, each once.
    """
    require_whole("staleness", staleness, 0)
    if settle_every is not None:
        require_whole("settle_every", settle_every, 1)
    check_supported(model, staleness)
    start = start or Reached()
    run = _Run(client, model, start, staleness, settle_every, source_options, journal)
    try:
        yield from run.over(partitions)
    finally:
        run.close()


def check_supported(model: Mixture, staleness: int) -> None:
    """Raise ValueError if a model cannot start from older posteriors."""
    if staleness == 0 or is_plain(model):
        return
    settings = {
        name: value
        for name in ("revisit", "keep_sites", "merge_threshold", "half_life")
        if (value := getattr(model, name, None)) not in (None, 0, "auto")
    }
    what = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    raise ValueError(
        f"staleness={staleness} needs a StreamingMixture that passes over its rows once, and this "
        f"is a {type(model).__name__} with {what or 'a vocabulary that grows'}: "
        "give staleness=0, which goes with everything"
    )


@dataclass
class _Flight:
    """A task that is out."""

    task: Task
    partition: Any
    worker: str | None
    future: Any
    block: Any = None
    """What Dask computes of the partition."""


class _Run:
    """A stream on its way."""

    def __init__(
        self,
        client: Any,
        model: Mixture,
        start: Reached,
        staleness: int,
        settle_every: int | None,
        options: Options | None,
        journal: Journal | None,
    ) -> None:
        self.client, self.reached, self.staleness = client, start, staleness
        self.settle_every, self.options, self.journal = settle_every, options, journal
        self.name = uuid.uuid4().hex
        self.book = Book(Replica(model, start.partitions), staleness)
        self.flights: dict[int, _Flight] = {}
        self.next = start.partitions
        self.settled = start.partitions
        self.known: dict[str, int] = {}
        """By worker: the version that it will have when its tasks are done."""
        self.failed = False
        self._workers: list[str] = []
        self._looked = -LOOK_FOR_WORKERS

    def over(self, partitions: Any) -> Iterator[Applied]:
        """Hand out partitions and apply what comes back, in order."""
        rest = islice(list_partitions(self.client, partitions), self.next, None)
        while True:
            self._hand_out(rest)
            if not self.flights:
                return
            flight = self.flights[self.book.version]
            with self._failing():
                outcome = self._outcome(flight)
            if outcome is not None:
                del self.flights[self.book.version]
                yield self._apply(flight, outcome)

    def _apply(self, flight: _Flight, outcome: Outcome) -> Applied:
        history = len(vars(self.book.model).get("lineage_", []))
        self.book.apply(outcome)
        if self.journal is not None and outcome.notes is not None:
            model = self.book.model
            events = vars(model).get("lineage_", [])[history:]
            K = model.state_.n_clusters if "state_" in vars(model) else 0
            notes, behind = unpacked(outcome.notes), self.reached.records
            take_notes(self.journal, notes, behind, self.book.renamed, K, events)
        rejects = tuple(
            reject._replace(record=reject.record + self.reached.records)
            for reject in outcome.rejects
        )
        schema = self.reached.schema or outcome.schema
        records = self.reached.records + outcome.n_records
        self.reached = Reached(self.book.version, records, schema)
        return Applied(
            outcome.partition,
            flight.task.name,
            self.book.model,
            self.reached,
            outcome.n_rows,
            rejects,
            outcome.unread,
            self.book.costs,
        )

    def _base(self, partition: int) -> int | None:
        """Return the version that a partition starts from, or None if it is not there yet."""
        version = self.book.version
        if is_head(self.book.model):
            self.settled = partition
            return partition if partition == version else None
        base = max(partition - self.staleness, self.settled)
        if self.settle_every is not None:
            base = max(base, partition - partition % self.settle_every)
        return base if base <= version else None

    def _hand_out(self, rest: Iterator[Any]) -> None:
        """Hand out all partitions whose posterior is there."""
        began = time.thread_time()
        while (base := self._base(self.next)) is not None:
            for partition in islice(rest, 1):
                with self._failing():
                    self.flights[self.next] = self._sent(self.next, base, partition)
                self.next += 1
                break
            else:
                break
        self.book.costs.sending += time.thread_time() - began

    def _sent(self, number: int, base: int, partition: Any, *, anew: bool = False) -> _Flight:
        worker = self._choose_worker()
        version = None if anew or worker is None else self.known.get(worker)
        snapshot, updates = self.book.since(version, base)
        name = name_of(partition, number)
        schema = self.reached.schema
        before = None if self.journal is None else begin(self.journal, self.reached.records)
        about = (name, self.options, schema, before)
        task = Task(self.name, number, base, snapshot, updates, *about)
        where: Any = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        block = self.client.compute(partition, **where) if needs_dask(partition) else None
        # The name of a task is new every time: a result is never taken for that of another.
        key = f"absorb_partition-{self.name}-{number}-{uuid.uuid4().hex}"
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "4 GiB"}):
            what = partition if block is None else block
            future = self.client.submit(absorb_partition, task, what, key=key, **where)
        if worker is not None:
            self.known[worker] = base
        return _Flight(task, partition, worker, future, block)

    def _choose_worker(self) -> str | None:
        """Return the worker with the fewest tasks; of those, the one that lacks least."""
        now = time.monotonic()
        if now - self._looked >= LOOK_FOR_WORKERS:
            found = self.client.scheduler_info().get("workers", {})  # none if it is not connected
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
        self.flights[task.partition] = self._sent(
            task.partition, task.base, flight.partition, anew=True
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
            raise StreamError(what, self.book.model, self.reached) from error

    def close(self) -> None:
        """Call back what is out, and let workers forget the posterior."""
        for flight in self.flights.values():
            flight.future.release()
        if not self.failed:
            self.client.run(forget, self.name, on_error="ignore")


def is_head(model: Any) -> bool:
    """Return whether the first rows are still to decide on something."""
    if "state_" not in vars(model) or "prefix_" in vars(model):
        return True
    learner = vars(model).get("_learner")
    return learner is not None and model.state_.n_observations < learner.n_first
