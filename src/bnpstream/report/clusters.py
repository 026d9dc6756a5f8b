"""Clusters as rows of a table: the numbers that the templates put into words."""

import math
from dataclasses import dataclass

import numpy as np

from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods.features import Feature
from bnpstream.report.pictures import difference, ink, trend_path
from bnpstream.runs.description import ClusterDescription, RunDescription
from bnpstream.runs.trend import recent_growth

DETAILED = 200
"""Number of clusters, largest first, whose details can be opened: as many as a page can bear."""
LISTED = 2000
"""Number of clusters, largest first, that are listed."""
FEATURES = 12
"""Features of an open cluster."""
SPARKS = 32
"""Bins of the small trend in a row: fewer than the stream has, for a calmer line."""


@dataclass(frozen=True)
class Panel:
    """Details of a cluster; features come with the lengths of their bars, from 0 to 100."""

    trend: str
    peak: float
    likely: list[tuple[Feature, float]]
    lifted: list[tuple[Feature, float]]
    deviations: list[tuple[Feature, float]]
    image: str | None
    difference: str | None


@dataclass(frozen=True)
class Row:
    """A cluster in the table."""

    cluster: ClusterDescription
    recent: float | None
    unusual: list[Feature]
    spark: str
    panel: Panel | None


def rows_of(run: RunDescription) -> list[Row]:
    """Return the largest clusters as rows; the very largest with details."""
    lengths = np.diff(run.bin_ends, prepend=0).astype(float)
    of_all = _mean_of_all(run)
    return [
        Row(
            cluster,
            recent_growth(cluster.trend, lengths),
            most_unusual(cluster) if run.kind == "columns" else [],
            spark(cluster.trend, lengths),
            _panel(run, cluster, lengths, of_all) if place < DETAILED else None,
        )
        for place, cluster in enumerate(run.clusters[:LISTED])
    ]


def spark(trend: list[int], lengths: Floats) -> str:
    """Return the outline of a trend in at most `SPARKS` bins."""
    step = -(-len(trend) // SPARKS)
    starts = np.arange(0, len(trend), max(step, 1))
    if not starts.size:
        return trend_path([])
    return trend_path(np.add.reduceat(trend, starts) / np.add.reduceat(lengths, starts))


def most_unusual(cluster: ClusterDescription) -> list[Feature]:
    """Return the columns of a cluster: the most unusual ones, then the others that are known."""
    others = sorted(cluster.likely, key=lambda column: -abs(column.lift))
    return list({column.name: column for column in [*cluster.lifted, *others]}.values())


def bar_lengths(values: list[float]) -> list[float]:
    """Return the lengths of bars; the longest is 100.

    Examples
    --------
    >>> bar_lengths([3.0, 1.0, -2.0])
    [100.0, 33.3, 0.0]
    """
    longest = max(values, default=0.0)
    return [round(100 * value / longest, 1) if value > 0 else 0.0 for value in values]


def _measured(features: list[Feature], sizes: list[float]) -> list[tuple[Feature, float]]:
    """Return the first features with bars in proportion to their sizes."""
    return list(zip(features, bar_lengths(sizes), strict=True))[:FEATURES]


def _panel(
    run: RunDescription, cluster: ClusterDescription, lengths: Floats, of_all: Floats | None
) -> Panel:
    shares = np.divide(cluster.trend, lengths) if cluster.trend else np.zeros(0)
    columns = most_unusual(cluster)[:FEATURES] if run.kind == "columns" else []
    image, against = ink(cluster.mean, run.image_shape), None
    if run.image_shape is not None and cluster.mean is not None and of_all is not None:
        against = difference(cluster.mean, of_all, run.image_shape)
    bare = run.kind == "columns" or image is not None
    likely, lifted = ([], []) if bare else (cluster.likely, cluster.lifted)
    return Panel(
        trend=trend_path(shares),
        peak=float(shares.max(initial=0.0)),
        likely=_measured(likely, [word.value for word in likely]),
        lifted=_measured(lifted, [math.log1p(max(word.lift, 0.0)) for word in lifted]),
        deviations=_measured(columns, [abs(column.lift) for column in columns]),
        image=image,
        difference=against,
    )


def _mean_of_all(run: RunDescription) -> Floats | None:
    """Return the mean image of the stream."""
    known = [cluster for cluster in run.clusters if cluster.mean is not None]
    if not known:
        return None
    weights = np.array([cluster.weight for cluster in known])
    means = np.array([cluster.mean for cluster in known])
    mean: Floats = weights @ means / max(weights.sum(), 1e-300)
    return mean
