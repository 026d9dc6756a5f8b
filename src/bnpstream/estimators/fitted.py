"""What a fitted mixture says about its clusters, the rows of the last call, and other rows."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bnpstream.engine import Checked, Labels, Posterior, Stream, labels_of, require_whole
from bnpstream.estimators.base import MixtureEstimator, matching_columns
from bnpstream.estimators.display import describe
from bnpstream.estimators.frames import clusters_frame, lineage_frame, topics_frame
from bnpstream.inference.ep import Epoch
from bnpstream.inference.forgetting import Clock
from bnpstream.inference.tree import MergeTree
from bnpstream.inference.visits import Absorbed
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Likelihood
from bnpstream.mixture import Event, MixtureState, survivor, survivors
from bnpstream.mixture.lineage import Level
from bnpstream.mixture.window import Window
from bnpstream.priors import Prior


def of_stream(path: str, said: str) -> Any:
    """Return a property that reads the stream as the last call left it."""
    read = attrgetter(path)
    return property(lambda model: read(model._fitted), doc=said)


def events_of(level: Level, said: str) -> Any:
    """Return a property with the events of clusters or topics."""

    def read(model: Any) -> list[Event]:
        return [event for event in model._fitted.lineage if event.level == level]

    return property(read, doc=said)


def of_rows(field: str, said: str) -> Any:
    """Return a property that describes the rows of the last call."""
    read = attrgetter(field)
    return property(lambda model: read(model._described), doc=said)


class FittedMixture(TransformerMixin, MixtureEstimator):
    """Reads a stream under scikit-learn's names; clusters are in order of id."""

    _stream: Stream | None = None
    _labels: Labels | None = None
    """Labels of the rows of the last call, once requested."""
    _given: Checked | None = None
    """The rows of the last call, until then."""
    _recent: Checked | None = None
    """The rows of the last call, for their topics."""

    def _rows(self, X: Any) -> Any:
        """Return X in the form that the encoder takes."""
        raise NotImplementedError

    def _up_to_date(self) -> Stream:
        """Return the stream of a fitted estimator; parameters changed since then take effect."""
        raise NotImplementedError

    clusters_frame, topics_frame, lineage_frame = clusters_frame, topics_frame, lineage_frame

    def read_stream(self) -> Stream:
        """Return the stream whose posterior is read; parameters changed since then take effect."""
        return self._up_to_date().answering

    def _remember(self, X: Any, *, reset: bool) -> None:
        """Check the columns of X; with `reset`, take over their number and names."""
        plain = type(X) is np.ndarray and not hasattr(self, "feature_names_in_")
        if plain and not reset and X.shape[1:] == (self.n_features_in_,):
            return  # scikit-learn would find nothing either
        validate_data(self, X, reset=reset, skip_check_array=True)

    # Results of the stream.

    @property
    def _kept(self) -> Stream:
        """Return the stream as the last call left it, ignoring changed parameters."""
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
        """Return the stream behind the estimator; while the prefix fills, a provisional one."""
        stream = self._up_to_date()
        if stream.settings.n_jobs != self._n_jobs:
            stream.configure(replace(stream.settings, n_jobs=self._n_jobs))
        return stream.answering

    @property
    def _posterior(self) -> Posterior:
        """Return the posterior for predictions, with the current parameters."""
        return self.stream_.posterior

    @property
    def provisional_(self) -> bool:
        """Return whether rows are waiting, so that a provisional model answers."""
        return self._kept.waits

    state_: MixtureState = of_stream("state", "The posterior's arrays.")
    window_: Window = of_stream("window", "The rows that can still be revisited.")
    lineage_: list[Event] = events_of(
        "cluster", "Every birth, merge, death and retirement of a cluster since the start."
    )
    topic_lineage_: list[Event] = events_of(
        "topic", "Every birth, split, merge and death of a topic since the start."
    )
    epochs_: list[Epoch] = of_stream(
        "epochs", "Change, log predictive and clusters after every sweep."
    )
    prior_: Prior = of_stream("prior", "The prior as learnt so far.")
    likelihood_: Likelihood = of_stream("likelihood", "The likelihood as learnt so far.")
    n_clusters_: int = of_stream("state.n_clusters", "The number of clusters.")
    n_samples_seen_: int = of_stream("state.n_observations", "The number of rows absorbed.")
    total_log_evidence_: float = of_stream(
        "state.log_evidence", "The summed one-step-ahead log predictive of the stream."
    )
    cluster_ids_: NDArray[np.int64] = of_stream(
        "posterior.ids", "The stable ids in ascending order."
    )
    weights_: Floats = of_stream("posterior.weights", "S_k / sum S, by ascending id.")

    @property
    def topics_(self) -> NDArray[np.int64]:
        """Return the stable ids of the topics, ascending; a topic is a group of clusters.

        The model stores topics after 1000, 4000, 16000... rows and when the stream ends. In
        between, this attribute finds them again, at most once while the rows grow by half. A topic
        that is not stored yet may get another id when it is.
        """
        self._up_to_date()
        return self._fitted.topics_now.ids

    @property
    def cluster_topics_(self) -> NDArray[np.int64]:
        """Return the topic of each cluster, in the order of `cluster_ids_`."""
        found = self._fitted.topics_now
        return found.ids[found.of_clusters(self._fitted.posterior)]

    @property
    def topic_labels_(self) -> NDArray[np.int64]:
        """Return the topic of each row of the last call: an id from `topics_`."""
        stream, given = self._fitted, self._recent
        if given is None:
            raise AttributeError(
                "no topic_labels_: no rows were absorbed since the model was loaded"
            )
        encoder = stream.encoder
        rows = given.rows if given.prefix is None else encoder.prepared(given.rows)
        found = stream.topics_now
        return found.ids[found.of_rows(stream.posterior, encoder.view(rows))]

    @property
    def clock_(self) -> Clock:
        """Return the state of forgetting; only with `half_life`."""
        clock = self._fitted.clock
        if clock is None:
            raise AttributeError("no clock_: it needs half_life")
        return clock

    @property
    def absorbed_(self) -> Absorbed:
        """Return labels, evidence and responsibilities of the rows absorbed last."""
        last = self._fitted.last
        if last is None:
            raise AttributeError("no absorbed_: no rows were absorbed since the model was loaded")
        return last.absorbed

    @property
    def means_(self) -> Floats:
        """Return the posterior mean parameters in the order of `cluster_ids_`."""
        self._up_to_date()  # a likelihood set since the last call reads the clusters differently
        return self.means_of(self._fitted.posterior.order)

    def means_of(self, slots: NDArray[np.integer]) -> Floats:
        """Return the posterior mean parameters of the clusters in some slots of `state_`."""
        return self._fitted.posterior.means(slots)

    def _describe_rows(self) -> None:
        """Compute the labels of the rows of the last call, before the posterior changes."""
        if self._labels is None and self._given is not None:
            self._labels = labels_of(self._kept, self._given)
            self._given = None

    @property
    def _described(self) -> Labels:
        if self._stream is None:
            check_is_fitted(self)
        self._describe_rows()
        if self._labels is None:
            raise AttributeError("no labels: no rows were absorbed since the model was loaded")
        return self._labels

    labels_: NDArray[np.intp] = of_rows(
        "positions", "Position in `cluster_ids_` of the cluster of each row of the last call."
    )
    label_ids_: NDArray[np.int64] = of_rows("ids", "The stable id of that cluster.")
    probabilities_: Floats = of_rows("shares", "The responsibility of that cluster.")
    log_evidence_: Floats = of_rows(
        "log_evidence", "The one-step-ahead log predictive of the same rows."
    )
    novelty_: Floats = of_rows(
        "novelty", "The responsibility of a new cluster before each of these rows was absorbed."
    )

    # Results for rows that are not absorbed.

    def _view(self, X: Any) -> Any:
        """Return rows to look at, which must have the fitted columns."""
        stream = self._up_to_date()
        with matching_columns(self, X):
            batch = stream.view(self._rows(X))
        self._remember(X, reset=False)
        return batch

    def log_joint(self, X: Any) -> list[Floats]:
        """Return log(prior weight x predictive) in blocks of rows: clusters, the new one last."""
        return self._posterior.log_joint(self._view(X))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the most likely cluster of each row, as a position in `cluster_ids_`."""
        return self._posterior.best(self._view(X))

    def predict_ids(self, X: Any) -> NDArray[np.int64]:
        """Return the stable id of the most likely cluster of each row."""
        return self.cluster_ids_[self.predict(X)]

    def predict_topics(self, X: Any) -> NDArray[np.int64]:
        """Return the topic of each row: an id from `topics_`.

        The topic of a document is the one that explains its words best; the topic of a direction is
        the one with the largest cosine. Neither is necessarily the topic of the most likely
        cluster. A row of a table has the topic of its most likely cluster.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_features_in_), or documents
            Rows; not absorbed.

        Returns
        -------
        topics : ndarray of shape (n_rows,)
        """
        batch = self._view(X)
        found = self._fitted.topics_now
        return found.ids[found.of_rows(self._posterior, batch)]

    def cosine(self, X: Any) -> Floats:
        """Return the cosine of each row with the centroid of each cluster.

        For directions (`Directional`), whose `means_` have unit length. A row that nearly
        duplicates the content of a cluster has a cosine close to one.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features_in_)
            Vectors of unit length or, with ``normalize=True``, of any length; not absorbed.

        Returns
        -------
        cosine : ndarray of shape (n_rows, K)
            Clusters in the order of `cluster_ids_`.
        """
        return self.likelihood_.cosines(self.means_, self._view(X))

    def exemplars(self, X: Any, n: int = 3) -> dict[int, NDArray[np.intp]]:
        """Return the rows that are most typical of each cluster, by cosine.

        For directions, like `cosine`; use the row numbers to look up texts.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features_in_)
            Vectors; not absorbed.
        n : int
            Most rows per cluster.

        Returns
        -------
        rows : dict
            Id -> rows for which the cluster is the most likely, closest to its centroid first.
            Clusters without such rows have none.
        """
        require_whole("n", n, 1)
        view = self._view(X)
        own, cosines = self._posterior.best(view), self.likelihood_.cosines(self.means_, view)
        close = cosines[np.arange(own.size), own]
        order = np.lexsort((-close, own))
        parts = np.split(order, np.flatnonzero(np.diff(own[order])) + 1)
        return {int(self.cluster_ids_[own[part[0]]]): part[:n] for part in parts}

    def near_duplicates(self, X: Any, cosine: float = 0.95) -> NDArray[np.intp]:
        """Return, for each row, an earlier row that it nearly repeats.

        For directions, like `cosine`. Rows are compared only within the same cluster.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features_in_)
            Vectors; not absorbed.
        cosine : float
            Least cosine of near duplicates.

        Returns
        -------
        rows : ndarray of shape (n_rows,)
            The first row this close, or -1 if there is none before it.
        """
        view = self._view(X)
        self.likelihood_.cosines(self.means_, view.chosen(np.arange(0)))  # directions only
        own, found = self._posterior.best(view), np.full(len(view), -1)
        for members in np.split(np.argsort(own, kind="stable"), np.cumsum(np.bincount(own)))[:-1]:
            for start in range(0, members.size, 1024):
                later = members[start : start + 1024]
                earlier = members[: start + later.size]
                units = view.chosen(earlier).statistics[:, -self.n_features_in_ :]
                close = self.likelihood_.cosines(units, view.chosen(later)) >= cosine
                close &= earlier < later[:, None]
                found[later] = np.where(close.any(axis=1), earlier[np.argmax(close, axis=1)], -1)
        return found

    def predict_proba(self, X: Any) -> Floats:
        """Return the responsibilities of the clusters for each row; they sum to one.

        Columns are in the order of `cluster_ids_`. A new cluster is not considered. Probabilities
        below 3e-20 may be returned as zero.
        """
        return self._posterior.responsibilities(self._view(X))

    def transform(self, X: Any) -> Floats:
        """Return the responsibilities of the clusters for each row, like `predict_proba`."""
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`: "cluster" and the stable id."""
        return np.array([f"cluster{id}" for id in self.cluster_ids_], dtype=object)

    def score_samples(self, X: Any) -> Floats:
        """Return the log predictive of each row, including log h(x) and a new cluster."""
        return self._posterior.log_predictives(self._view(X))

    def novelty(self, X: Any) -> Floats:
        """Return the probability that each row belongs to a new cluster, as an outlier score.

        This is a posterior probability, so it depends on the prior: on how readily new clusters
        appear. A row that is unusual for its cluster but even less likely in a new one has a low
        novelty; see `surprise`. Typical values depend on the width of the clusters; to set a
        threshold, use `novelty_quantile`.

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

    def novelty_quantile(self, X: Any) -> Floats:
        """Return, for each row, the share of the stream's last rows that were less surprising.

        The log predictive of a row under the current model is compared with the one-step-ahead log
        predictives of the last 1024 rows absorbed. A threshold therefore means the same on any
        stream: about 1 % of rows from the same source exceed .99. While the model still improves
        quickly, as over the first thousand rows, rows rank lower than they should, because the rows
        they are compared with were scored by a worse model.

        Rows of rare or wide clusters are less probable than others and rank high. A row with
        missing cells is more probable than a complete one and ranks low. Documents are refused,
        because their log predictives depend on their lengths; see `surprise`.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_features_in_)
            Rows; not absorbed.

        Returns
        -------
        quantile : ndarray of shape (n_rows,)
            In [0, 1). After n rows it is at most n / (n + 1), so .99 needs 100 rows.
        """
        batch = self._view(X)
        return self.stream_.novelty_quantiles(batch)

    def surprise(self, X: Any) -> Floats:
        """Return how far the log predictive of each row is below that of comparable rows.

        A long document is less probable than a short one, and a row with missing cells is more
        probable than a complete one. A row is therefore compared with draws from the posterior
        predictive of the same length, or with the same cells missing:

            surprise = (mean log predictive of the draws - that of the row) / their standard
            deviation.

        The draws are the same in every call.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_features_in_), or documents
            Rows; not absorbed.

        Returns
        -------
        surprise : ndarray of shape (n_rows,)
            About 0, with a standard deviation of 1, for rows like those of the stream; 5 is an
            outlier.
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
            Number of groups to optimise the tree for (`inference.tree`).

        Returns
        -------
        tree : MergeTree
            Its `cut` gives the group of each cluster, for any number of groups.
        """
        require_whole("n_groups", n_groups, 1)
        return self._posterior.merge_tree(n_groups)

    def coarsened(self, n_clusters: int, tree: MergeTree | None = None) -> Self:
        """Return a copy whose clusters are merged into `n_clusters`, by the tree of merges.

        The copy is a complete model: its clusters have weights, means and words, and it predicts
        and absorbs rows. A merged cluster takes the id of its largest part; the merges are recorded
        in the lineage. The original is not changed.

        Parameters
        ----------
        n_clusters : int
            Number of clusters wanted; if there are no more than this, nothing is merged.
        tree : MergeTree, optional
            A result of `merge_tree`, to cut one tree at several levels; by default a tree optimised
            for `n_clusters`.

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
        """Return the n most characteristic features of each cluster, best first.

        For documents these are the most distinctive words (`telling_words`); otherwise the features
        with the largest means.

        Parameters
        ----------
        n : int
            Features per cluster.
        feature_names : sequence of length n_features_in_, optional
            Names to show; by default the columns of the data frame or run that the model was fitted
            on, or else positions.

        Returns
        -------
        top : list of lists of (name, mean)
            One list per cluster, in the order of `cluster_ids_`; the mean of a word is its
            probability.
        """
        require_whole("n", n, 1)
        self._up_to_date()
        posterior = self._fitted.posterior
        n_features = posterior.means(np.array([posterior.state.n_clusters])).shape[1]
        if feature_names is None:
            known = self.column_names()
            # A column of labels has one mean per label.
            named = known is not None and len(known) == n_features
            feature_names = known if named else range(n_features)
        if len(feature_names) != n_features:
            raise ValueError(
                f"feature_names has {len(feature_names)} names, but there are {n_features} features"
            )
        means = map(posterior.mean, range(posterior.ids.size))
        return [
            [(feature_names[column], float(mean[column])) for column in chosen]
            for mean, chosen in zip(means, self._top_columns(n), strict=True)
        ]

    def _top_columns(self, n: int) -> Iterator[NDArray[np.integer]]:
        """Yield the columns of `means_` that characterise each cluster, see `top_features`."""
        posterior = self._fitted.posterior
        if self.likelihood_.feature_kind == "words":
            yield from (found.words for found in posterior.telling(n))
        else:
            for k in range(posterior.ids.size):
                yield np.argsort(-posterior.mean(k), kind="stable")[:n]

    def column_names(self) -> Any:
        """Return the names of the columns, or None if they have none."""
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
            Options of the likelihood, such as ``length=100`` words per document.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features_in_), or list of documents
            Rows.
        ids : ndarray of shape (n_samples,)
            Stable ids of the clusters they were drawn from; -1 for a new cluster.
        """
        return self._posterior.sample(n_samples, np.random.default_rng(random_state), **options)

    def resolve_id(self, id: int) -> int | None:
        """Return the id of the cluster that a cluster was merged into, or None if it is gone."""
        self._require_id(id)
        return survivor(id, self.lineage_)

    def resolve_ids(self, id: int) -> list[int]:
        """Return the ids of all clusters that a cluster became part of, the main one first."""
        self._require_id(id)
        return survivors(id, self.lineage_)

    def _require_id(self, id: int) -> None:
        born = self.state_.next_id
        if not 0 <= id < born:
            raise ValueError(f"no cluster ever had the id {id}; ids so far are 0 to {born - 1}")

    def __sklearn_is_fitted__(self) -> bool:
        return self._stream is not None

    # Both belong to scikit-learn, which calls neither if its `display` is set to "text".
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
