"""What `StreamingMixture` and `DocumentMixture` share: a stream, read with scikit-learn's names."""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, fields, replace
from operator import attrgetter, is_
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bnpstream.engine import (
    Absorption,
    Checked,
    Encoder,
    Labels,
    Phase,
    Posterior,
    Settings,
    Stream,
    labels_of,
    require_whole,
    resolve_prior,
)
from bnpstream.estimators.base import MixtureEstimator, matching_columns
from bnpstream.estimators.display import describe
from bnpstream.inference.ep import Epoch
from bnpstream.inference.forgetting import Clock
from bnpstream.inference.tree import MergeTree
from bnpstream.inference.visits import Absorbed
from bnpstream.likelihoods import Likelihood
from bnpstream.mixture import Event, MixtureState, survivor, survivors
from bnpstream.mixture.window import Window
from bnpstream.priors import Prior
from bnpstream.storage import Tensors, marks_of, read_config, read_log, read_names, save_run
from bnpstream.storage.models import SavedModel, loading, model_tensors, read_model

Floats = NDArray[np.float64]

SETTINGS = tuple(field.name for field in fields(Settings) if field.name != "n_jobs")
PARAMETERS = attrgetter("prior", *SETTINGS)
FITTED = ("n_features_in_", "feature_names_in_")
"""Attributes of scikit-learn's that are saved."""
PER_ROW = {
    "labels_": "positions",
    "label_ids_": "ids",
    "probabilities_": "shares",
    "log_evidence_": "log_evidence",
    "novelty_": "novelty",
}
"""Attributes that describe the rows of the last call, and the fields of `Labels` they are."""


