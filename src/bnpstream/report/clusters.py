"""Clusters as rows of a table: what is shown, in words."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.likelihoods.features import Feature
from bnpstream.report.phrases import (
    LONGEST_EXCERPT,
    LONGEST_WORD,
    number,
    percent,
    shorten,
    times,
    whole,
)
from bnpstream.report.pictures import difference, ink, trend_path
from bnpstream.runs.description import ClusterDescription, RunDescription

DETAILED = 200
"""Heaviest clusters that can be opened: what a page carries easily."""
LISTED = 2000
"""Heaviest clusters that have a row."""
FEATURES, EXEMPLARS = 12, 3
"""Shown of an open cluster."""
PREVIEW = 6
"""Features shown of a closed one."""
SPARKS = 32
"""Bins of the small trend in a row: fewer than the stream has, for a calmer line."""


class Bar(NamedTuple):
    """A feature with a bar."""

    name: str
    text: str
    length: float
    """From 0 to 100."""


class Deviation(NamedTuple):
    """A column's mean, and how unusual it is."""

    name: str
    mean: str
    deviation: str
    start: float
    length: float
    """Of a bar, from 0 to 100: the stream's mean is at 50."""


class Tendency(NamedTuple):
    """A column, and whether its mean is above the stream's."""

    name: str
    above: bool


class Example(NamedTuple):
    """A typical record."""

    name: str
    excerpt: str


@dataclass(frozen=True)
class Panel:
    """What an open cluster shows."""

    trend: str
    peak: str
    likely: list[Bar]
    lifted: list[Bar]
    deviations: list[Deviation]
    exemplars: list[Example]
    image: str | None
    difference: str | None


@dataclass(frozen=True)
class Row:
    """A cluster: texts to show, and the numbers to sort by."""

    cluster: ClusterDescription
    share: str
    size: str
    born: str
    recent: float | None
    likely: list[str]
    lifted: list[str]
    tendencies: list[Tendency]
    spark: str
    panel: Panel | None


def rows_of(run: RunDescription) -> list[Row]:
    """Return the heaviest clusters; the very heaviest with all that is known about them."""
    lengths = np.diff(run.bin_ends, prepend=0).astype(float)
    of_all = _mean_of_all(run)
    rows = []
    for place, cluster in enumerate(run.clusters[:LISTED]):
        rows.append(
            Row(
                cluster,
                percent(cluster.weight),
                whole(cluster.size) if cluster.size >= 10 else f"{cluster.size:.1f}",
                "-" if cluster.born is None else whole(cluster.born),
                recent_growth(cluster.trend, lengths),
                _preview(cluster.likely),
                _preview(cluster.lifted),
                [Tendency(_name(column), column.lift > 0) for column in most_unusual(cluster)[:4]],
                spark(cluster.trend, lengths),
                _panel(run, cluster, lengths, of_all) if place < DETAILED else None,
            )
        )
    return rows


def recent_growth(trend: list[int], lengths: NDArray[np.float64]) -> float | None:
    """Return the share of the last quarter of the stream's rows, over the share of all.

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


def spark(trend: list[int], lengths: NDArray[np.float64]) -> str:
    """Return the outline of a trend in at most `SPARKS` bins."""
    step = -(-len(trend) // SPARKS)
    starts = np.arange(0, len(trend), max(step, 1))
    if not starts.size:
        return trend_path([])
    return trend_path(np.add.reduceat(trend, starts) / np.add.reduceat(lengths, starts))


def word_bars(features: list[Feature]) -> list[Bar]:
    """Return words with bars as long as their probabilities."""
    longest = max((word.value for word in features), default=0.0)
    return [
        Bar(_name(word), percent(word.value), _length(word.value, longest))
        for word in features[:FEATURES]
    ]


def lift_bars(features: list[Feature]) -> list[Bar]:
    """Return words with bars as long as the logarithms of their lifts."""
    lifts = [math.log1p(max(word.lift, 0.0)) for word in features]
    longest = max(lifts, default=0.0)
    return [
        Bar(_name(word), times(word.lift), _length(lift, longest))
        for word, lift in zip(features[:FEATURES], lifts, strict=False)
    ]


def most_unusual(cluster: ClusterDescription) -> list[Feature]:
    """Return the columns of a cluster, those farthest from the stream's mean first."""
    features = {column.name: column for column in [*cluster.lifted, *cluster.likely]}
    return sorted(features.values(), key=lambda column: -abs(column.lift))


def deviations_of(cluster: ClusterDescription) -> list[Deviation]:
    """Return the columns of a cluster with bars to both sides, the most unusual first."""
    columns = most_unusual(cluster)[:FEATURES]
    longest = max((abs(column.lift) for column in columns), default=0.0)
    found = []
    for column in columns:
        length = _length(abs(column.lift), longest) / 2
        start = 50.0 if column.lift > 0 else 50.0 - length
        text = f"{column.lift:+.1f} sd"
        found.append(Deviation(_name(column), number(column.value), text, start, length))
    return found


def _panel(
    run: RunDescription,
    cluster: ClusterDescription,
    lengths: NDArray[np.float64],
    of_all: NDArray[np.float64] | None,
) -> Panel:
    shares = np.divide(cluster.trend, lengths) if cluster.trend else np.zeros(0)
    columns = run.kind == "columns"
    image = against = None
    if run.image_shape is not None and cluster.mean is not None and of_all is not None:
        image = ink(cluster.mean, run.image_shape)
        against = difference(cluster.mean, of_all, run.image_shape)
    bare = columns or image is not None
    return Panel(
        trend=trend_path(shares),
        peak=percent(float(shares.max(initial=0.0))),
        likely=[] if bare else word_bars(cluster.likely),
        lifted=[] if bare else lift_bars(cluster.lifted),
        deviations=deviations_of(cluster) if columns else [],
        exemplars=[
            Example(shorten(str(found.id), LONGEST_WORD), shorten(found.excerpt, LONGEST_EXCERPT))
            for found in cluster.exemplars[:EXEMPLARS]
        ],
        image=image,
        difference=against,
    )


def _mean_of_all(run: RunDescription) -> NDArray[np.float64] | None:
    """Return the mean image of the stream."""
    known = [cluster for cluster in run.clusters if cluster.mean is not None]
    if not known:
        return None
    weights = np.array([cluster.weight for cluster in known])
    means = np.array([cluster.mean for cluster in known])
    mean: NDArray[np.float64] = weights @ means / max(weights.sum(), 1e-300)
    return mean


def _preview(features: list[Feature]) -> list[str]:
    return [_name(feature) for feature in features[:PREVIEW]]


def _name(feature: Feature) -> str:
    return shorten(feature.name, LONGEST_WORD)


def _length(value: float, longest: float) -> float:
    return round(100 * value / longest, 1) if longest > 0 and value > 0 else 0.0
