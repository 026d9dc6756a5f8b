"""Reading a run directory: what the run found, as a `RunDescription`."""

from collections import Counter
from collections.abc import Iterable
from copy import copy
from functools import cached_property
from math import isqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bnpstream.engine.listing import cluster_columns, lineage_columns, topic_columns
from bnpstream.engine.portraits import TopicPortraits, births
from bnpstream.engine.topics import Topics
from bnpstream.likelihoods.features import Described, label_of
from bnpstream.likelihoods.frames import frame_of
from bnpstream.mixture import Event
from bnpstream.runs.description import (
    ClusterDescription,
    Exemplar,
    GroupDescription,
    RunDescription,
    TopicDescription,
    TopicsFound,
    TreeDescription,
)
from bnpstream.runs.start import load_checkpoint, read_schema, settings_of
from bnpstream.runs.trend import recent_growth
from bnpstream.sources import Schema
from bnpstream.storage import RunError, intact, read_config, read_log

MOST_IN_TREE = 3000
"""Largest number of clusters for which the tree is found; for more it would take long."""
LEVELS, GROUPS = (5, 20, 80), 20
"""Levels at which the tree of a description is cut, and the level it is optimised for."""


class Run:
    """Reads a run directory.

    Parameters
    ----------
    folder : Path
        The directory.

    Attributes
    ----------
    config : dict
        Settings.
    checkpoint : Checkpoint
        Counts and position in the last checkpoint.
    schema : Schema
        Schema of the records.
    source_options : Options
        Options of the source.
    model : Mixture
        Model of the last checkpoint.
    members : dict
        Clusters of the checkpoint that make up each cluster.
    journal : Journal
        Notes about the stream.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = read_config(folder)
        if "source" not in self.config:
            raise RunError(f"{folder}: holds a saved model, not a run: load it in Python")
        self.schema: Schema = read_schema(folder, self.config)
        self.source_options, _ = settings_of(folder, self.config)
        self.checkpoint, self.model, self.journal = load_checkpoint(folder, self.schema)
        if self.checkpoint.rows == 0:
            raise RunError(f"{folder}: has not absorbed any rows yet: wait, or feed it some")
        self.members = {int(id): [int(id)] for id in self.model.posterior.ids}

    def coarsened(self, n_clusters: int) -> "Run":
        """Return the run with its clusters merged into this many groups; nothing is written."""
        run, tree = copy(self), self.model.posterior.merge_tree(n_clusters)
        run.found_topics, run.topics_found = self.found_topics, self.topics_found
        run.model = self.model.coarsened(n_clusters, tree)
        run.portraits = TopicPortraits(run.found_topics, run.model.posterior)
        run.members = {int(id): [] for id in run.model.posterior.ids}
        for id, group in zip(tree.ids.tolist(), tree.cut(n_clusters).tolist(), strict=True):
            run.members[group].append(id)
        return run

    @cached_property
    def found_topics(self) -> Topics:
        """Return the topics; if the run has none yet, or is old, find them now."""
        return self.model.stream.topics

    @cached_property
    def topics_found(self) -> TopicsFound | None:
        """Return when the topics were found; None if after the last row."""
        return self.model.topics_found

    @cached_property
    def portraits(self) -> TopicPortraits:
        """Return the descriptions of the topics, and their clusters."""
        return TopicPortraits(self.found_topics, self.model.posterior)

    def events(self) -> list[Event]:
        """Return the events of clusters and topics up to the checkpoint."""
        with intact(self.folder / "lineage.jsonl"):
            records = read_log(self.folder, "lineage", self.checkpoint.marks)
            return [Event.of(record) for record in records]

    def clusters_frame(self, *, n_words: int = 10, to: str = "pandas") -> Any:
        """Return a data frame of clusters, as `StreamingMixture.clusters_frame` does.

        It has two more columns: `recent`, the share of the last quarter of the stream divided by
        the share of the whole, and `exemplars`, the beginnings of typical records.

        Parameters
        ----------
        n_words : int
            Words or columns per cluster.
        to : {"pandas", "polars", "arrow"}
            Library of the data frame.
        """
        found = self._listed(cluster_columns, n_words)
        return frame_of(found | self._noted([[id] for id in found["id"]]), to)

    def topics_frame(self, *, n_words: int = 10, to: str = "pandas") -> Any:
        """Return a data frame of topics, with the same two more columns as `clusters_frame`.

        Parameters
        ----------
        n_words, to
            As for `clusters_frame`.
        """
        found = self._listed(topic_columns, n_words)
        return frame_of(found | self._noted(found["clusters"]), to)

    def lineage_frame(self, *, to: str = "pandas") -> Any:
        """Return a data frame as `StreamingMixture.lineage_frame` does."""
        return frame_of(lineage_columns(self.events()), to)

    def _listed(self, listing: Any, n_words: int) -> dict[str, list[Any]]:
        """Return the columns of clusters or topics."""
        found: dict[str, list[Any]] = listing(
            self.model.posterior, self.portraits, self.events(), self.names(), n_words
        )
        return found

    def _noted(self, groups: list[list[int]]) -> dict[str, list[Any]]:
        """Return the columns that come from the journal, for clusters or groups of them."""
        lengths = np.diff(self.journal.trend.ends(), prepend=0).astype(float)
        return {
            "recent": [recent_growth(self._trend(group), lengths) for group in groups],
            "exemplars": [[one.excerpt for one in self._exemplars(group)] for group in groups],
        }

    def names(self) -> list[str]:
        """Return the names of the columns; texts with a growing vocabulary have none."""
        return list(self.schema.names or map(str, range(self.model.n_features or 0)))

    def describe(
        self,
        n_features: int = 10,
        image_shape: tuple[int, int] | None = None,
        *,
        with_tree: bool = False,
        listed: int | None = None,
    ) -> RunDescription:
        """Return what the run found.

        Parameters
        ----------
        n_features : int
            Words or columns per cluster.
        image_shape : (height, width), optional
            Shape of the rows, if they are images.
        with_tree : bool
            Whether to find the tree of groups, unless there are too many clusters.
        listed : int, optional
            Number of clusters, largest first, to describe; others get only weights and sizes.
        """
        model, saved, trend = self.model, self.checkpoint, self.journal.trend
        posterior = model.posterior
        ids, weights = posterior.ids, posterior.weights
        order = np.argsort(-weights, kind="stable")
        events = self.events()
        born = births(events)
        likelihood = posterior.model.likelihood
        features = likelihood.describe(self.names(), posterior)
        kind: Literal["words", "columns", "pixels"] = likelihood.feature_kind
        means = None
        if image_shape is not None:
            kind, means = "pixels", posterior.means()
            height, width = image_shape
            if means.shape[1] != height * width:
                raise ValueError(
                    f"--image {height}x{width} is {height * width} pixels, but rows have "
                    f"{means.shape[1]} columns"
                )
        shown = len(ids) if listed is None else listed
        described = 0 if self.schema.has_texts_beside_vectors else shown
        masses, topics = posterior.state.masses[posterior.order], self.portraits.ids
        clusters = [
            ClusterDescription(
                int(ids[k]),
                float(weights[k]),
                float(masses[k]),
                min((born[i] for i in self.members[int(ids[k])] if i in born), default=None),
                *(features.of(int(k), n_features) if place < described else ([], [])),
                self._exemplars([int(ids[k])]) if place < shown else [],
                self._trend([int(ids[k])]) if place < shown else [],
                None if means is None else means[k].tolist(),
                len(self.members[int(ids[k])]),
                int(topics[k]),
            )
            for place, k in enumerate(order)
        ]
        widths = np.diff([0, *trend.ends()])
        return RunDescription(
            self.folder.resolve().name,
            kind,
            saved.finished,
            saved.rows,
            saved.rows + saved.rejects,
            saved.rejects,
            None if kind == "pixels" else self.journal.n_tokens,
            saved.seconds,
            model.log_evidence,
            model.n_clusters,
            clusters,
            trend.ends(),
            (trend.evidence[: trend.n_bins] / np.maximum(widths, 1)).tolist(),
            trend.clusters[: trend.n_bins].tolist(),
            events,
            Counter(self.journal.reasons).most_common(),
            {
                "model": {**self.config["model"], "estimator": repr(self.model)},
                "learnt": self.model.learnt(),
                "source": {**self.config["source"], "schema": self.config["schema"]},
                "begun": {"created": self.config["created"]},
            },
            self.config["versions"],
            image_shape,
            self._tree(n_features, pixels=image_shape is not None) if with_tree else None,
            self.topics(n_features, events, pixels=image_shape is not None),
            self.topics_found,
        )

    def topics(
        self, n_features: int, events: list[Event] | None = None, *, pixels: bool = False
    ) -> list[TopicDescription]:
        """Return the topics, largest first.

        Parameters
        ----------
        n_features : int
            Words or columns per topic.
        events : list of Event, optional
            Result of `events`.
        pixels : bool
            Whether rows are images.
        """
        found, posterior = self.portraits, self.model.posterior
        likelihood = posterior.model.likelihood
        features = likelihood.describe(self.names(), found)
        born = births(self.events() if events is None else events, "topic")
        heavy = np.argsort(-posterior.weights, kind="stable")
        topics = []
        for j in np.argsort(-found.weights, kind="stable").tolist():
            id, own = int(found.topics.ids[j]), posterior.ids[heavy[found.groups[heavy] == j]]
            described, typical = features.of(j, n_features), self._exemplars(own.tolist())
            label = label_of(described.lifted, likelihood.feature_kind)
            if self.schema.has_texts_beside_vectors:
                described, label = Described([], []), typical[0].excerpt if typical else ""
            topics.append(
                TopicDescription(
                    id,
                    float(found.weights[j]),
                    float(found.sizes[j]),
                    born.get(id),
                    label,
                    *described,
                    typical,
                    self._trend(own.tolist()),
                    own.tolist(),
                    found.mean(j).tolist() if pixels else None,
                )
            )
        return topics

    def _exemplars(self, ids: Iterable[int]) -> list[Exemplar]:
        """Return the exemplars of clusters, including those merged into them."""
        members = [member for id in ids for member in self.members[id]]
        found = [self.journal.exemplars.of(member) for member in members]
        best = sorted((one for part in found for one in part), key=lambda one: -one.score)
        return found[0] if len(found) == 1 else best[: max(map(len, found), default=0)]

    def _trend(self, ids: Iterable[int]) -> list[int]:
        """Return the rows of clusters in each bin."""
        trend = self.journal.trend
        counts = [trend.counts(member) for id in ids for member in self.members[id]]
        return [sum(column) for column in zip(*counts, strict=True)] or [0] * trend.n_bins

    def _tree(self, n_features: int, *, pixels: bool) -> TreeDescription | None:
        """Return the tree and its groups at a few levels; None for a few clusters."""
        wanted = [n for n in LEVELS if n < self.model.n_clusters]
        if not wanted or self.model.n_clusters > MOST_IN_TREE:
            return None
        tree = self.model.posterior.merge_tree(min(GROUPS, wanted[-1]))
        levels: list[list[GroupDescription]] = []
        coarse, pairs = self.model, zip(wanted, [1, *wanted], strict=False)
        for n, coarser in reversed(list(pairs)):  # a coarse level is made from the next finer one
            groups, above = tree.cut(n), tree.cut(coarser)
            coarse = coarse.coarsened(n, tree)
            posterior = coarse.posterior
            features = posterior.model.likelihood.describe(self.names(), posterior)
            parents = dict(zip(groups.tolist(), above.tolist(), strict=True))
            level = []
            weights = posterior.weights
            for k in np.argsort(-weights, kind="stable"):
                id = int(posterior.ids[k])
                level.append(
                    GroupDescription(
                        id,
                        float(weights[k]),
                        int((groups == id).sum()),
                        parents[id],
                        *features.of(int(k), n_features),
                        posterior.mean(int(k)).tolist() if pixels else None,
                    )
                )
            levels.insert(0, level)
        return TreeDescription(tree, levels)


def guess_image_shape(run: Run) -> tuple[int, int] | None:
    """Return the sides of a square image, if columns have no names and form a square.

    Ink is never negative; rows with negative means are embeddings.
    """
    n = run.schema.n_features
    if run.schema.names is not None or n is None or n < 16 or isqrt(n) ** 2 != n:
        return None
    return (isqrt(n), isqrt(n)) if run.model.posterior.means().min(initial=0.0) >= 0.0 else None
