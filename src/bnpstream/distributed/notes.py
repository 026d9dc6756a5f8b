"""The journal of a stream whose rows are absorbed by workers.

A worker notes the rows of its task in a journal of its own. Its clusters are those of an older
posterior, and records are numbered from the first of the task on. The driver, which knows the new
names of both, adds the notes to its journal in the order of tasks. The result is what one process
would have noted.
"""

from typing import Any

import numpy as np

from bnpstream.engine import Phase
from bnpstream.engine.parallel.changes import OpenedStream
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.mixture import Event
from bnpstream.runs.exemplars import KEPT
from bnpstream.runs.journal import Journal, Waiting
from bnpstream.sources import Records

Renamed = tuple[Integers, Integers]
"""Ids of clusters where a task was absorbed, and their ids for the driver."""


class Rows:
    """Stands in for the `Trend` of a worker's journal: keeps the rows that it would count."""

    def __init__(self) -> None:
        self._parts = [(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))]

    def add(self, ids: Integers, evidence: Floats, clusters: Integers) -> None:
        """Keep rows."""
        self._parts.append((ids, evidence, clusters))

    def follow(self, events: list[Event]) -> None:
        """Do nothing; the driver follows events."""

    def columns(self) -> list[Any]:
        """Return most likely cluster, log evidence and number of clusters after each row."""
        return [np.concatenate(column) for column in zip(*self._parts, strict=True)]


def begin(journal: Journal, n_records: int) -> Journal:
    """Return the journal of a worker that starts after this many records.

    Of the notes so far it knows the records whose rows wait for more, numbered below 0, and
    the scores that exemplars must exceed: other records are not considered.
    """
    own, exemplars = Journal(), journal.exemplars
    rows: Any = Rows()
    own.trend, own.waiting = rows, _numbered(journal.waiting, -n_records)
    best = {id: exemplars.of(id) for id in exemplars.ids()}
    own.exemplars.floors = {id: kept[-1].score for id, kept in best.items() if len(kept) == KEPT}
    return own


def note(journal: Journal, records: Records, opened: OpenedStream) -> None:
    """Note rows that a stream has just absorbed, or keeps until more arrive."""
    stream, likelihood = opened.stream, opened.likelihood
    if stream.phase is Phase.PREFIX:
        journal.wait(records, likelihood)
    else:
        assert stream.last is not None
        journal.note(records, stream.last.absorbed, [], likelihood)


def take_over(
    journal: Journal,
    noted: Journal,
    n_records: int,
    renamed: Renamed | None,
    n_clusters: int,
    events: list[Event],
) -> None:
    """Add what a worker noted about the next task to the journal.

    Parameters
    ----------
    journal : Journal
        Changed in place.
    noted : Journal
        The worker's.
    n_records : int
        Number of records before those of the task.
    renamed : Renamed or None
        The driver's ids of its clusters; None if it had the newest posterior.
    n_clusters : int
        Number of clusters after it.
    events : list of Event
        Events of clusters in it.
    """
    rows: Any = noted.trend
    (ids, evidence, clusters), names = rows.columns(), None
    if renamed is not None:
        own, targets = renamed
        names = dict(zip(own.tolist(), targets.tolist(), strict=True))
        order = np.argsort(own)
        ids = targets[order[np.searchsorted(own, ids, sorter=order)]]
        # The worker did not see the clusters of others; only the number after its rows is known.
        clusters = clusters + (n_clusters - clusters[-1:].sum())
    journal.trend.add(ids, evidence, clusters)
    for id in noted.exemplars.ids():
        found = _numbered(noted.exemplars.of(id), n_records)
        journal.exemplars.join(id if names is None else names[id], found)
    journal.count_tokens(noted.n_tokens)
    journal.waiting = _numbered(noted.waiting, n_records)
    journal.follow(events)


def _numbered(found: list[Any], by: int) -> list[Any]:
    """Return renumbered records; a record without an id has its number as id."""
    return [
        one._replace(**{name: number + by}, id=number + by if one.id == number else one.id)
        for one in found
        for name in ("number" if isinstance(one, Waiting) else "record",)
        for number in (getattr(one, name),)
    ]
