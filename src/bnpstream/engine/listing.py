"""Clusters, topics and their lineage as columns of data frames."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnpstream.engine.portraits import TopicPortraits, births
from bnpstream.engine.posterior import Posterior
from bnpstream.likelihoods.features import Features, label_of
from bnpstream.mixture import Event

Columns = dict[str, list[Any]]


def cluster_columns(
    posterior: Posterior, topics: TopicPortraits, events: Sequence[Event], names: Any, n_words: int
) -> Columns:
    """Return one row per cluster, largest first.

    Parameters
    ----------
    posterior : Posterior
        The clusters.
    topics : TopicPortraits
        Their topics.
    events : sequence of Event
        Births, as far as known.
    names : sequence of str
        Names of the columns of rows.
    n_words : int
        Words, or columns, per cluster.

    Returns
    -------
    columns : dict of lists
        id, label, words, size, share, born, topic.
    """
    likelihood = posterior.model.likelihood
    found = _columns(
        posterior.ids.tolist(),
        posterior.weights,
        posterior.state.masses[posterior.order],
        births(events),
        likelihood.describe(names, posterior),
        likelihood.feature_kind,
        n_words,
    )
    own = dict(zip(posterior.ids.tolist(), topics.ids.tolist(), strict=True))
    return found | {"topic": [own[id] for id in found["id"]]}


def topic_columns(
    posterior: Posterior, topics: TopicPortraits, events: Sequence[Event], names: Any, n_words: int
) -> Columns:
    """Return one row per topic, largest first.

    Parameters
    ----------
    posterior, topics, events, names, n_words
        As in `cluster_columns`.

    Returns
    -------
    columns : dict of lists
        id, label, words, size, share, born, and the ids of its clusters, ascending.
    """
    likelihood, ids = posterior.model.likelihood, topics.topics.ids.tolist()
    found = _columns(
        ids,
        topics.weights,
        topics.sizes,
        births(events, "topic"),
        likelihood.describe(names, topics),
        likelihood.feature_kind,
        n_words,
    )
    own = {id: posterior.ids[topics.groups == j].tolist() for j, id in enumerate(ids)}
    return found | {"clusters": [own[id] for id in found["id"]]}


def lineage_columns(events: Sequence[Event]) -> Columns:
    """Return one row per event, in order: row, level, kind, id, into, others, mass."""
    return {
        "row": [event.n_observations for event in events],
        **{name: [getattr(event, name) for event in events] for name in ("level", "kind", "id")},
        "into": [event.into for event in events],
        "others": [list(event.others) for event in events],
        "mass": [event.mass for event in events],
    }


def _columns(
    ids: list[int],
    shares: Any,
    sizes: Any,
    born: dict[int, int],
    features: Features,
    kind: str,
    n_words: int,
) -> Columns:
    """Return the columns that clusters and topics share."""
    order = np.argsort(-shares, kind="stable").tolist()
    lifted = [features.of(k, n_words).lifted for k in order]
    return {
        "id": [ids[k] for k in order],
        "label": [label_of(one, kind) for one in lifted],
        "words": [[feature.name for feature in one] for one in lifted],
        "size": [float(sizes[k]) for k in order],
        "share": [float(shares[k]) for k in order],
        "born": [born.get(ids[k]) for k in order],
    }
