"""A river plot: the shares of topics or clusters along the stream, and events of clusters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bnpstream.kernels.arrays import Floats
from bnpstream.mixture import Event
from bnpstream.plots.events import count_events
from bnpstream.report.charts import DRAWN
from bnpstream.report.phrases import percent, whole, word
from bnpstream.report.pictures import short
from bnpstream.runs.description import RunDescription

BANDS = 8
"""Largest topics or clusters with a band of their own; all others share one."""
HEIGHT, STRIP = 100, 10
"""Heights of the river, and of each strip of events below it."""
VERBS = {"birth": "born", "merge": "merged", "death": "died", "retire": "retired"}


class Series(NamedTuple):
    """The data of a band."""

    link: str
    name: str
    trend: Sequence[int]


@dataclass(frozen=True)
class Band:
    """A band of the river."""

    link: str
    name: str
    colour: int
    path: str
    share: float
    shares: list[float]


@dataclass(frozen=True)
class River:
    """Bands from top to bottom, and strips of events; one unit per bin."""

    bands: list[Band]
    strips: list[tuple[str, int, str]]
    """Kind of event, number of events, and the bars."""
    ends: list[int]
    words: str

    @property
    def width(self) -> int:
        """Return the width in bins."""
        return max(len(self.ends) - 1, 1)


def river_of(
    run: RunDescription, series: list[Series], whose: str, ids: set[int] | None = None
) -> River | None:
    """Return a river whose bands are as wide as shares of the stream; None if there is no data.

    Parameters
    ----------
    run : RunDescription
        The run.
    series : list of Series
        Topics or clusters, largest first.
    whose : str
        "topics" or "clusters".
    ids : set of int, optional
        Clusters whose events are shown; all by default.
    """
    if not run.bin_ends or not series:
        return None
    trends = np.array([one.trend for one in series], dtype=float)
    if trends.sum() == 0:
        return None
    shown, rest = list(series[:BANDS]), series[BANDS:]
    flows = trends[:BANDS]
    if rest:
        shown.append(Series("", f"{whole(len(rest))} others", ()))
        flows = np.vstack([flows, trends[BANDS:].sum(axis=0)])
    shares = flows / np.diff(run.bin_ends, prepend=0)
    tops = np.vstack([np.zeros(shares.shape[1]), np.cumsum(shares, axis=0)])
    widest = tops[-1].max()
    edges = HEIGHT * (tops + (widest - tops[-1]) / 2) / widest
    overall = flows.sum(axis=1) / trends.sum()
    bands = [
        Band(
            one.link,
            word(one.name),
            i if one.link else BANDS,
            _band(edges[i], edges[i + 1]),
            float(overall[i]),
            shares[i].tolist(),
        )
        for i, one in enumerate(shown)
    ]
    largest = ", ".join(f"{band.name} {percent(band.share)}" for band in bands[:3])
    words = f"River: shares of {len(bands)} {whose} along {whole(run.rows)} rows; {largest}."
    events = [event for event in run.cluster_events if ids is None or ids & {event.id, event.into}]
    return River(bands, _strips(run.bin_ends, events), run.bin_ends, words)


def _band(top: Floats, bottom: Floats) -> str:
    """Return the outline of a band.

    Examples
    --------
    >>> _band(np.zeros(2), np.array([50.0, 25.0]))
    'M0 0L1 0L1 25L0 50Z'
    """
    if len(top) == 1:
        top, bottom = np.repeat(top, 2), np.repeat(bottom, 2)
    xs = range(len(top))
    there = [f"{x} {short(y)}" for x, y in zip(xs, top, strict=True)]
    back = [f"{x} {short(y)}" for x, y in zip(reversed(xs), bottom[::-1], strict=True)]
    return f"M{'L'.join([*there, *back])}Z"


def _strips(ends: list[int], events: list[Event]) -> list[tuple[str, int, str]]:
    """Return the events of clusters in each bin, as bars."""
    counts = count_events(ends, events)
    strips = []
    for kind in DRAWN:
        own = np.asarray(counts.get(kind, ()), dtype=float)
        if own.sum() > 0:
            heights = STRIP * np.sqrt(own / own.max())
            bars = "".join(
                f"M{i} {STRIP}v{short(-height)}h.9v{short(height)}z"
                for i, height in enumerate(heights)
                if height > 0
            )
            strips.append((VERBS[kind], int(own.sum()), bars))
    return strips
