"""How clusters grew along a stream of any length: sixty-four bins that widen as it goes on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.mixture import Event

BINS = 64

Arrays = dict[str, NDArray[Any]]


class Trend:
    """Rows, evidence and clusters a bin, and rows a bin of every cluster.

    All bins are equally many rows wide. When the last is full, neighbours are joined and there is
    room again: memory does not grow with the stream, and what is kept does not depend on how it was
    cut into batches.

    Attributes
    ----------
    width : int
        Rows of a bin.
    n_rows : int
        Rows so far.
    evidence : ndarray of shape (BINS,)
        Summed one-step-ahead log predictives.
    clusters : ndarray of shape (BINS,)
        Clusters after the last row of a bin.
    """

    def __init__(self) -> None:
        self.width, self.n_rows = 1, 0
        self.evidence = np.zeros(BINS)
        self.clusters = np.zeros(BINS, np.int64)
        self._slots: dict[int, int] = {}
        self._counts = np.zeros((64, BINS), np.int64)

    def add(
        self, ids: NDArray[np.int64], evidence: NDArray[np.float64], clusters: NDArray[np.int64]
    ) -> None:
        """Add rows in order: likeliest cluster, log evidence, and clusters after each."""
        start = 0
        while start < len(ids):
            if self.n_rows == BINS * self.width:
                self._widen()
            stop = min(len(ids), start + BINS * self.width - self.n_rows)
            rows = slice(start, stop)
            bins = (self.n_rows + np.arange(stop - start)) // self.width
            np.add.at(self.evidence, bins, evidence[rows])
            self.clusters[bins] = clusters[rows]
            slots = self._slots_of(ids[rows])
            np.add.at(self._counts, (slots, bins), 1)
            self.n_rows += stop - start
            start = stop

    def _slots_of(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        known, which = np.unique(ids, return_inverse=True)
        slots = []
        for id in known.tolist():
            if id not in self._slots:
                self._slots[id] = self._free_slot()
            slots.append(self._slots[id])
        return np.array(slots, np.intp)[which]

    def _free_slot(self) -> int:
        taken = len(self._slots)
        if taken == len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        return taken

    def _widen(self) -> None:
        half = BINS // 2
        for part in (self.evidence, self._counts):
            part[..., :half] = part[..., ::2] + part[..., 1::2]
            part[..., half:] = 0
        self.clusters[:half] = self.clusters[1::2]
        self.clusters[half:] = 0
        self.width *= 2

    def follow(self, events: list[Event]) -> None:
        """Let clusters that were merged live on in others, and forget the dead."""
        for event in events:
            if event.kind == "birth" or event.id not in self._slots:
                continue
            counts = self._counts[self._slots[event.id]].copy()
            self._remove(event.id)
            if event.into is not None:
                if event.into not in self._slots:
                    self._slots[event.into] = self._free_slot()
                self._counts[self._slots[event.into]] += counts

    def _remove(self, id: int) -> None:
        """Free the slot of a cluster; the last one takes it."""
        slot, last = self._slots.pop(id), len(self._slots)
        if slot != last:
            moved = next(key for key, value in self._slots.items() if value == last)
            self._slots[moved] = slot
            self._counts[slot] = self._counts[last]
        self._counts[last] = 0

    @property
    def n_bins(self) -> int:
        """Return how many bins have rows."""
        return -(-self.n_rows // self.width)

    def ends(self) -> list[int]:
        """Return the rows seen at the end of every bin."""
        return [min((i + 1) * self.width, self.n_rows) for i in range(self.n_bins)]

    def counts(self, id: int) -> list[int]:
        """Return the rows of a cluster in every bin."""
        if id not in self._slots:
            return [0] * self.n_bins
        found: list[int] = self._counts[self._slots[id], : self.n_bins].tolist()
        return found

    def arrays(self) -> Arrays:
        """Return all as arrays, clusters in order of id."""
        ids = sorted(self._slots)
        slots = [self._slots[id] for id in ids]
        return {
            "trend.shape": np.array([self.width, self.n_rows]),
            "trend.evidence": self.evidence,
            "trend.clusters": self.clusters,
            "trend.ids": np.array(ids, np.int64),
            "trend.counts": self._counts[slots],
        }

    @classmethod
    def of(cls, arrays: Arrays) -> "Trend":
        """Return what `arrays` described; ValueError if they cannot be those of a trend."""
        for name in ("evidence", "clusters", "counts"):
            if arrays[f"trend.{name}"].shape[-1] != BINS:
                raise ValueError(f"the array trend.{name} has not {BINS} bins")
        trend = cls()
        trend.width, trend.n_rows = (int(x) for x in arrays["trend.shape"])
        trend.evidence, trend.clusters = (
            arrays["trend.evidence"].copy(),
            arrays["trend.clusters"].copy(),
        )
        trend._slots = {id: slot for slot, id in enumerate(arrays["trend.ids"].tolist())}
        size = max(64, len(trend._slots))
        trend._counts = np.zeros((size, BINS), np.int64)
        trend._counts[: len(trend._slots)] = arrays["trend.counts"]
        return trend
