"""A worker's job: bring its posterior to a version, absorb a partition, return the changes."""

import ctypes
import sys
import time
from copy import deepcopy
from functools import cache
from threading import Lock
from typing import Any

from distributed import get_worker

from bnpstream.distributed.messages import Outcome, Task, packed
from bnpstream.distributed.notes import note
from bnpstream.distributed.partitions import Read, read
from bnpstream.engine import Phase
from bnpstream.engine.learner import PROBE
from bnpstream.engine.parallel.changes import Added, exact_change
from bnpstream.engine.parallel.replica import Replica
from bnpstream.engine.parallel.staleness import hold_still, only_adds
from bnpstream.likelihoods.frames import as_rows
from bnpstream.runs.absorption import sound_parts
from bnpstream.sources import Records, Reject
from bnpstream.sources.records import beginning

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGEST = 32 << 20
"""Largest allocation, in bytes, that glibc takes from its own heap."""
KEPT = 512 << 20
"""Bytes at the end of the heap that are not returned to the system."""


@cache
def keep_freed_memory() -> None:
    """Let this process reuse freed memory for its next arrays, with glibc.

    Dask's nannies make glibc return freed memory at once (``MALLOC_TRIM_THRESHOLD_``). Then each
    array of a partition consists of new pages, zeroed by the system: a pass over the New York
    Times-size corpus takes 12.3 seconds instead of 8.3.
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
"""Replicas of this process by run, the run of the last task at the end."""
MOST_RUNS = 4
"""Most posteriors that are kept; an aborted run leaves its own behind."""
_LOCK = Lock()
"""One partition at a time, because there is one posterior."""


def absorb_partition(task: Task, partition: Any) -> Outcome:
    """Absorb a partition; the result depends only on the task and the partition."""
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
        except Exception as error:  # whatever the error, the partition cannot be read
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
    """Forget the posterior of a run, without waiting for partitions in progress."""
    _REPLICAS.pop(run, None)


def _replica_for(task: Task) -> Replica | None:
    """Return the posterior at the version that a task starts from, or None if it lacks some."""
    replica = _REPLICAS.get(task.run)
    if replica is None or not task.leads_from(replica.version):
        if task.snapshot is None:
            return None
        replica = task.snapshot.replica()
    _REPLICAS.pop(task.run, None)  # if an update fails, nothing half-done is left
    for update in task.updates:
        if update.version > replica.version:
            update.apply(replica)
    _REPLICAS[task.run] = replica
    if len(_REPLICAS) > MOST_RUNS:
        del _REPLICAS[next(iter(_REPLICAS))]
    return replica


def _absorb(task: Task, replica: Replica, found: Read) -> Outcome:
    opened: Any = replica.working_copy()
    if not task.exact:
        hold_still(opened.stream)

    def absorb(part: Records) -> Any:
        return opened.absorb(part.rows, part.times or None)

    journal = deepcopy(task.journal)
    if journal is not None and found.schema is not None:
        journal.names = found.schema.names
    rejects, n_rows, first = [], 0, None
    for records in found.batches:
        rejects += records.rejects
        for part, _, refused in sound_parts(records, absorb, task.name):
            if refused is None:
                n_rows += len(part)
                first = part if first is None else first
                if journal is not None:
                    note(journal, part, opened)
            else:
                rejects.append(refused)
    rejects.sort(key=lambda reject: reject.record)
    if journal is not None:
        journal.exemplars.floors = {}  # the driver has them
    outcome = Outcome(
        task.number,
        "",
        n_rows=n_rows,
        n_records=found.n_records,
        rejects=tuple(rejects),
        schema=found.schema,
        after=found.after,
        notes=None if journal is None else packed(journal),
    )
    if first is None:
        return outcome
    before, stream = replica.stream, opened.stream
    if task.exact:
        change: Any = exact_change(before, opened)
        outcome = outcome._replace(events=tuple(stream.lineage))
    else:
        learner, probe = before.learner, None
        if learner is not None and learner.scale is not None:  # these rows may have to decide on it
            probe = stream.view(as_rows(first.rows[: max(PROBE, learner.rehearsed)]))
        change = Added.between(before.state, stream.state, stream.lineage, probe)
    outcome = outcome._replace(change=packed(change))
    if only_adds(stream) and before.phase is Phase.RUNNING:
        replica.give_back(stream.state, task.number)
    return outcome
