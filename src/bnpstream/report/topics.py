"""Topics as rows of a table, which leads the page."""

from dataclasses import dataclass

import numpy as np

from bnpstream.likelihoods.features import NAMED_BY, Feature
from bnpstream.report.clusters import LISTED as CLUSTERS
from bnpstream.report.clusters import spark
from bnpstream.report.pictures import ink
from bnpstream.runs.description import RunDescription, TopicDescription
from bnpstream.runs.trend import recent_growth

LISTED = 200
"""Heaviest topics that have a row."""
SHOWN = 12
"""Words of a topic, those of its name included."""
LINKED = 6
"""Heaviest clusters of a topic that it links to."""


@dataclass(frozen=True)
class TopicRow:
    """A topic in the table."""

    topic: TopicDescription
    recent: float | None
    further: list[Feature]
    """What tells it apart besides what its name says."""
    spark: str
    image: str | None
    example: str
    """A typical record, unless it is the name of the topic; may be empty."""
    linked: list[int]
    """Clusters, the heaviest first."""


def topic_rows(run: RunDescription) -> list[TopicRow]:
    """Return the heaviest topics."""
    lengths = np.diff(run.bin_ends, prepend=0).astype(float)
    listed = {cluster.id for cluster in run.clusters[:CLUSTERS]}
    rows = []
    for topic in run.topics[:LISTED]:
        image = None
        if run.image_shape is not None and topic.mean is not None:
            image = ink(topic.mean, run.image_shape)
        rows.append(
            TopicRow(
                topic,
                recent_growth(topic.trend, lengths),
                topic.lifted[NAMED_BY:SHOWN],
                spark(topic.trend, lengths),
                image,
                "" if image else _example(topic),
                [id for id in topic.clusters[:LINKED] if id in listed],
            )
        )
    return rows


def _example(topic: TopicDescription) -> str:
    """Return the beginning of a typical record that does not say the same as the topic's name."""
    excerpts = (one.excerpt for one in topic.exemplars)
    return next((text for text in excerpts if text and text not in topic.label), "")
