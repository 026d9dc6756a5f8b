"""What the driver does with what a partition added: ids, matches, learning, a budget.

Everything happens in the order of partitions, to the posterior of the version before. Workers are
told the outcome, and add the same numbers to the same clusters.
"""

from collections.abc import Iterable
from copy import deepcopy

import numpy as np
from numpy.typing import NDArray

from bnpstream.distributed.matching import ALONE, Clusters, match
from bnpstream.distributed.messages import Added, Resolution
from bnpstream.distributed.replicas import Replica
from bnpstream.engine import Stream
from bnpstream.inference.budget import keep_within
from bnpstream.mixture import Event, survivor
from bnpstream.mixture.entries import entry_rows

Integers = NDArray[np.int64]


def resolve(
    replica: Replica, change: Added, recent: Iterable[Event]
) -> tuple[Resolution, list[Event]]:
    """Apply what a partition added to an older posterior; return what was decided, and births.

    Parameters
    ----------
    replica : Replica
        The driver's posterior; brought to the next version.
    change : Added
        What the partition added.
    recent : iterable of Event
        What became of clusters since that older posterior, in order.

    Returns
    -------
    resolution : Resolution
        What all others have to know.
    births : list of Event
        Of clusters that the partition opened; merges of those that were there already.
    """
    stream = replica.stream
    state, learner = stream.state, stream.learner
    due = learner is not None and state.n_observations + change.n_rows >= learner.n_next
    if learner is not None and due and change.probe is not None:
        learner.judge(stream.trial, stream.model, change.probe, state)
    targets, opened, events = _targets(stream, change, recent)
    settled = Resolution(
        targets,
        opened,
        state.next_id + sum(event.kind == "birth" for event in events),
        stream.prior,
        None,
        learner,
        [],
    )
    replica.take(change, settled)
    if due:
        settled = _learn_again(stream, settled)
    removed = keep_within(stream.settings.budget, stream.model, state, [])
    stream.lineage += events + removed
    # Later learning changes the learner; what is sent is what it is now.
    return settled._replace(removed=removed, learner=deepcopy(settled.learner)), events


def _learn_again(stream: Stream, settled: Resolution) -> Resolution:
    """Learn what is to be learnt at this row count, as a stream does by itself."""
    state, learner = stream.state, settled.learner
    assert learner is not None
    better = learner.again(stream.trial, stream.model, state)
    assert better is not None
    learner.skip(state.n_observations)
    likelihood = better.likelihood.relocated(state.totals(better.likelihood.n_located))
    stream.adopt(better.prior, likelihood, learner)
    return settled._replace(prior=better.prior, likelihood=likelihood)


def _targets(
    stream: Stream, change: Added, recent: Iterable[Event]
) -> tuple[Integers, Integers, list[Event]]:
    """Return the cluster of every row of a change, which of them are new, and what to log.

    A cluster that was merged away meanwhile has its survivor; what was retired opens anew. New
    clusters are matched with those born since the posterior that the partition started from.
    """
    state = stream.state
    targets = np.append(change.ids, np.full(change.born.size, ALONE))
    for row in np.flatnonzero(~np.isin(change.ids, state.ids)):
        lives_on = survivor(int(change.ids[row]), recent)
        targets[row] = ALONE if lives_on is None else lives_on
    new = np.flatnonzero(targets == ALONE)
    there = np.flatnonzero(state.ids >= change.next_id)
    D, entries = state.n_statistics, change.entries
    rows = entry_rows(D, targets.size, entries.places, entries.values)
    clusters = Clusters(rows[new], change.masses[new], change.log_vacancy[new])
    same = match(stream.model, state, clusters, there)
    fresh = state.next_id + np.arange(new.size)
    targets[new] = np.where(same == ALONE, fresh, state.ids[same])
    born = np.append(np.zeros(change.ids.size, np.int64), change.born)[new]
    events = []
    for id, time, row, slot in zip(fresh, state.n_observations + born, new, same, strict=True):
        mass = float(change.masses[row])
        events.append(Event("birth", int(id), None, int(time), mass))
        if slot != ALONE:
            into = int(state.ids[slot])
            events.append(Event("merge", int(id), into, int(time), mass))
    return targets, fresh[same == ALONE], events
