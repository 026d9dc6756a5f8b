"""What a fitted mixture says: of its clusters, of the rows of the last call, and of others."""

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
    """Return a property: something of the stream as the last call left it."""
    read = attrgetter(path)
    return property(lambda model: read(model._fitted), doc=said)


def events_of(level: Level, said: str) -> Any:
    """Return a property: what happened to clusters, or to topics."""

    def read(model: Any) -> list[Event]:
        return [event for event in model._fitted.lineage if event.level == level]

    return property(read, doc=said)


def of_rows(field: str, said: str) -> Any:
    """Return a property: what is said of the rows of the last call."""
    read = attrgetter(field)
    return property(lambda model: read(model._described), doc=said)


class FittedMixture(TransformerMixin, MixtureEstimator):
    """What can be read off a stream, by scikit-learn's names; clusters are by ascending id."""

    _stream: Stream | None = None
    _labels: Labels | None = None
    """Of the rows of the last call, once somebody has asked."""
    _given: Checked | None = None
    """The rows of the last call, until then."""
    _recent: Checked | None = None
    """The rows of the last call, for their topics."""

    def _rows(self, X: Any) -> Any:
        """Return X as the encoder takes it."""
        raise NotImplementedError

    def _up_to_date(self) -> Stream:
        """Return the stream of an estimator that has one; parameters changed since take over."""
        raise NotImplementedError

    clusters_frame, topics_frame, lineage_frame = clusters_frame, topics_frame, lineage_frame

    def read_stream(self) -> Stream:
        """Return the stream whose posterior is read; parameters changed since take over."""
        return self._up_to_date().answering

    def _remember(self, X: Any, *, reset: bool) -> None:
        """Check the columns of X, and with `reset` take over their number and names."""
        plain = type(X) is np.ndarray and not hasattr(self, "feature_names_in_")
        if plain and not reset and X.shape[1:] == (self.n_features_in_,):
            return  # scikit-learn would find nothing either
        validate_data(self, X, reset=reset, skip_check_array=True)

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
        """Return whether rows wait for others, so that a throw-away model answers."""
        return self._kept.waits

    state_: MixtureState = of_stream("state", "The posterior's arrays.")
    window_: Window = of_stream("window", "The rows that can still be revisited.")
    lineage_: list[Event] = events_of(
        "cluster", "Every birth, merge, death and retirement of a cluster since the start."
    )
    topic_lineage_: list[Event] = events_of(
        "topic", "Every birth, split, merge and death of a topic since the start."
    )
    epochs_: list[Epoch] = of_stream("epochs", "What every sweep of the last call did.")
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
        """Return the stable ids of the topics, ascending: groups of clusters, for people."""
        self._up_to_date()
        return self._fitted.topics.ids

    @property
    def cluster_topics_(self) -> NDArray[np.int64]:
        """Return the topic of every cluster, in the order of `cluster_ids_`."""
        found = self._fitted.topics
        return found.ids[found.of_clusters(self._fitted.posterior)]

    @property
    def topic_labels_(self) -> NDArray[np.int64]:
        """Return the topic of every row of the last call: an id from `topics_`."""
        stream, given = self._fitted, self._recent
        if given is None:
            raise AttributeError(
                "there are no topic_labels_: no row was absorbed since it was loaded"
            )
        encoder = stream.encoder
        rows = given.rows if given.prefix is None else encoder.prepared(given.rows)
        return stream.topics.ids[stream.topics.of_rows(stream.posterior, encoder.view(rows))]

    @property
    def clock_(self) -> Clock:
        """Return how far forgetting has come; only with `half_life`."""
        clock = self._fitted.clock
        if clock is None:
            raise AttributeError("there is no clock_: nothing is forgotten without half_life")
        return clock

    @property
    def absorbed_(self) -> Absorbed:
        """Return what became of every row that was absorbed last."""
        last = self._fitted.last
        if last is None:
            raise AttributeError("there is no absorbed_: no row was absorbed since it was loaded")
        return last.absorbed

    @property
    def means_(self) -> Floats:
        """Return the posterior mean parameters in the order of `cluster_ids_`."""
        self._up_to_date()  # a likelihood given since the last call reads the clusters differently
        return self.means_of(self._fitted.posterior.order)

    def means_of(self, slots: NDArray[np.integer]) -> Floats:
        """Return the posterior mean parameters of the clusters in some slots of `state_`."""
        return self._fitted.posterior.means(slots)

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

    labels_: NDArray[np.intp] = of_rows(
        "positions", "Position in `cluster_ids_` of the cluster of every row of the last call."
    )
    label_ids_: NDArray[np.int64] = of_rows("ids", "The stable id of that cluster.")
    probabilities_: Floats = of_rows("shares", "The responsibility of that cluster.")
    log_evidence_: Floats = of_rows(
        "log_evidence", "The log predictive of the same rows one step ahead."
    )
    novelty_: Floats = of_rows(
        "novelty", "The responsibility of a new cluster before each of the same rows was absorbed."
    )

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

    def predict_topics(self, X: Any) -> NDArray[np.int64]:
        """Return the topic of every row: an id from `topics_`.

        The topic of a document is the one that explains its words best, and of a direction the one
        that it points to most; neither need be that of the likeliest cluster. A row of cells has
        the topic of its likeliest cluster.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_features_in_), or documents
            Rows; not absorbed.

        Returns
        -------
        topics : ndarray of shape (n_rows,)
        """
        batch = self._view(X)
        found = self._fitted.topics
        return found.ids[found.of_rows(self._posterior, batch)]

    def cosine(self, X: Any) -> Floats:
        """Return the cosine of every row with the centroid of every cluster.

        For directions (`Directional`), whose `means_` have length one. Near duplicates of what a
        cluster holds have cosines close to one.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features_in_)
            Vectors, of length one or, with ``normalize=True``, of any; not absorbed.

        Returns
        -------
        cosine : ndarray of shape (n_rows, K)
            Clusters in the order of `cluster_ids_`.
        """
        return self.likelihood_.cosines(self.means_, self._view(X))

    def exemplars(self, X: Any, n: int = 3) -> dict[int, NDArray[np.intp]]:
        """Return which of some rows are most typical of every cluster, by cosine.

        For directions, as `cosine`: look up their texts.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features_in_)
            Vectors; not absorbed.
        n : int
            Rows of a cluster at most.

        Returns
        -------
        rows : dict
            Id -> rows that the cluster is the likeliest for, those closest to its centroid first.
            A cluster that is the likeliest for none has none.
        """
        require_whole("n", n, 1)
        view = self._view(X)
        own, cosines = self._posterior.best(view), self.likelihood_.cosines(self.means_, view)
        close = cosines[np.arange(own.size), own]
        order = np.lexsort((-close, own))
        parts = np.split(order, np.flatnonzero(np.diff(own[order])) + 1)
        return {int(self.cluster_ids_[own[part[0]]]): part[:n] for part in parts}

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
        odder still for a new one has a small novelty; see `surprise`. How large it is depends on
        the width of clusters: for a threshold use `novelty_quantile`.

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
        """Return for every row the share of the stream's last rows that were less surprising.

        A row's log predictive, as the model is now, is compared with that of the last 1024 rows
        absorbed, each just before it was absorbed: what it would be if the row came next. So a
        threshold means the same on any stream: of rows from the same source about 1 % are above
        .99. While the model is learning quickly, as over the first thousand rows, rows seem more
        usual than they are, since those before had a worse model.

        Rows of rare or of wide clusters are less probable than others, and rank high. A row with
        missing cells is more probable than a complete one, and ranks low. Documents are refused:
        their log predictives depend on their lengths; see `surprise`.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_features_in_)
            Rows; not absorbed.

        Returns
        -------
        quantile : ndarray of shape (n_rows,)
            In [0, 1). After n rows at most n / (n + 1), so that 100 rows are needed for .99.
        """
        batch = self._view(X)
        return self.stream_.novelty_quantiles(batch)

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
        """Return the n features that say most about every cluster, the first first.

        Words are those that tell the cluster apart, by `telling_words`; other features those with
        the largest mean.

        Parameters
        ----------
        n : int
            Features per cluster.
        feature_names : sequence of length n_features_in_, optional
            Names to show; by default those of the data frame, or of the run, that it was fitted
            on, else positions.

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
            # A column of labels has a mean for each of them.
            named = known is not None and len(known) == n_features
            feature_names = known if named else range(n_features)
        if len(feature_names) != n_features:
            raise ValueError(
                f"feature_names has {len(feature_names)} names for {n_features} features"
            )
        means = map(posterior.mean, range(posterior.ids.size))
        return [
            [(feature_names[column], float(mean[column])) for column in chosen]
            for mean, chosen in zip(means, self._top_columns(n), strict=True)
        ]

    def _top_columns(self, n: int) -> Iterator[NDArray[np.integer]]:
        """Yield the columns of `means_` that say most about every cluster, see `top_features`."""
        posterior = self._fitted.posterior
        if self.likelihood_.feature_kind == "words":
            yield from (found.words for found in posterior.telling(n))
        else:
            for k in range(posterior.ids.size):
                yield np.argsort(-posterior.mean(k), kind="stable")[:n]

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
