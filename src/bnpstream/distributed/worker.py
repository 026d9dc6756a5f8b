"""What a worker does: bring its posterior to a version, absorb a partition, say what changed."""

import ctypes
import sys
import time
from dataclasses import replace
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from distributed import get_worker

from bnpstream.distributed.messages import (
    Added,
    Assigned,
    Entries,
    Opened,
    Outcome,
    Task,
    Whole,
    packed,
)
from bnpstream.distributed.notes import Noting
from bnpstream.distributed.partitions import Read, read
from bnpstream.distributed.replica import Replica, without_history
from bnpstream.engine import FixedColumns, Phase, Stream
from bnpstream.engine.learner import PROBE
from bnpstream.likelihoods import Batch
from bnpstream.likelihoods.frames import as_rows
from bnpstream.mixture.entries import changed_places, differences, read_entries, touched_slots
from bnpstream.runs.absorption import sound_parts
from bnpstream.sources import Records, Reject
from bnpstream.sources.records import beginning

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGEST = 32 << 20
"""Bytes up to which glibc takes memory from its own heap, at most."""
KEPT = 512 << 20
"""Bytes at the end of the heap that are not given back."""


@cache
def keep_freed_memory() -> None:
    """Let this process keep memory that it frees for its next arrays, where there is glibc.

    Dask's nannies ask glibc to give back what is freed at once (``MALLOC_TRIM_THRESHOLD_``). Then
    every array of a partition is made of new pages, zeroed by the system: a pass over the New York
    Times-size corpus takes 12.3 seconds in place of 8.3.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # another C library
        return
    for name, value in ((M_MMAP_THRESHOLD, LARGEST), (M_TRIM_THRESHOLD, KEPT), (M_ARENA_MAX, 1)):
        mallopt(name, value)


_REPLICAS: dict[str, Replica] = {}
"""By run: what this process has, the run of the last task at the end."""
MOST_RUNS = 4
"""Posteriors that are kept: a run that was broken off leaves its own behind."""
_LOCK = Lock()
"""A partition at a time: the posterior is one."""


def absorb_partition(task: Task, partition: Any) -> Outcome:
    """Absorb a partition; the result depends on nothing but the task and the partition."""
    worker = get_worker().address
    keep_freed_memory()
    with _LOCK:
        began = time.thread_time()
        replica = _replica_for(task)
        if replica is None:
            return Outcome(task.number, worker, lacks=True)
        try:
            found = read(partition, task.options, task.schema, task.start, head=task.head)
        except MemoryError:
            raise
        except Exception as error:  # whatever it is, the partition cannot be had
            return unreadable(task, worker, error)
        outcome = _absorb(task, replica, found)
        return outcome._replace(worker=worker, seconds=time.thread_time() - began)


def unreadable(task: Task, worker: str, error: BaseException) -> Outcome:
    """Return the outcome of a partition that cannot be read."""
    what = "partition" if task.start is None else f"partition from record {task.start.records} on"
    reason = f"the {what} cannot be read: {str(error) or type(error).__name__}"
    reject = Reject(task.name, 1, 0, beginning(reason), "")
    return Outcome(task.number, worker, rejects=(reject,), n_records=1, unread=True)


def forget(run: str) -> None:
    """Let go of the posterior of a run; no need to wait for a partition that nobody waits for."""
    _REPLICAS.pop(run, None)


def _replica_for(task: Task) -> Replica | None:
    """Return the posterior at the version that a task starts from, or None if it lacks some."""
    replica = _REPLICAS.get(task.run)
    if replica is None or replica.version > task.base:
        if task.snapshot is None:
            return None
        replica = Replica.of(task.snapshot)
    needed = [update for update in task.updates if update.version > replica.version]
    if replica.version + len(needed) < task.base:
        if task.snapshot is None or task.snapshot[0] <= replica.version:
            return None
        replica = Replica.of(task.snapshot)
        needed = [update for update in task.updates if update.version > replica.version]
    _REPLICAS.pop(task.run, None)  # if an update fails, nothing half-done is left
    for update in needed:
        replica.apply(update)
    _REPLICAS[task.run] = replica
    if len(_REPLICAS) > MOST_RUNS:
        del _REPLICAS[next(iter(_REPLICAS))]
    return replica


def _absorb(task: Task, replica: Replica, found: Read) -> Outcome:
    opened = replica.working_copy()
    if not task.exact:
        hold_still(opened.stream)

    def absorb(part: Records) -> Any:
        return opened.absorb(part.rows, part.times or None)

    rejects, n_rows, first = [], 0, None
    noting = None
    if task.before is not None:
        noting = Noting(task.before, None if found.schema is None else found.schema.names)
    for records in found.batches:
        rejects += records.rejects
        for part, _, refused in sound_parts(records, absorb, task.name):
            if refused is None:
                n_rows += len(part)
                first = part if first is None else first
                if noting is not None:
                    noting.add(part, opened)
            else:
                rejects.append(refused)
    rejects.sort(key=lambda reject: reject.record)
    outcome = Outcome(
        task.number,
        "",
        n_rows=n_rows,
        n_records=found.n_records,
        rejects=tuple(rejects),
        schema=found.schema,
        after=found.after,
        notes=None if noting is None else packed(noting.notes()),
    )
    if n_rows == 0:
        return outcome
    before, stream = replica.stream, opened.stream
    if task.exact:
        change = packed(exact_change(before, opened))
        outcome = outcome._replace(change=change, events=tuple(stream.lineage))
    else:
        assert first is not None
        learner = before.learner
        probe = None if learner is None or learner.scale is None else _probe(stream, first)
        outcome = outcome._replace(change=packed(added(before, stream, probe)))
    if only_adds(stream) and before.phase is Phase.RUNNING:
        replica.give_back(stream.state, task.number)
    return outcome


def hold_still(stream: Stream) -> None:
    """Let a stream absorb rows without learning and without a budget: the driver sees to these."""
    learnt: Any = stream.prior
    stream.adopt(replace(learnt, learn=()), None, None)
    stream.configure(replace(stream.settings, max_clusters=None, max_memory=None))


def only_adds(stream: Stream) -> bool:
    """Return whether clusters stay where they are, whatever comes."""
    settings = stream.settings
    return is_plain(stream) and settings.max_clusters is None and settings.max_memory is None


def is_plain(stream: Stream) -> bool:
    """Return whether a budget is the only reason for which clusters may go."""
    fixed = isinstance(stream.encoder, FixedColumns)
    return fixed and not stream.revisits and stream.settings.half_life is None


def exact_change(before: Stream, opened: Opened) -> Assigned | Whole:
    """Return what a partition left that started from the newest posterior."""
    after = opened.stream
    if not only_adds(after) or before.phase is not Phase.RUNNING:
        return Whole(without_history(opened))
    state = after.state
    slots = touched_slots(before.state, state)
    places = changed_places(before.state, state, slots)
    return Assigned(
        slots,
        Entries.of(places, read_entries(state, slots, places)),
        state.masses,
        state.log_vacancy,
        state.ids,
        state.arrays.counters,
        state.arrays.totals,
        after.prior,
        None if after.likelihood is before.likelihood else after.likelihood,
        after.learner,
    )


def added(before: Stream, after: Stream, probe: Batch | None) -> Added:
    """Return what a partition added to an older posterior."""
    old, new = before.state, after.state
    slots = touched_slots(old, new)
    known = slots[slots < old.n_clusters]
    places = changed_places(old, new, slots)
    masses, log_vacancy = new.masses[slots], new.log_vacancy[slots]
    masses[: known.size] -= old.masses[known]
    log_vacancy[: known.size] -= old.log_vacancy[known]
    births = [event.n_observations for event in after.lineage if event.kind == "birth"]
    return Added(
        old.ids[known],
        np.array(births, np.int64) - old.n_observations,
        Entries.of(places, differences(old, new, slots, places)),
        masses,
        log_vacancy,
        new.total_mass - old.total_mass,
        new.log_evidence - old.log_evidence,
        new.auxiliary,
        new.n_observations - old.n_observations,
        old.next_id,
        probe,
    )


def _probe(stream: Stream, records: Records) -> Batch:
    """Return the first rows, encoded: they may have to decide on a scale."""
    return stream.view(as_rows(records.rows[:PROBE]))
