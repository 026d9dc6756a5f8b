"""Reading a run directory: what the run found, as a `RunDescription`."""

from collections import Counter
from math import isqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bnpstream.jobs.description import ClusterDescription, Feature, RunDescription
from bnpstream.jobs.models import Mixture
from bnpstream.jobs.starting import load_checkpoint, read_schema, settings_of
from bnpstream.likelihoods import Categorical, ColumnLikelihood, Likelihood, Product
from bnpstream.mixture import Event
from bnpstream.runs import RunError, read_config, read_log
from bnpstream.streams import Schema

Floats = NDArray[np.float64]

EXPECTED, OFTEN = 5.0, 5e-4
"""A word counts for lift if its cluster is expected to have at least so many of it, and if it is at
least so probable: rare words have the largest lifts and say the least."""


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
    source_options : Options
        What the run was told about its source.
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
        self.source_options, _ = settings_of(folder, self.config)
        found = load_checkpoint(folder, self.schema)
        self.document: dict[str, Any] = found.document
        self.model: Mixture = found.model
        self.journal = found.journal
        if self.document["rows"] == 0:
            raise RunError(f"{folder}: has absorbed no row so far: wait, or feed it some")

    def events(self) -> list[Event]:
        """Return births, merges, deaths and retirements up to the checkpoint."""
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
        means = None
        if image_shape is not None:
            kind, means = "pixels", model.means_
            height, width = image_shape
            if means.shape[1] != height * width:
                raise ValueError(
                    f"--image {height}x{width} is {height * width} pixels, but rows have "
                    f"{means.shape[1]} columns"
                )
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
            None if kind == "pixels" else self.journal.n_tokens,
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
    """Which features tell clusters apart; the means of one cluster at a time, as they are long."""

    def __init__(self, run: Run, n_features: int) -> None:
        self._model, self._n = run.model, n_features
        self._names, self.kind = run.names(), _kind(run.model)
        self._order = np.argsort(run.model.state_.ids)
        weights = run.model.weights_.tolist()
        self._overall: Floats = sum((w * self._mean(k) for k, w in enumerate(weights)), np.zeros(1))
        if self.kind == "columns":
            self._names = _names_of_means(self._model.likelihood_, self._names)
            squares = (w * (self._mean(k) - self._overall) ** 2 for k, w in enumerate(weights))
            variance: Floats = sum(squares, np.zeros(1))
            self._spread = np.where(variance > 0, np.sqrt(variance), 1.0)

    def _mean(self, k: int) -> Floats:
        return self._model.mean_of(int(self._order[k]))

    def of(self, k: int) -> tuple[list[Feature], list[Feature]]:
        """Return the likeliest and the most lifted features of a cluster."""
        mean = self._mean(k)
        if self.kind == "columns":
            lift = (mean - self._overall) / self._spread
            by_value = np.arange(mean.size)[: self._n]
            by_lift = _top(np.abs(lift), self._n)
        else:
            lift = mean / self._overall
            by_value = _top(mean, self._n)
            enough = (mean * self._tokens(k) >= EXPECTED) & (mean >= OFTEN)
            by_lift = _top(np.where(enough, lift, -1.0), self._n)
            by_lift = by_lift[enough[by_lift]]
        likely, lifted = (
            [Feature(self._names[j], float(mean[j]), float(lift[j])) for j in chosen]
            for chosen in (by_value, by_lift)
        )
        return likely, lifted

    def _tokens(self, k: int) -> float:
        """Return the tokens of a cluster: the last statistic of documents."""
        state = self._model.state_
        last = np.array([state.n_statistics - 1])
        return float(state.candidates[self._order[k : k + 1], last].sum())


def _kind(model: Mixture) -> Literal["words", "columns"]:
    likelihood = getattr(model, "likelihood_", None)
    return "columns" if isinstance(likelihood, ColumnLikelihood) else "words"


def _top(values: Floats, n: int) -> NDArray[np.intp]:
    """Return where the n largest values are, largest first."""
    n = min(n, values.size)
    found = np.sort(np.argpartition(-values, n - 1)[:n])
    return found[np.argsort(-values[found], kind="stable")]


def _names_of_means(likelihood: Likelihood, names: list[str]) -> list[str]:
    """Return a name for every mean: the share of a label is called "column = label"."""
    parts: list[tuple[Likelihood, list[str]]] = [(likelihood, names)]
    if isinstance(likelihood, Product):
        parts = [
            (family, [names[j] for j in places])
            for (_, family, _), places in zip(likelihood.parts, likelihood.places(), strict=True)
        ]
    found: list[str] = []
    for family, own in parts:
        if isinstance(family, Categorical):
            for name, levels in zip(own, family.levels or (), strict=True):
                found += [f"{name} = {level}" for level in levels] + [f"{name} = other"]
        else:
            found += own
    return found
