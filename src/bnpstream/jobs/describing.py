"""Reading a run directory: what the run found, as a `RunDescription`."""

from collections import Counter
from math import isqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bnpstream.jobs.description import ClusterDescription, Feature, RunDescription
from bnpstream.jobs.journal import Journal
from bnpstream.jobs.models import Mixture
from bnpstream.jobs.starting import model_of, read_schema
from bnpstream.likelihoods import Categorical, ColumnLikelihood, Product
from bnpstream.mixture import Event
from bnpstream.runs import RunError, read_checkpoint, read_config, read_log
from bnpstream.streams import Schema

Floats = NDArray[np.float64]

EXPECTED = 2.0
"""A word counts for lift if its cluster is expected to have at least so many of it."""


class Run:
    """A run directory that is read.

    Parameters
    ----------
    folder : Path
        The directory.

    Attributes
    ----------
    config, document : dict
        Settings; the JSON part of the last checkpoint.
    schema : Schema
        What the records are.
    model : StreamingMixture or DocumentMixture
        As of the last checkpoint.
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
        found = read_checkpoint(folder)
        self.document: dict[str, Any] = found.document
        self.model: Mixture = model_of(found)
        self.journal = Journal.of(found.arrays, found.document["journal"], self.schema.names)
        if found.document["rows"] == 0:
            raise RunError(f"{folder}: has absorbed no row so far: wait, or feed it some")

    def events(self) -> list[Event]:
        """Return births, merges and deaths up to the checkpoint."""
        return [Event(**event) for event in read_log(self.folder, "lineage", self.document)]

    def names(self) -> list[str]:
        """Return what the columns of `means_` are called."""
        if hasattr(self.model, "vocabulary_"):
            return [str(word) for word in self.model.vocabulary_.words]
        n_features = int(self.model.n_features_in_)
        return list(self.schema.names or (str(j) for j in range(n_features)))

    def describe(
        self, n_features: int = 10, image_shape: tuple[int, int] | None = None
    ) -> RunDescription:
        """Return what the run found.

        Parameters
        ----------
        n_features : int
            Words or columns of every cluster.
        image_shape : (height, width), optional
            Rows are images of this shape.
        """
        model, document, trend = self.model, self.document, self.journal.trend
        order = np.argsort(-model.weights_, kind="stable")
        events = self.events()
        born = {event.id: event.n_observations for event in events if event.kind == "birth"}
        features = _Features(self, n_features)
        kind: Literal["words", "columns", "pixels"] = features.kind
        means = model.means_ if image_shape is not None else None
        if image_shape is not None:
            height, width = image_shape
            if means is None or means.shape[1] != height * width:
                raise ValueError(
                    f"--image {height}x{width} is {height * width} pixels, but rows have "
                    f"{model.means_.shape[1]} columns"
                )
            kind = "pixels"
        ids, weights = model.cluster_ids_, model.weights_
        masses = model.state_.masses[np.argsort(model.state_.ids)]
        clusters = [
            ClusterDescription(
                int(ids[k]),
                float(weights[k]),
                float(masses[k]),
                born.get(int(ids[k])),
                *features.of(int(k)),
                self.journal.exemplars.of(int(ids[k])),
                trend.counts(int(ids[k])),
                None if means is None else means[k].tolist(),
            )
            for k in order
        ]
        widths = np.diff([0, *trend.ends()])
        return RunDescription(
            self.folder.resolve().name,
            kind,
            document["finished"],
            document["rows"],
            document["position"]["records"],
            document["rejects"],
            self.journal.n_tokens,
            document["seconds"],
            model.total_log_evidence_,
            model.n_clusters_,
            clusters,
            trend.ends(),
            (trend.evidence[: trend.n_bins] / np.maximum(widths, 1)).tolist(),
            trend.clusters[: trend.n_bins].tolist(),
            events,
            Counter(self.journal.reasons).most_common(),
            {
                "model": {**self.config["model"], "estimator": repr(self.model)},
                "source": {**self.config["source"], "schema": self.config["schema"]},
                "begun": {"created": self.config["created"]},
            },
            self.config["versions"],
            image_shape,
        )


def guess_image_shape(schema: Schema) -> tuple[int, int] | None:
    """Return the sides of a square image if columns have no names and are a square number."""
    n = schema.n_features
    if schema.names is not None or n is None or n < 16 or isqrt(n) ** 2 != n:
        return None
    return isqrt(n), isqrt(n)


class _Features:
    """Which features tell clusters apart."""

    def __init__(self, run: Run, n_features: int) -> None:
        self._run, self._n = run, n_features
        model = run.model
        self._names = run.names()
        self.kind: Literal["words", "columns"] = "words"
        likelihood: Any = model._model().likelihood
        weights = model.weights_
        if isinstance(likelihood, ColumnLikelihood):
            self.kind = "columns"
            self._means, self._names = _column_means(likelihood, model.means_, self._names)
            self._overall = weights @ self._means
            spread = np.sqrt(weights @ (self._means - self._overall) ** 2)
            self._spread = np.where(spread > 0, spread, 1.0)
            return
        self._means = model.means_
        self._overall = weights @ self._means
        order = np.argsort(model.state_.ids)
        self._tokens = self._lengths(order)

    def _lengths(self, order: NDArray[np.intp]) -> Floats:
        """Return the tokens of every cluster: the last statistic of documents."""
        state = self._run.model.state_
        last = np.array([state.n_statistics - 1])
        lengths: Floats = np.asarray(state.candidates[:, last])[order, 0]
        return lengths

    def of(self, k: int) -> tuple[list[Feature], list[Feature]]:
        """Return the likeliest and the most lifted features of a cluster."""
        mean = self._means[k]
        if self.kind == "columns":
            lift = (mean - self._overall) / self._spread
            by_value = np.arange(mean.size)[: self._n]
            by_lift = np.argsort(-np.abs(lift), kind="stable")[: self._n]
        else:
            lift = mean / self._overall
            by_value = np.argsort(-mean, kind="stable")[: self._n]
            enough = np.flatnonzero(mean * self._tokens[k] >= EXPECTED)
            by_lift = enough[np.argsort(-lift[enough], kind="stable")][: self._n]
        return tuple(
            [Feature(self._names[j], float(mean[j]), float(lift[j])) for j in chosen]
            for chosen in (by_value, by_lift)
        )  # type: ignore[return-value]


def _column_means(
    likelihood: ColumnLikelihood, means: Floats, names: list[str]
) -> tuple[Floats, list[str]]:
    """Return means and a name for each: a label's share is called "column = label"."""
    parts = [(likelihood, names)]
    if isinstance(likelihood, Product):
        parts = [
            (family, [names[j] for j in places])
            for (_, family, _), places in zip(likelihood.parts, likelihood._places(), strict=True)
        ]
    found: list[str] = []
    for family, own in parts:
        if isinstance(family, Categorical):
            for name, levels in zip(own, family.levels or (), strict=True):
                found += [f"{name} = {level}" for level in levels] + [f"{name} = other"]
        else:
            found += own
    if len(found) != means.shape[1]:
        found = [str(j) for j in range(means.shape[1])]
    return means, found