class StreamEstimator(TransformerMixin, MixtureEstimator):
    """A `Stream` with scikit-learn's methods; clusters are in the order of `cluster_ids_`."""

    prefix_rows: int
    new_cluster_threshold: float | None
    min_responsibility: float
    prune_threshold: float | None
    n_passes: int
    revisit: int | Literal["all"]
    n_revisits: int
    tol: float
    keep_sites: bool
    merge_threshold: float | Literal["auto"] | None
    merge_every: int
    max_clusters: int | None
    max_memory: int | str | None
    half_life: float | None

    _stream: Stream | None = None
    _labels: Labels | None = None
    """Of the rows of the last call, once somebody has asked."""
    _given: Checked | None = None
    """The rows of the last call, until then."""
    _used: tuple[Any, ...] = ()
    """The parameters that the stream goes by."""

    def _new_encoder(self, X: Any) -> Encoder:
        """Return the encoder of a stream that begins with X."""
        raise NotImplementedError

    def _rows(self, X: Any) -> Any:
        """Return X as the encoder takes it."""
        raise NotImplementedError

    def _settings(self) -> Settings:
        """Return the parameters as settings of a stream."""
        return Settings(**{name: getattr(self, name) for name in SETTINGS}, n_jobs=self._n_jobs)

    def _new_stream(self, X: Any, *, all_rows: bool) -> Stream:
        """Return a stream that has seen nothing."""
        prior, settings = resolve_prior(self.prior), self._settings()
        return Stream(prior, self._new_encoder(X), settings, all_rows=all_rows)

    def check_parameters(self) -> None:
        """Raise ValueError for a parameter that cannot be, before a row comes."""
        self._new_stream(None, all_rows=False)

    def _current(self, X: Any) -> Stream:
        """Return the stream, going by the parameters as they are now."""
        if self._stream is None:
            return self._new_stream(X, all_rows=False)
        return self._up_to_date()

    def _up_to_date(self) -> Stream:
        """Return the stream of an estimator that has one; parameters changed since take over."""
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
        """Return all parameters that a stream goes by."""
        found: tuple[Any, ...] = PARAMETERS(self)
        return found

    def _other_likelihood(self, stream: Stream) -> Likelihood | None:
        """Return a likelihood that was given since the last call; by default there is none."""
        return None

    def _check(self, stream: Stream, X: Any, sample_weight: Any, timestamps: Any) -> Checked:
        """Return rows that can be absorbed; bad cells are complained of first, then the width.

        Those of a stream that has begun must have its columns.
        """
        with matching_columns(self, X):
            given = stream.check(self._rows(X), sample_weight, timestamps)
        if stream.phase is not Phase.EMPTY:
            self._remember(X, reset=False)
        return given

    def _remember(self, X: Any, *, reset: bool) -> None:
        """Check the columns of X, and with `reset` take over their number and names."""
        plain = type(X) is np.ndarray and not hasattr(self, "feature_names_in_")
        if plain and not reset and X.shape[1:] == (self.n_features_in_,):
            return  # scikit-learn would find nothing either
        validate_data(self, X, reset=reset, skip_check_array=True)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, timestamps: Any = None) -> Self:
        """Forget everything, absorb the rows of X in order, revisit them, and `finish`.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_columns), or documents
            Rows.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            How many rows a row counts for, see `partial_fit`.
        timestamps : array-like of shape (n_rows,), optional
            When the rows came, see `partial_fit`.
        """
        stream = self._new_stream(X, all_rows=True)
        given = stream.check(self._rows(X), sample_weight, timestamps)
        stream.absorb(given)
        if stream.phase is Phase.PREFIX:
            stream.begin()
        labels, epochs = labels_of(stream, given), stream.epochs
        stream.finish()
        stream.epochs = epochs + stream.epochs
        if stream.revisits:
            labels = self._relabelled(stream, X, labels)
        self._remember(X, reset=True)  # the model stays what it was until the new one is ready
        stream.configure(stream.settings, all_rows=False)
        self._stream, self._used, self._given = stream, self._parameters(), None
        self._labels = _without_gaps(labels)
        return self

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, timestamps: Any = None
    ) -> Self:
        """Absorb the rows of X in order; any split of the same rows gives the same bits.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_columns), or documents
            Rows. If any is bad, ValueError names it and nothing is absorbed.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            How many rows a row counts for: its responsibilities are those of one row, and it adds
            so many times its responsibilities and its statistics to the posterior. A row of weight
            zero is labelled but leaves no trace.
        timestamps : array-like of shape (n_rows,), optional
            When the rows came, as numbers or datetime64: then `half_life` is in units of the
            numbers, or in seconds. A row that comes late is absorbed at the time of those before
            it. Either all rows of a stream have a time, or none has.
        """
        stream = self._current(X)
        given = self._check(stream, X, sample_weight, timestamps)
        try:
            stream.absorb(given)
        finally:  # a bad row leaves no trace; interrupted, what was absorbed is kept
            if self._stream is None and stream.phase is not Phase.EMPTY:
                self._remember(X, reset=True)
                self._stream, self._used = stream, self._parameters()
        self._labels, self._given = None, given
        if stream.phase is Phase.RUNNING:
            self._labels, self._given = labels_of(stream, given), None
        return self

    def finish(self) -> Self:
        """Revisit what is left in the window and freeze it: the stream has ended, or pauses."""
        for _ in self.finishing():
            pass
        return self

    def finishing(self) -> Iterator[Self]:
        """Do what `finish` does, yielding this estimator after every step of it.

        A step is a sweep over the window, or a search for merges. Between steps the estimator can
        be saved; loaded again, it goes on from there.
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
            Every row given so far.
        n_passes : int
            Sweeps at most.
        sample_weight : array-like of shape (n_rows,), optional
            The weights that the rows were given.
        """
        stream = self._up_to_date()
        self._remember(X, reset=False)
        with matching_columns(self, X):
            stream.refine(self._rows(X), sample_weight, n_sweeps=n_passes)
        labels = self._relabelled(stream, X, self._described)
        self._labels, self._given = _without_gaps(labels), None
        return self

    # For whoever absorbs rows elsewhere, as ``bnpstream.distributed`` does.

    def open_stream(self) -> "OpenStream":
        """Return the stream, or one that has seen nothing, going by the parameters as they are now.

        It is not a copy: give it back with `take_stream` when rows have been absorbed.
        """
        face = type(self)(**self.get_params(deep=False))
        face._copy_columns(self)
        return OpenStream(face, self._current(None))

    def take_stream(self, opened: "OpenStream", labels: Labels | None = None) -> None:
        """Go on with a stream that was opened, here or by a copy of this estimator.

        Parameters
        ----------
        opened : OpenStream
            The stream, with the columns of its rows.
        labels : Labels, optional
            What is said of the rows of the last call; by default nothing is.
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
        """Return labels of rows as the posterior sees them now; what was said on arrival stays."""
        best, ids, shares = stream.posterior.assigned(stream.view(self._rows(X)))
        return Labels(best, ids, shares, before.log_evidence, before.novelty)

    # What the stream has found.

    @property
    def _kept(self) -> Stream:
        """Return the stream as the last call left it, whatever the parameters are by now."""
        if self._stream is None:
            check_is_fitted(self)
        assert self._stream is not None
        return self._stream

    @property
    def _fitted(self) -> Stream:
        """Return the stream whose posterior is read, as the last call left it."""
        return self._kept.answering

    @property
    def stream_(self) -> Stream:
        """Return the stream behind the estimator; while the prefix is filling, a throw-away one."""
        stream = self._up_to_date()
        if stream.settings.n_jobs != self._n_jobs:
            stream.configure(replace(stream.settings, n_jobs=self._n_jobs))
        return stream.answering

    @property
    def _posterior(self) -> Posterior:
        """Return what predicts: it goes by the parameters as they are now."""
        return self.stream_.posterior

    @property
    def provisional_(self) -> bool:
        """Return whether the prefix is still filling, so that a throw-away model answers."""
        return self._kept.phase is Phase.PREFIX

    @property
    def state_(self) -> MixtureState:
        """Return the posterior's arrays."""
        return self._fitted.state

    @property
    def window_(self) -> Window:
        """Return the rows that can still be revisited."""
        return self._fitted.window

    @property
    def clock_(self) -> Clock:
        """Return how far forgetting has come; only with `half_life`."""
        clock = self._fitted.clock
        if clock is None:
            raise AttributeError("there is no clock_: nothing is forgotten without half_life")
        return clock

    @property
    def lineage_(self) -> list[Event]:
        """Return every birth, merge, death and retirement of a cluster since the start."""
        return self._fitted.lineage

    @lineage_.setter
    def lineage_(self, events: list[Event]) -> None:
        self._fitted.lineage = events

    @property
    def epochs_(self) -> list[Epoch]:
        """Return what every sweep of the last call did."""
        return self._fitted.epochs

    @epochs_.setter
    def epochs_(self, epochs: list[Epoch]) -> None:
        self._fitted.epochs = epochs

    @property
    def prior_(self) -> Prior:
        """Return the prior as learnt so far."""
        return self._fitted.prior

    @property
    def likelihood_(self) -> Likelihood:
        """Return the likelihood as learnt so far."""
        return self._fitted.likelihood

    @property
    def absorbed_(self) -> Absorbed:
        """Return what became of every row that was absorbed last."""
        last = self._fitted.last
        if last is None:
            raise AttributeError("there is no absorbed_: no row was absorbed since it was loaded")
        return last.absorbed

    @property
    def n_clusters_(self) -> int:
        """Return the number of clusters."""
        return self._fitted.state.n_clusters

    @property
    def cluster_ids_(self) -> NDArray[np.int64]:
        """Return the stable ids in ascending order."""
        return self._fitted.posterior.ids

    @property
    def weights_(self) -> Floats:
        """Return S_k / sum S in the order of `cluster_ids_`."""
        return self._fitted.posterior.weights

    @property
    def means_(self) -> Floats:
        """Return the posterior mean parameters in the order of `cluster_ids_`."""
        self._up_to_date()  # a likelihood given since the last call reads the clusters differently
        return self.means_of(self._fitted.posterior.order)

    def means_of(self, slots: NDArray[np.integer]) -> Floats:
        """Return the posterior mean parameters of the clusters in some slots of `state_`."""
        return self._fitted.posterior.means(slots)

    @property
    def total_log_evidence_(self) -> float:
        """Return the summed one-step-ahead log predictive of the stream."""
        return self._fitted.state.log_evidence

    @property
    def n_samples_seen_(self) -> int:
        """Return the number of rows absorbed."""
        return self._fitted.state.n_observations

    def _describe_rows(self) -> None:
        """Look up what is said of the rows of the last call, before the posterior changes."""
        if self._labels is None and self._given is not None:
            self._labels = labels_of(self._kept, self._given)
            self._given = None

    @property
    def _described(self) -> Labels:
        if self._stream is None:
            check_is_fitted(self)
        self._describe_rows()
        if self._labels is None:
            raise AttributeError("there are no labels: no row was absorbed since it was loaded")
        return self._labels

    @property
    def labels_(self) -> NDArray[np.intp]:
        """Return the position in `cluster_ids_` of the cluster of every row of the last call."""
        return self._described.positions

    @property
    def label_ids_(self) -> NDArray[np.int64]:
        """Return the stable id of that cluster."""
        return self._described.ids

    @property
    def probabilities_(self) -> Floats:
        """Return the responsibility of that cluster."""
        return self._described.shares

    @property
    def log_evidence_(self) -> Floats:
        """Return the log predictive of the same rows one step ahead."""
        return self._described.log_evidence

    @property
    def novelty_(self) -> Floats:
        """Return the responsibility of a new cluster before each of the same rows was absorbed."""
        return self._described.novelty

    # What it says of rows that it has not absorbed.

    def _view(self, X: Any) -> Any:
        """Return rows to look at: they must have the columns of the rows fitted."""
        stream = self._up_to_date()
        with matching_columns(self, X):
            batch = stream.view(self._rows(X))
        self._remember(X, reset=False)
        return batch

    def log_joint(self, X: Any) -> list[Floats]:
        """Return log(prior weight x predictive) in blocks of rows: clusters, the new one last."""
        return self._posterior.log_joint(self._view(X))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the position in `cluster_ids_` of every row's likeliest cluster."""
        return self._posterior.best(self._view(X))

    def predict_ids(self, X: Any) -> NDArray[np.int64]:
        """Return the stable id of every row's likeliest cluster."""
        return self.cluster_ids_[self.predict(X)]

    def predict_proba(self, X: Any) -> Floats:
        """Return every row's responsibilities over `cluster_ids_`; they sum to one.

        The possibility of a new cluster is left out. A probability below 3e-20 may be zero.
        """
        return self._posterior.responsibilities(self._view(X))

    def transform(self, X: Any) -> Floats:
        """Return every row's responsibilities: `predict_proba`."""
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`: "cluster" and the stable id."""
        return np.array([f"cluster{id}" for id in self.cluster_ids_], dtype=object)

    def score_samples(self, X: Any) -> Floats:
        """Return the log predictive of every row, log h(x) and a new cluster included."""
        return self._posterior.log_predictives(self._view(X))

    def novelty(self, X: Any) -> Floats:
        """Return the responsibility of a new cluster for every row: the outlier score.

        It is the posterior probability that the row belongs to none of the clusters, so it depends
        on the prior: on how readily new clusters arise. A row that is odd for its cluster but
        odder still for a new one has a small novelty; see `surprise`.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_features_in_), or documents
            Rows; not absorbed.

        Returns
        -------
        novelty : ndarray of shape (n_rows,)
            In [0, 1].
        """
        return self._posterior.novelty(self._view(X))

    def surprise(self, X: Any) -> Floats:
        """Return how far the log predictive of every row is below what is expected of its like.

        A long document is less probable than a short one, and a row with missing cells more
        probable than a complete one. So rows are drawn from the posterior predictive (always the
        same ones), of the same length or with the same cells missing, and

            surprise = (mean of their log predictives - the row's) / their standard deviation.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_features_in_), or documents
            Rows; not absorbed.

        Returns
        -------
        surprise : ndarray of shape (n_rows,)
            About 0 with a spread of 1 for rows like those of the stream; 5 is an outlier.
        """
        return self._posterior.surprise(self._view(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log predictive of the rows."""
        return float(self.score_samples(X).mean())

    def merge_tree(self, n_groups: int = 20) -> MergeTree:
        """Return the tree of merges over the clusters, by the model's own log odds.

        Parameters
        ----------
        n_groups : int
            Where the tree is to be best: clusters settle in so many groups (`inference.tree`).

        Returns
        -------
        tree : MergeTree
            Its `cut` says for any number of groups which cluster is in which.
        """
        require_whole("n_groups", n_groups, 1)
        return self._posterior.merge_tree(n_groups)

    def coarsened(self, n_clusters: int, tree: MergeTree | None = None) -> Self:
        """Return a copy whose clusters are merged into `n_clusters`, by the tree of merges.

        It is a model like any other: its clusters have weights, means and words, it predicts and
        absorbs rows. A merged cluster has the id of its heaviest one; the lineage says what went
        into it. This model stays as fine as it is.

        Parameters
        ----------
        n_clusters : int
            Clusters wanted; where there are no more, nothing is merged.
        tree : MergeTree, optional
            What `merge_tree` returned, to cut one tree at several levels; by default the tree that
            is best at `n_clusters`.

        Examples
        --------
        >>> from bnpstream import StreamingMixture
        >>> from bnpstream.datasets import bars
        >>> model = StreamingMixture("nig").fit(bars(n_images=200, seed=0).counts)
        >>> coarse = model.coarsened(3)
        >>> coarse.n_clusters_, bool(set(coarse.cluster_ids_) <= set(model.cluster_ids_))
        (3, True)
        """
        require_whole("n_clusters", n_clusters, 1)
        self._describe_rows()
        tree = self.merge_tree(n_clusters) if tree is None else tree
        coarse = copy(self)
        coarse._stream = self._fitted.coarsened(tree, n_clusters)
        if self._labels is not None:
            groups, ids = tree.cut(n_clusters), self._labels.ids
            places = np.minimum(np.searchsorted(tree.ids, ids), tree.ids.size - 1)
            ids = np.where(tree.ids[places] == ids, groups[places], ids)
            positions = np.searchsorted(coarse.cluster_ids_, ids)
            coarse._labels = self._labels._replace(positions=positions, ids=ids)
        return coarse

    def top_features(self, n: int = 10, feature_names: Any = None) -> list[list[tuple[Any, float]]]:
        """Return the n features with the largest mean of every cluster, largest first.

        Parameters
        ----------
        n : int
            Features per cluster.
        feature_names : sequence of length n_features_in_, optional
            Names to show; by default those of the data frame, or of the run, that it was fitted
            on, else positions.

        Returns
        -------
        top : list of lists of (name, value)
            One list per cluster, in the order of `cluster_ids_`.
        """
        require_whole("n", n, 1)
        means = self.means_
        if feature_names is None:
            known = self.column_names()
            # A column of labels has a mean for each of them.
            named = known is not None and len(known) == means.shape[1]
            feature_names = known if named else range(means.shape[1])
        if len(feature_names) != means.shape[1]:
            raise ValueError(
                f"feature_names has {len(feature_names)} names for {means.shape[1]} features"
            )
        columns = np.argsort(-means, axis=1, kind="stable")[:, :n]
        return [
            [(feature_names[column], float(mean[column])) for column in chosen]
            for mean, chosen in zip(means, columns, strict=True)
        ]

    def column_names(self) -> Any:
        """Return what the columns are called, or None if they have no names."""
        words = None if self._stream is None else self._fitted.encoder.words()
        named = getattr(self, "feature_names_in_", getattr(self, "names_", None))
        return named if words is None else words

    def sample(
        self, n_samples: int = 1, *, random_state: int | np.random.Generator = 0, **options: Any
    ) -> tuple[Any, NDArray[np.int64]]:
        """Draw rows from the posterior predictive.

        Parameters
        ----------
        n_samples : int
            Rows to draw.
        random_state : int or numpy.random.Generator
            Seed, or a source of randomness.
        **options
            For the likelihood; ``length=100`` words per document for counts of words.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features_in_), or list of documents
            Rows.
        ids : ndarray of shape (n_samples,)
            Stable ids of the clusters they were drawn from; -1 for a cluster not seen so far.
        """
        return self._posterior.sample(n_samples, np.random.default_rng(random_state), **options)

    def resolve_id(self, id: int) -> int | None:
        """Return the id that a cluster lives on as after merges, or None if it is gone."""
        self._require_id(id)
        return survivor(id, self.lineage_)

    def resolve_ids(self, id: int) -> list[int]:
        """Return all ids that a cluster lives on as, its main heir first; none if it is gone."""
        self._require_id(id)
        return survivors(id, self.lineage_)

    def _require_id(self, id: int) -> None:
        born = self.state_.next_id
        if not 0 <= id < born:
            raise ValueError(f"no cluster has had the id {id}; ids so far are 0 to {born - 1}")

    # Saving, and scikit-learn's hooks.

    def save(self, path: str | Path) -> None:
        """Save everything to a directory: settings as JSON, arrays as safetensors, no pickle.

        Parameters
        ----------
        path : str or Path
            The directory; made if it is not there. A model saved there before is replaced.
        """
        tensors = self.to_tensors()
        self._describe_rows()
        if self._labels is not None:
            for name, field in PER_ROW.items():
                tensors.arrays[f"rows.{name}"] = getattr(self._labels, field)
        save_run(Path(path), {"model": tensors.document["model"]}, tensors)

    @classmethod
    def load(cls, path: str | Path, *, classes: Iterable[type] = ()) -> Self:
        """Return the estimator that was saved in a directory, or that a run has fitted so far.

        Parameters
        ----------
        path : str or Path
            What `save` was given, or a run directory.
        classes : iterable of type
            Priors and likelihoods of your own, dataclasses, that it was saved with.
        """
        folder = Path(path)
        config, saved = read_config(folder), read_model(folder, cls.__name__, classes)
        with loading(folder):
            model = cls._of(saved)
        if "schema" in config:
            model._name_columns(config["schema"].get("kind"), read_names(folder))
        document, arrays = saved.tensors.document, saved.tensors.arrays
        events = [Event.of(event) for event in read_log(folder, "lineage", marks_of(document))]
        if events:
            model.lineage_ = events + model.lineage_
        if "rows.labels_" in arrays:
            model._labels = Labels(
                **{field: arrays[f"rows.{name}"] for name, field in PER_ROW.items()}
            )
        return model

    def _name_columns(self, kind: Any, names: list[str] | None) -> None:
        """Take over the names of columns that a run knows.

        Rows of a table are then expected with these names. Counts are given as matrices without.
        """
        if names is not None and len(names) == getattr(self, "n_features_in_", None):
            attribute = "feature_names_in_" if kind == "table" else "names_"
            setattr(self, attribute, np.array(names, dtype=object))

    def to_tensors(self) -> Tensors:
        """Return settings and posterior as arrays and JSON; what describes the last call is not."""
        stream = None if self._stream is None else self._up_to_date()
        extra = {name: getattr(self, name) for name in FITTED if hasattr(self, name)}
        return model_tensors(type(self).__name__, self.get_params(deep=False), stream, extra)

    @classmethod
    def from_tensors(cls, tensors: Tensors, classes: Iterable[type] = ()) -> Self:
        """Return the estimator that `to_tensors` described."""
        return cls._of(SavedModel.of(tensors, classes))

    @classmethod
    def _of(cls, saved: SavedModel) -> Self:
        """Return the estimator that was saved."""
        model = cls(**saved.settings)
        for name in FITTED:
            if (value := saved.extra(name)) is not None:
                setattr(model, name, value)
        stream = saved.stream(model._new_stream(None, all_rows=False))
        if stream.phase is not Phase.EMPTY:
            model._stream, model._used = stream, model._parameters()
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return self._stream is not None

    # Both are scikit-learn's, which asks for neither if its `display` is set to "text".
    def _repr_html_inner(self) -> str:
        if self._stream is not None:
            return describe(self)
        html: str = super()._repr_html_inner()
        return html

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle and self._stream is not None:
            bundle["text/html"] = describe(self)
        return bundle


@dataclass
class OpenStream:
    """The stream of an estimator by itself: it takes rows as the estimator does.

    Parameters
    ----------
    face : StreamEstimator
        An estimator without a stream, which knows the columns of the rows.
    stream : Stream
        The posterior, and all that it takes to go on with it.
    """

    face: StreamEstimator
    stream: Stream

    @property
    def likelihood(self) -> Likelihood:
        """Return the likelihood as it was given: it may leave something open."""
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
    """Return labels numbered without gaps: a cluster that is no row's likeliest has none."""
    return labels._replace(positions=np.unique(labels.ids, return_inverse=True)[1])
