"""The journal of a stream whose rows are absorbed by workers.

A worker notes the rows of its task in a journal of its own. Its clusters are those of an older
posterior, and records are numbered from the first of the task on: the driver, which knows what
became of either, takes the notes over in the order of tasks. What it has then is what one process
would have noted.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.distributed.messages import Before, Notes, Opened, Renamed
from bnpstream.engine import Phase
from bnpstream.mixture import Event
from bnpstream.runs.exemplars import KEPT
from bnpstream.runs.journal import Journal, Waiting
from bnpstream.sources import Records

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def begin(journal: Journal, n_records: int) -> Before:
    """Return what a worker has to know that starts after so many records."""
    exemplars = journal.exemplars
    full = [id for id in exemplars.ids() if len(exemplars.of(id)) == KEPT]
    return Before(
        _numbered(journal.waiting, -n_records),
        np.array(full, np.int64),
        np.array([exemplars.of(id)[-1].score for id in full]),
    )


class _Rows:
    """Keeps what a `Trend` would count."""

    def __init__(self) -> None:
        self.parts: list[tuple[Integers, Floats, Integers]] = []

    def add(self, ids: Integers, evidence: Floats, clusters: Integers) -> None:
        """Keep rows."""
        self.parts.append((ids, evidence, clusters))

    def follow(self, events: list[Event]) -> None:
        """Leave that to the driver."""


class Noting:
    """A journal of the rows of a task.

    Parameters
    ----------
    before : Before
        What is known of the journal so far.
    names : tuple of str, optional
        What the columns are called.
    """

    def __init__(self, before: Before, names: tuple[str, ...] | None) -> None:
        self._journal, self._rows = Journal(names), _Rows()
        rows: Any = self._rows
        self._journal.trend = rows
        self._journal.waiting = before.waiting
        floors = zip(before.ids.tolist(), before.floors.tolist(), strict=True)
        self._journal.exemplars.floors = dict(floors)

    def add(self, records: Records, opened: Opened) -> None:
        """Note rows that a stream has just absorbed, or keeps until there are more."""
        stream, likelihood = opened.stream, opened.likelihood
        if stream.phase is Phase.PREFIX:
            self._journal.wait(records, likelihood)
        else:
            assert stream.last is not None
            self._journal.note(records, stream.last.absorbed, [], likelihood)

    def notes(self) -> Notes:
        """Return all."""
        journal = self._journal
        nothing: Any = (np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))
        columns = zip(nothing, *self._rows.parts, strict=True)
        ids, evidence, clusters = (np.concatenate(column) for column in columns)
        found = [(id, journal.exemplars.of(id)) for id in journal.exemplars.ids()]
        return Notes(ids, evidence, clusters, found, journal.n_tokens, journal.waiting)


def take_notes(
    journal: Journal,
    notes: Notes,
    n_records: int,
    renamed: Renamed | None,
    n_clusters: int,
    events: list[Event],
) -> None:
    """Take over what a worker noted of the next task.

    Parameters
    ----------
    journal : Journal
        Changed in place.
    notes : Notes
        What the worker noted.
    n_records : int
        Records before those of the task.
    renamed : Renamed or None
        What the driver made of its clusters; None if it had the newest posterior.
    n_clusters : int
        Clusters after it.
    events : list of Event
        What became of clusters in it.
    """
    ids, clusters, names = notes.ids, notes.clusters, None
    if renamed is not None:
        names = dict(zip(renamed.ids.tolist(), renamed.targets.tolist(), strict=True))
        order = np.argsort(renamed.ids)
        ids = renamed.targets[order[np.searchsorted(renamed.ids, ids, sorter=order)]]
        # The worker did not see the clusters of others: the number after its rows is known.
        clusters = clusters + (n_clusters - clusters[-1:].sum())
    journal.trend.add(ids, notes.evidence, clusters)
    for id, found in notes.exemplars:
        journal.exemplars.join(id if names is None else names[id], _numbered(found, n_records))
    journal.count_tokens(notes.n_tokens)
    journal.waiting = _numbered(notes.waiting, n_records)
    journal.follow(events)


def _numbered(found: list[Any], by: int) -> list[Any]:
    """Return records with other numbers; a record without an id has its number instead of one."""
    return [
        one._replace(**{name: number + by}, id=number + by if one.id == number else one.id)
        for one in found
        for name in ("number" if isinstance(one, Waiting) else "record",)
        for number in (getattr(one, name),)
    ]
