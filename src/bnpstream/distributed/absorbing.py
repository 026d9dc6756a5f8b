"""What a worker does: bring its posterior to a version, absorb a partition, say what changed."""

import time
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
from distributed import get_worker

from bnpstream.distributed.memory import keep_freed_memory
from bnpstream.distributed.messages import Added, Assigned, Entries, Outcome, Task, Whole, packed
from bnpstream.distributed.noting import Noting
from bnpstream.distributed.partitions import Read, read
from bnpstream.distributed.replicas import Replica, without_history
from bnpstream.engine.learner import PROBE
from bnpstream.estimators import StreamingMixture
from bnpstream.likelihoods import Batch
from bnpstream.mixture.entries import changed_places, differences, read_entries, touched_slots
from bnpstream.runs.absorption import absorb_sound
from bnpstream.runs.model_options import Mixture
from bnpstream.sources import Records, Reject
from bnpstream.sources.records import beginning

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
    model = replica.working_copy()
    if not task.exact:
        assert isinstance(model, StreamingMixture)
        hold_still(model)
    rejects, n_rows, first = [], 0, None
    noting = None
    if task.before is not None:
        noting = Noting(task.before, None if found.schema is None else found.schema.names)
    for records in found.batches:
        rejects += records.rejects
        for part, refused in absorb_sound(model, records, task.name):
            if refused is None:
                n_rows += len(part)
                first = part if first is None else first
                if noting is not None:
                    noting.add(part, model)
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
    if task.exact:
        # What rows did that still wait is undone and done again when there are enough of them.
        events = () if model.provisional_ else tuple(model.lineage_)
        outcome = outcome._replace(change=packed(exact_change(replica.model, model)), events=events)
    else:
        assert first is not None
        learner = vars(replica.model).get("_learner")
        probe = None if learner is None or learner.scale is None else _probe(model, first)
        outcome = outcome._replace(change=packed(added(replica.model, model, probe)))
    if only_adds(model) and "state_" in vars(replica.model):
        replica.give_back(model.state_, task.number)
    return outcome


def hold_still(model: StreamingMixture) -> None:
    """Let a model absorb rows without learning and without a budget: the driver sees to these."""
    learnt: Any = model._prior()
    model.__dict__.pop("_learner", None)
    model.prior = prior = replace(learnt, learn=())
    model._take_prior(prior)
    model.max_clusters = model.max_memory = None


def only_adds(model: Mixture) -> bool:
    """Return whether clusters stay where they are, whatever comes."""
    return is_plain(model) and model.max_clusters is None and model.max_memory is None


def is_plain(model: Mixture) -> bool:
    """Return whether a budget is the only reason for which clusters may go."""
    return (
        isinstance(model, StreamingMixture)
        and model._schedule(batch_fit=False) is None
        and model.half_life is None
    )


def exact_change(before: Mixture, after: Mixture) -> Assigned | Whole:
    """Return what a partition left that started from the newest posterior."""
    if not only_adds(after) or "state_" not in vars(before):
        return Whole(without_history(after))
    state = after.state_
    slots = touched_slots(before.state_, state)
    places = changed_places(before.state_, state, slots)
    return Assigned(
        slots,
        Entries.of(places, read_entries(state, slots, places)),
        state.masses,
        state.log_vacancy,
        state.ids,
        state.arrays.counters,
        state.arrays.totals,
        after._prior(),
        None if after.likelihood_ is before.likelihood_ else after.likelihood_,
        vars(after).get("_learner"),
    )


def added(before: Mixture, after: Mixture, probe: Batch | None) -> Added:
    """Return what a partition added to an older posterior."""
    old, new = before.state_, after.state_
    slots = touched_slots(old, new)
    known = slots[slots < old.n_clusters]
    places = changed_places(old, new, slots)
    masses, log_vacancy = new.masses[slots], new.log_vacancy[slots]
    masses[: known.size] -= old.masses[known]
    log_vacancy[: known.size] -= old.log_vacancy[known]
    births = [event.n_observations for event in after.lineage_ if event.kind == "birth"]
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


def _probe(model: StreamingMixture, records: Records) -> Batch:
    """Return the first rows, encoded: they may have to decide on a scale."""
    return model._encode(model._model(), records.rows[:PROBE])
