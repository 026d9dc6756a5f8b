"""Reading a run directory: what the run found, as a `RunDescription`."""

from collections import Counter
from copy import copy
from math import isqrt
from pathlib import Path
from typing import Literal

import numpy as np

from bnpstream.mixture import Event
from bnpstream.runs.description import (
    ClusterDescription,
    Exemplar,
    GroupDescription,
    RunDescription,
    TreeDescription,
)
from bnpstream.runs.start import load_checkpoint, read_schema, settings_of
from bnpstream.sources import Schema
from bnpstream.storage import RunError, read_config, read_log

LEVELS, GROUPS = (5, 20, 80), 20
"""Where the tree of a description is cut, and where it is best."""


class Run:
    """A run directory that is read.

    Parameters
    ----------
    folder : Path
        The directory.

    Attributes
    ----------
    config : dict
        Settings.
    checkpoint : Checkpoint
        What the last checkpoint says in numbers.
    schema : Schema
        What the records are.
    source_options : Options
        What the run was told about its source.
    model : Mixture
        As of the last checkpoint.
    members : dict
        Which clusters of the checkpoint every cluster is made of.
    journal : Journal
        Notes on the stream.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = read_config(folder)
        if "source" not in self.config:
            raise RunError(
                f"{folder}: holds a model that was saved, not a run: load it from Python"
            )
        self.schema: Schema = read_schema(folder, self.config)
        self.source_options, _ = settings_of(folder, self.config)
        self.checkpoint, self.model, self.journal = load_checkpoint(folder, self.schema)
        if self.checkpoint.rows == 0:
            raise RunError(f"{folder}: has absorbed no row so far: wait, or feed it some")
        self.members = {int(id): [int(id)] for id in self.model.posterior.ids}

    def coarsened(self, n_clusters: int) -> "Run":
        """Return the run with its clusters merged into so many; nothing is written."""
        run, tree = copy(self), self.model.posterior.merge_tree(n_clusters)
        run.model = self.model.coarsened(n_clusters, tree)
        run.members = {int(id): [] for id in run.model.posterior.ids}
        for id, group in zip(tree.ids.tolist(), tree.cut(n_clusters).tolist(), strict=True):
            run.members[group].append(id)
        return run

    def events(self) -> list[Event]:
        """Return births, merges, deaths and retirements up to the checkpoint."""
        return [
            Event.of(event) for event in read_log(self.folder, "lineage", self.checkpoint.marks)
        ]

    def names(self) -> list[str]:
        """Return what the columns are called; documents of any words have none."""
        return list(self.schema.names or map(str, range(self.model.n_features or 0)))

    def describe(
        self,
        n_features: int = 10,
        image_shape: tuple[int, int] | None = None,
        *,
        with_tree: bool = False,
    ) -> RunDescription:
        """Return what the run found.

        Parameters
        ----------
        n_features : int
            Words or columns of every cluster.
        image_shape : (height, width), optional
            Rows are images of this shape.
        with_tree : bool
            Whether to say how clusters form groups.
        """
        model, saved, trend = self.model, self.checkpoint, self.journal.trend
        posterior = model.posterior
        ids, weights = posterior.ids, posterior.weights
        order = np.argsort(-weights, kind="stable")
        events = self.events()
        born = {event.id: event.n_observations for event in events if event.kind == "birth"}
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
        masses = posterior.state.masses[posterior.order]
        clusters = [
            ClusterDescription(
                int(ids[k]),
                float(weights[k]),
                float(masses[k]),
                min((born[i] for i in self.members[int(ids[k])] if i in born), default=None),
                *features.of(int(k), n_features),
                self._exemplars(int(ids[k])),
                self._trend(int(ids[k])),
                None if means is None else means[k].tolist(),
                len(self.members[int(ids[k])]),
            )
            for k in order
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
        )

    def _exemplars(self, id: int) -> list[Exemplar]:
        """Return the typical records of a cluster, or of all that it is made of."""
        found = [self.journal.exemplars.of(member) for member in self.members[id]]
        best = sorted((one for part in found for one in part), key=lambda one: -one.score)
        return found[0] if len(found) == 1 else best[: max(map(len, found))]

    def _trend(self, id: int) -> list[int]:
        """Return the rows of a cluster in every bin."""
        counts = [self.journal.trend.counts(member) for member in self.members[id]]
        return [sum(column) for column in zip(*counts, strict=True)]

    def _tree(self, n_features: int, *, pixels: bool) -> TreeDescription | None:
        """Return the tree of merges and its groups at a few levels; None for a few clusters."""
        wanted = [n for n in LEVELS if n < self.model.n_clusters]
        if not wanted:
            return None
        tree = self.model.posterior.merge_tree(min(GROUPS, wanted[-1]))
        levels: list[list[GroupDescription]] = []
        coarse, pairs = self.model, zip(wanted, [1, *wanted], strict=False)
        for n, coarser in reversed(list(pairs)):  # a coarse level is made of the one below
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


def guess_image_shape(schema: Schema) -> tuple[int, int] | None:
    """Return the sides of a square image if columns have no names and are a square number."""
    n = schema.n_features
    if schema.names is not None or n is None or n < 16 or isqrt(n) ** 2 != n:
        return None
    return isqrt(n), isqrt(n)
