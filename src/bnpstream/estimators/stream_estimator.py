"""Shared by `StreamingMixture` and `DocumentMixture`: a stream, read under scikit-learn's names."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from operator import attrgetter, is_
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from bnpstream.engine import (
    Absorption,
    Checked,
    Encoder,
    Labels,
    Phase,
    Settings,
    Stream,
    labels_of,
    resolve_prior,
)
from bnpstream.estimators.base import matching_columns
from bnpstream.estimators.fitted import FittedMixture
from bnpstream.likelihoods import Likelihood
from bnpstream.mixture import Event
from bnpstream.storage import (
    Tensors,
    intact,
    marks_of,
    read_config,
    read_log,
    read_names,
    save_run,
)
from bnpstream.storage.models import SavedModel, loading, model_tensors, read_model

SETTINGS = tuple(field.name for field in fields(Settings) if field.name != "n_jobs")
PARAMETERS = attrgetter("prior", *SETTINGS)
FITTED = ("n_features_in_", "feature_names_in_")
"""Attributes of scikit-learn that are saved."""
PER_ROW = {
    "labels_": "positions",
    "label_ids_": "ids",
    "probabilities_": "shares",
    "log_evidence_": "log_evidence",
    "novelty_": "novelty",
}
"""Attributes that describe the rows of the last call, with their fields of `Labels`."""


class StreamEstimator(FittedMixture):
    """A `Stream` that absorbs rows through scikit-learn's methods."""

    prefix_rows: int
    new_cluster_threshold: float | None
    min_responsibility: float
    max_responsibilities: int | None
    prune_threshold: float | None
    n_passes: int
    revisit: int | Literal["all"]
    n_revisits: int
    tol: float
    keep_sites: bool
    merge_threshold: float | Literal["auto"] | None
    merge_every: int
    split_threshold: float | None
    max_clusters: int | None
    max_memory: int | str | None
    half_life: float | None
    staleness: int
    block_rows: int
    learn_threads: int
    n_topics: int | None
    granularity: float

    _used: tuple[Any, ...] = ()
    """The parameters in effect in the stream."""

    def _new_encoder(self, X: Any) -> Encoder:
        """Return the encoder of a stream that starts with X."""
        raise NotImplementedError

    def _settings(self) -> Settings:
        """Return the parameters as settings of a stream."""
        return Settings(**{name: getattr(self, name) for name in SETTINGS}, n_jobs=self._n_jobs)

    def _new_stream(self, X: Any, *, all_rows: bool) -> Stream:
        """Return a new stream."""
        prior, settings = resolve_prior(self.prior), self._settings()
        return Stream(prior, self._new_encoder(X), settings, all_rows=all_rows)

    def check_parameters(self) -> None:
        """Raise ValueError for an invalid parameter, before any row arrives."""
        self._new_stream(None, all_rows=False)

    def _current(self, X: Any) -> Stream:
        """Return the stream, with the current parameters."""
        if self._stream is None:
            return self._new_stream(X, all_rows=False)
        return self._up_to_date()

    def _up_to_date(self) -> Stream:
        """Return the stream of a fitted estimator; parameters changed since then take effect."""
        stream = self._kept
        wanted = self._parameters()
        if not all(map(is_, self._used, wanted)):
            likelihood = self._other_likelihood(stream)
            stream.configure(self._settings(), resolve_prior(self.prior))
            if likelihood is not None:
                stream.use_likelihood(likelihood)
            self._used = wanted
        return stream

    def _parameters(self) -> tuple[Any, ...]:
        """Return all parameters that affect a stream."""
        return PARAMETERS(self)

    def _other_likelihood(self, stream: Stream) -> Likelihood | None:
        """Return a likelihood that was set since the last call; by default None."""
        return None

    def _check(self, stream: Stream, X: Any, sample_weight: Any, timestamps: Any) -> Checked:
        """Return validated rows; errors about cells come before those about the width.

        Rows of a stream that has started must have its columns.
        """
        with matching_columns(self, X):
            given = stream.check(self._rows(X), sample_weight, timestamps)
        if stream.phase is not Phase.EMPTY:
            self._remember(X, reset=False)
        return given

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, timestamps: Any = None) -> Self:
        """Start afresh: absorb the rows of X in order, revisit them, and `finish`.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_columns), or documents
            Rows.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, see `partial_fit`.
        timestamps : array-like of shape (n_rows,), optional
            Times of the rows, see `partial_fit`.
        """
        stream = self._new_stream(X, all_rows=True)
        given = stream.check(self._rows(X), sample_weight, timestamps)
        stream.absorb(given)
        stream.settle()
        labels, epochs = labels_of(stream, given), stream.epochs
        stream.finish()
        stream.epochs = epochs + stream.epochs
        if stream.revisits:
            labels = self._relabelled(stream, X, labels)
        self._remember(X, reset=True)  # the model stays unchanged until the new one is ready
        stream.configure(stream.settings, all_rows=False)
        self._stream, self._used, self._given = stream, self._parameters(), None
        self._labels, self._recent = _without_gaps(labels), given
        return self

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, timestamps: Any = None
    ) -> Self:
        """Absorb the rows of X in order; any split of the same rows gives the same bits.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_columns), or documents
            Rows. If any is invalid, a ValueError names it and nothing is absorbed.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows: the responsibilities of a row are those of a single row, and it
            adds weight times its responsibilities and statistics to the posterior. A row of weight
            zero is labelled but changes nothing.
        timestamps : array-like of shape (n_rows,), optional
            Times of the rows, as numbers or datetime64; `half_life` is then in the unit of the
            numbers, or in seconds. A row that arrives late is absorbed at the time of the row
            before it. Either all rows of a stream have a time, or none have.
        """
        stream = self._current(X)
        given = self._check(stream, X, sample_weight, timestamps)
        try:
            stream.absorb(given)
        finally:  # a bad row leaves no trace; after an interrupt, rows absorbed are kept
            if self._stream is None and stream.phase is not Phase.EMPTY:
                self._remember(X, reset=True)
                self._stream, self._used = stream, self._parameters()
        self._labels, self._given, self._recent = None, given, given
        if not stream.waits:
            self._labels, self._given = labels_of(stream, given), None
        return self

    def finish(self) -> Self:
        """Revisit the rows left in the window and freeze them: the stream has ended, or pauses."""
        for _ in self.finishing():
            pass
        return self

    def finishing(self) -> Iterator[Self]:
        """Do what `finish` does, step by step, yielding this estimator after every step.

        A step is a sweep over the window, or a search for merges. Between steps the estimator can
        be saved; once loaded, it continues from there.
        """
        stream = self._up_to_date()
        self._describe_rows()
        for _ in stream.finishing():
            yield self

    def refine(self, X: Any, n_passes: int = 1, sample_weight: Any = None) -> Self:
        """Revisit all rows of the stream, given again in the same order (needs `keep_sites`).

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_columns), or documents
            All rows given so far.
        n_passes : int
            Most sweeps.
        sample_weight : array-like of shape (n_rows,), optional
            The weights given with the rows.
        """
        stream = self._up_to_date()
        self._remember(X, reset=False)
        with matching_columns(self, X):
            stream.refine(self._rows(X), sample_weight, n_sweeps=n_passes)
        labels = self._relabelled(stream, X, self._described)
        self._labels, self._given = _without_gaps(labels), None
        return self

    # For code that absorbs rows elsewhere, such as ``bnpstream.distributed``.

    def open_stream(self) -> "OpenStream":
        """Return the stream, new if there is none, with the current parameters.

        It is not a copy: give it back with `take_stream` after absorbing rows.
        """
        face = type(self)(**self.get_params(deep=False))
        face._copy_columns(self)
        return OpenStream(face, self._current(None))

    def take_stream(self, opened: "OpenStream", labels: Labels | None = None) -> None:
        """Continue with an opened stream, of this estimator or of a copy.

        Parameters
        ----------
        opened : OpenStream
            The stream, with the columns of its rows.
        labels : Labels, optional
            Labels of the rows of the last call; by default there are none.
        """
        self._copy_columns(opened.face)
        self._labels, self._given = None if labels is None else _without_gaps(labels), None
        if opened.stream.phase is not Phase.EMPTY:
            self._stream, self._used = opened.stream, self._parameters()

    def _copy_columns(self, other: "StreamEstimator") -> None:
        """Take over the number and the names of columns from another estimator."""
        for name in FITTED:
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def _relabelled(self, stream: Stream, X: Any, before: Labels) -> Labels:
        """Return labels of rows under the current posterior; evidence and novelty stay the same."""
        best, ids, shares = stream.posterior.assigned(stream.view(self._rows(X)))
        return Labels(best, ids, shares, before.log_evidence, before.novelty)

    # Saving and loading.

    def save(self, path: str | Path) -> None:
        """Save everything to a directory: settings as JSON, arrays as safetensors, no pickle.

        Parameters
        ----------
        path : str or Path
            The directory, created if needed. A model saved there before is replaced.
        """
        tensors = self.to_tensors()
        self._describe_rows()
        if self._labels is not None:
            for name, field in PER_ROW.items():
                tensors.arrays[f"rows.{name}"] = getattr(self._labels, field)
        save_run(Path(path), {"model": tensors.document["model"]}, tensors)

    @classmethod
    def load(cls, path: str | Path, *, classes: Iterable[type] = ()) -> Self:
        """Load an estimator from a directory, saved or part of a run.

        Parameters
        ----------
        path : str or Path
            The directory given to `save`, or a run directory.
        classes : iterable of type
            Your own classes of priors and likelihoods (dataclasses) that the model uses.
        """
        folder = Path(path)
        config, saved = read_config(folder), read_model(folder, cls.__name__, classes)
        document, arrays = saved.tensors.document, saved.tensors.arrays
        with loading(folder):
            model, marks = cls._of(saved), marks_of(document)
        if "schema" in config:
            model._name_columns(config["schema"].get("kind"), read_names(folder))
        with intact(folder / "lineage.jsonl"):
            events = [Event.of(event) for event in read_log(folder, "lineage", marks)]
        if events:
            stream = model._fitted
            stream.lineage = events + stream.lineage
        if "rows.labels_" in arrays:
            model._labels = Labels(
                **{field: arrays[f"rows.{name}"] for name, field in PER_ROW.items()}
            )
        return model

    def _name_columns(self, kind: Any, names: list[str] | None) -> None:
        """Take over the names of columns that a run knows.

        Rows of a table must then have these names; counts are given as matrices without names.
        """
        if names is not None and len(names) == getattr(self, "n_features_in_", None):
            attribute = "feature_names_in_" if kind == "table" else "names_"
            setattr(self, attribute, np.array(names, dtype=object))

    def to_tensors(self) -> Tensors:
        """Return settings and posterior as arrays and JSON, without attributes of the last call."""
        stream = None if self._stream is None else self._up_to_date()
        extra = {name: getattr(self, name) for name in FITTED if hasattr(self, name)}
        return model_tensors(type(self).__name__, self.get_params(deep=False), stream, extra)

    @classmethod
    def _of(cls, saved: SavedModel) -> Self:
        """Return a saved estimator."""
        model = cls(**saved.settings)
        for name in FITTED:
            if (value := saved.extra(name)) is not None:
                setattr(model, name, value)
        stream = saved.stream(model._new_stream(None, all_rows=False))
        if stream.phase is not Phase.EMPTY:
            model._stream, model._used = stream, model._parameters()
        return model


@dataclass
class OpenStream:
    """The stream of an estimator on its own; it takes rows as the estimator does.

    Parameters
    ----------
    face : StreamEstimator
        An estimator without a stream, which knows the columns of the rows.
    stream : Stream
        The posterior and everything needed to continue.
    """

    face: StreamEstimator
    stream: Stream

    @property
    def likelihood(self) -> Likelihood:
        """Return the likelihood as given; parameters may be unset."""
        return self.face._open_likelihood()

    def absorb(self, rows: Any, times: Any = None) -> Absorption | None:
        """Absorb rows as `StreamEstimator.partial_fit` does; None if all were kept."""
        first = self.stream.phase is Phase.EMPTY
        if first:
            self.stream.encoder = self.face._new_encoder(rows)
        absorption = self.stream.absorb(self.face._check(self.stream, rows, None, times))
        if first:
            self.face._remember(rows, reset=True)
        return absorption


def _without_gaps(labels: Labels) -> Labels:
    """Return labels without gaps: clusters that are most likely for no row are skipped."""
    return labels._replace(positions=np.unique(labels.ids, return_inverse=True)[1])
