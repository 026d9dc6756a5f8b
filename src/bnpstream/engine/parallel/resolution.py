"""Applies what a part added to an older posterior to the newest one.

Parts are resolved in order, each against the posterior of the previous version: ids, matches of new
clusters, learning, a budget. With the resolution, every replica adds the same numbers to the same
clusters.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from bnpstream.engine.parallel.changes import Added, Learnt, Resolution
from bnpstream.inference.budget import keep_within
from bnpstream.inference.matching import ALONE, ClusterRows, match
from bnpstream.kernels.arrays import Integers
from bnpstream.mixture import Event, survivor

if TYPE_CHECKING:
    from bnpstream.engine.stream import Stream


def resolve(
    stream: "Stream", change: Added, recent: Iterable[Event]
) -> tuple[Resolution, list[Event]]:
    """Apply what a part added to an older posterior; return the decisions, and births.

    Parameters
    ----------
    stream : Stream
        The newest posterior; the part is added to it. The caller updates its history.
    change : Added
        What the part added.
    recent : iterable of Event
        Events of clusters since that older posterior, in order.

    Returns
    -------
    resolution : Resolution
        What other replicas need to know.
    births : list of Event
        Births of clusters that the part opened; merges of clusters that existed already. They
        come before the removals.
    """
    state, learner = stream.state, stream.learner
    due = learner is not None and state.n_observations + change.n_rows >= learner.n_next
    if learner is not None and due and change.probe is not None:
        learner.judge(stream.trial, stream.model, change.probe, state)
    targets, opened, events = _targets(stream, change, recent)
    next_id = state.next_id + sum(event.kind == "birth" for event in events)
    learnt = Learnt(stream.prior, None, learner)
    settled = Resolution(targets, opened, next_id, learnt, [])
    change.apply(stream, settled)
    if due:
        learnt = _learn_again(stream)
    removed = keep_within(stream.settings.budget, stream.model, state, [])
    # Later learning changes the learner; send a copy of its current state.
    told = learnt._replace(learner=deepcopy(learnt.learner))
    return settled._replace(learnt=told, removed=removed), events


def _learn_again(stream: "Stream") -> Learnt:
    """Learn what is due at this row count, as a stream does by itself."""
    state, learner = stream.state, stream.learner
    assert learner is not None
    better = learner.again(stream.trial, stream.model, state)
    assert better is not None
    learner.skip(state.n_observations)
    likelihood = better.likelihood.relocated(state.totals(better.likelihood.n_located))
    learnt = Learnt(better.prior, likelihood, learner)
    stream.adopt(*learnt)
    return learnt


def _targets(
    stream: "Stream", change: Added, recent: Iterable[Event]
) -> tuple[Integers, Integers, list[Event]]:
    """Return the cluster of each row of a change, which of them are new, and events to log.

    A cluster that was merged in the meantime is replaced by its survivor; a retired one opens
    again. New clusters are matched with those born since the posterior that the part started from.
    """
    state = stream.state
    targets = np.append(change.ids, np.full(change.born.size, ALONE))
    for row in np.flatnonzero(~np.isin(change.ids, state.ids)):
        lives_on = survivor(int(change.ids[row]), recent)
        targets[row] = ALONE if lives_on is None else lives_on
    new = np.flatnonzero(targets == ALONE)
    there = np.flatnonzero(state.ids >= change.next_id)
    rows = change.entries.rows(new, state.n_statistics)
    fresh = state.next_id + np.arange(new.size)
    clusters = ClusterRows(fresh, rows, change.masses[new], change.log_vacancy[new])
    same = match(stream.model, state, ClusterRows.of(state, there), clusters)
    targets[new] = np.where(same == ALONE, fresh, same)
    born = np.append(np.zeros(change.ids.size, np.int64), change.born)[new]
    events = []
    for id, at, row, into in zip(fresh, state.n_observations + born, new, same, strict=True):
        mass = float(change.masses[row])
        events.append(Event("birth", int(id), None, int(at), mass))
        if into != ALONE:
            events.append(Event("merge", int(id), int(into), int(at), mass))
    return targets, fresh[same == ALONE], events
