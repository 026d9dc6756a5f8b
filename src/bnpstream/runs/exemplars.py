"""A few typical records per cluster, collected along the stream."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats
from bnpstream.mixture import Event
from bnpstream.runs.description import Exemplar

KEPT = 3
"""Exemplars per cluster."""
SURE = 0.5
"""Least responsibility with which a record counts for a cluster."""


class Exemplars:
    """Keeps the most typical records of each cluster, see `Likelihood.typicality`.

    Attributes
    ----------
    floors : dict
        Scores that new records of a cluster must exceed, if other workers have enough exemplars.
    """

    def __init__(self) -> None:
        self._best: dict[int, list[Exemplar]] = {}
        self.floors: dict[int, float] = {}

    def add(
        self,
        ids: NDArray[np.int64],
        shares: Floats,
        scores: Floats,
        describe: Callable[[int], tuple[int, str | int, str]],
    ) -> None:
        """Consider rows in order.

        Parameters
        ----------
        ids, shares : ndarray of shape (n,)
            Likeliest cluster of each row and its responsibility.
        scores : ndarray of shape (n,)
            How typical each row is.
        describe : callable
            Row -> number of the record, its id, an excerpt; called for rows that are kept.
        """
        known, which = np.unique(ids, return_inverse=True)
        floors = np.array([self._floor(id) for id in known.tolist()])
        better = np.flatnonzero((shares >= SURE) & (scores > floors[which]))
        better = better[np.lexsort((-scores[better], which[better]))]
        starts = np.flatnonzero(np.diff(which[better], prepend=-1)).tolist()
        for start, stop in pairwise([*starts, better.size]):
            found = []
            for row in better[start : min(stop, start + KEPT)].tolist():
                number, record, excerpt = describe(row)
                found.append(Exemplar(number, record, float(scores[row]), excerpt))
            self.join(int(ids[better[start]]), found)

    def _floor(self, id: int) -> float:
        """Return the score that a record of a cluster must exceed."""
        kept = self._best.get(id, [])
        return kept[-1].score if len(kept) == KEPT else self.floors.get(id, -np.inf)

    def join(self, id: int, found: list[Exemplar]) -> None:
        """Add exemplars of a cluster that were found elsewhere; keep the best."""
        if candidates := [*self._best.get(id, []), *found]:
            self._best[id] = sorted(candidates, key=lambda one: (-one.score, one.record))[:KEPT]

    def follow(self, events: list[Event]) -> None:
        """Pass exemplars of merged clusters on to the survivors; drop those of dead clusters."""
        for event in events:
            if event.kind == "birth":
                continue
            lost = self._best.pop(event.id, [])
            if event.into is not None:
                self.join(event.into, lost)

    def ids(self) -> list[int]:
        """Return the ids of clusters with exemplars."""
        return list(self._best)

    def of(self, id: int) -> list[Exemplar]:
        """Return the exemplars of a cluster, best first."""
        return self._best.get(id, [])

    def document(self) -> list[tuple[int, list[Exemplar]]]:
        """Return all exemplars, in order of cluster id."""
        return sorted(self._best.items())

    @classmethod
    def from_document(cls, document: list[tuple[int, list[Exemplar]]]) -> "Exemplars":
        """Return the object that `document` described."""
        found = cls()
        found._best = dict(document)
        return found
