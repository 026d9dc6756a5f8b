"""Topics as rows of the first table."""

from dataclasses import dataclass

import numpy as np

from bnpstream.likelihoods.features import NAMED_BY, Feature
from bnpstream.report.clusters import LISTED as CLUSTERS
from bnpstream.report.clusters import spark
from bnpstream.report.pictures import ink
from bnpstream.runs.description import RunDescription, TopicDescription
from bnpstream.runs.trend import recent_growth

LISTED = 200
"""Number of topics, largest first, that are listed."""
SHOWN = 12
"""Words per topic, including those in its name."""
LINKED = 6
"""Number of clusters, largest first, that a topic links to."""


@dataclass(frozen=True)
class TopicRow:
    """A topic in the table."""

    topic: TopicDescription
    recent: float | None
    further: list[Feature]
    """Distinctive features that are not in its name."""
    spark: str
    image: str | None
    example: str
    """A typical record, unless the topic is named after it; may be empty."""
    linked: list[int]
    """Ids of clusters, largest first."""


def topic_rows(run: RunDescription) -> list[TopicRow]:
    """Return the largest topics as rows."""
    lengths = np.diff(run.bin_ends, prepend=0).astype(float)
    listed = {cluster.id for cluster in run.clusters[:CLUSTERS]}
    rows = []
    for topic in run.topics[:LISTED]:
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
    """Return the beginning of a typical record that does not repeat the topic's name."""
    excerpts = (one.excerpt for one in topic.exemplars)
    return next((text for text in excerpts if text and text not in topic.label), "")
