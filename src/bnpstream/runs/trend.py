"""Growth of clusters along a stream of any length, in 64 bins that widen as it grows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats
from bnpstream.mixture import Event

BINS = 64

Arrays = dict[str, NDArray[Any]]


class Trend:
    """Rows, evidence and clusters per bin, and rows per bin of each cluster.

    All bins have the same width. When the last is full, neighbours are joined, which makes room
    again. So memory does not grow with the stream, and the result does not depend on how the
    stream was cut into batches.

    Attributes
    ----------
    width : int
        Rows per bin.
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
        self._counts: dict[int, NDArray[np.int64]] = {}

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
            known, which = np.unique(ids[rows], return_inverse=True)
            counts = np.zeros((known.size, BINS), np.int64)
            np.add.at(counts, (which, bins), 1)
            for id, own in zip(known.tolist(), counts, strict=True):
                self._count(id, own)
            self.n_rows += stop - start
            start = stop

    def _count(self, id: int, counts: NDArray[np.int64]) -> None:
        """Add rows of a cluster, bin by bin."""
        self._counts[id] = self._counts.get(id, 0) + counts

    def _widen(self) -> None:
        """Join neighbouring bins."""
        half = BINS // 2
        for part in (self.evidence, *self._counts.values()):
            part[:half] = part[::2] + part[1::2]
            part[half:] = 0
        self.clusters[:half] = self.clusters[1::2]
        self.clusters[half:] = 0
        self.width *= 2

    def follow(self, events: list[Event]) -> None:
        """Add the counts of merged clusters to the survivors, and drop those of dead clusters."""
        for event in events:
            if event.kind != "birth" and event.id in self._counts:
                counts = self._counts.pop(event.id)
                if event.into is not None:
                    self._count(event.into, counts)

    @property
    def n_bins(self) -> int:
        """Return the number of bins with rows."""
        return -(-self.n_rows // self.width)

    def ends(self) -> list[int]:
        """Return the rows seen at the end of each bin."""
        return [min((i + 1) * self.width, self.n_rows) for i in range(self.n_bins)]

    def counts(self, id: int) -> list[int]:
        """Return the rows of a cluster in each bin."""
        found: list[int] = self._counts.get(id, np.zeros(BINS, np.int64)).tolist()
        return found[: self.n_bins]

    def arrays(self) -> Arrays:
        """Return everything as arrays, with clusters in order of id."""
        ids = sorted(self._counts)
        return {
            "trend.shape": np.array([self.width, self.n_rows]),
            "trend.evidence": self.evidence,
            "trend.clusters": self.clusters,
            "trend.ids": np.array(ids, np.int64),
            "trend.counts": np.array([self._counts[id] for id in ids], np.int64).reshape(-1, BINS),
        }

    @classmethod
    def of(cls, arrays: Arrays) -> "Trend":
        """Return the trend that `arrays` described; ValueError if they are not those of a trend."""
        n = arrays["trend.ids"].size
        for name, shape in (("evidence", (BINS,)), ("clusters", (BINS,)), ("counts", (n, BINS))):
            if arrays[f"trend.{name}"].shape != shape:
                raise ValueError(f"the array trend.{name} does not have {BINS} bins")
        trend = cls()
        trend.width, trend.n_rows = (int(x) for x in arrays["trend.shape"])
        width = trend.width
        if width < 1 or width & (width - 1) or not 0 <= trend.n_rows <= width * BINS:
            raise ValueError(f"the array trend.shape is invalid: {width}, {trend.n_rows}")
        trend.evidence = arrays["trend.evidence"].copy()
        trend.clusters = arrays["trend.clusters"].copy()
        counts = arrays["trend.counts"].astype(np.int64)
        trend._counts = dict(zip(arrays["trend.ids"].tolist(), counts, strict=True))
        return trend


def recent_growth(trend: list[int], lengths: Floats) -> float | None:
    """Return the share of the last quarter of the stream's rows, divided by the share of all.

    Examples
    --------
    >>> recent_growth([0, 0, 16, 48], np.full(4, 64.0))
    3.0
    """
    n_last = len(trend) // 4
    if not n_last or not sum(trend):
        return None
    last = sum(trend[-n_last:]) / lengths[-n_last:].sum()
    return float(last / (sum(trend) / lengths.sum()))
