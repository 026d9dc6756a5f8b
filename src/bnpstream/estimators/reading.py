"""What a fitted posterior says: attributes, predictions, samples."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bnpstream.estimators.base import MixtureEstimator, require_whole
from bnpstream.estimators.display import NotebookDisplay
from bnpstream.inference.merge import join_into
from bnpstream.inference.tree import MergeTree, merge_tree
from bnpstream.kernels.passes.steps import NEGLIGIBLE
from bnpstream.likelihoods import Batch
from bnpstream.mixture import Event, MixtureState, SiteBuffer, log_joint, log_prior_weights

Floats = NDArray[np.float64]

SCORED_CELLS = 4_000_000
"""(row, cluster) scores held at a time: 32 MB."""


class PosteriorReader(NotebookDisplay, TransformerMixin, MixtureEstimator):
    """Reads off a `MixtureState` in `state_`; everything is in the order of `cluster_ids_`."""

    state_: MixtureState
    lineage_: list[Event]
    labels_: NDArray[np.intp]
    label_ids_: NDArray[np.int64]

    @property
    def n_clusters_(self) -> int:
        """Return the number of clusters."""
        return self._fitted().n_clusters

    @property
    def cluster_ids_(self) -> NDArray[np.int64]:
        """Return the stable ids in ascending order."""
        return np.sort(self._fitted().ids)

    @property
    def weights_(self) -> Floats:
        """Return S_k / sum S in the order of `cluster_ids_`."""
        masses = self._fitted().masses[self._order()]
        weights: Floats = masses / masses.sum()
        return weights

    @property
    def means_(self) -> Floats:
        """Return the posterior mean parameters in the order of `cluster_ids_`."""
        return self._model().likelihood.posterior_mean(self._statistics(self._order()))

    def mean_of(self, slot: int) -> Floats:
        """Return the posterior mean parameters of the cluster in one slot of `state_`."""
        mean: Floats = self._model().likelihood.posterior_mean(self._statistics(np.array([slot])))[
            0
        ]
        return mean

    @property
    def total_log_evidence_(self) -> float:
        """Return the summed one-step-ahead log predictive of the stream."""
        return self._fitted().log_evidence

    @property
    def n_samples_seen_(self) -> int:
        """Return the number of rows absorbed."""
        return self._fitted().n_observations

    def _fitted(self) -> MixtureState:
        check_is_fitted(self, "state_")
        return self.state_

    def _statistics(self, slots: NDArray[np.integer]) -> Floats:
        """Return the statistics of some slots; the first free one is the prior."""
        return self._fitted().rows(slots.astype(np.int64, copy=False))

    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self._fitted().ids)

    def _log_joint(self, X: Any, *, log_cut: float = NEGLIGIBLE, new: bool = True) -> list[Floats]:
        """Return log joints in blocks of rows: clusters in order of id, the new one last.

        Without `new`, a new cluster has no weight. What is farther than `log_cut` below the best
        may be -inf.
        """
        self._fitted()
        return self._log_joint_of(self._encode(self._model(), X), log_cut=log_cut, new=new)

    def _log_joint_of(
        self, batch: Batch, *, log_cut: float = NEGLIGIBLE, new: bool = True
    ) -> list[Floats]:
        """Do as `_log_joint` does with encoded rows."""
        state, model = self._fitted(), self._model()
        log_weights = log_prior_weights(model.prior, state)[0]
        if not new:
            log_weights[-1] = -np.inf
        columns = np.append(self._order(), state.n_clusters)
        rows = max(1, SCORED_CELLS // columns.size)
        parts = [batch.part(start, start + rows) for start in range(0, len(batch), rows)]
        return [
            log_joint(model, state, part, self._kernel(model, part), log_weights, log_cut=log_cut)[
                :, columns
            ]
            for part in parts
        ]

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the position in `cluster_ids_` of every row's likeliest cluster."""
        blocks = self._log_joint(X, log_cut=0.0, new=False)
        return np.concatenate([np.argmax(block[:, :-1], axis=1) for block in blocks])

    def predict_ids(self, X: Any) -> NDArray[np.int64]:
        """Return the stable id of every row's likeliest cluster."""
        return self.cluster_ids_[self.predict(X)]

    def predict_proba(self, X: Any) -> Floats:
        """Return every row's responsibilities over `cluster_ids_`; they sum to one.

        The possibility of a new cluster is left out. A probability below 3e-20 may be zero.
        """
        blocks = []
        for block in self._log_joint(X, new=False):
            known = block[:, :-1]
            blocks.append(np.exp(known - logsumexp(known, axis=1, keepdims=True)))
        return np.concatenate(blocks)

    def transform(self, X: Any) -> Floats:
        """Return every row's responsibilities: `predict_proba`."""
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`: "cluster" and the stable id."""
        return np.array([f"cluster{id}" for id in self.cluster_ids_], dtype=object)

    def score_samples(self, X: Any) -> Floats:
        """Return the log predictive of every row, log h(x) and a new cluster included."""
        return np.concatenate([logsumexp(block, axis=1) for block in self._log_joint(X)])

    def novelty(self, X: Any) -> Floats:
        """Return the responsibility of a new cluster for every row: the outlier score.

        It is the posterior probability that the row belongs to none of the clusters, so it depends
        on the prior: on how readily new clusters arise. A row that is odd for its cluster but
        odder still for a new one has a small novelty; see
        `StreamingMixture.surprise`.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_features_in_)
            Rows; not absorbed.

        Returns
        -------
        novelty : ndarray of shape (n_rows,)
            In [0, 1].
        """
        blocks = self._log_joint(X)
        return np.concatenate([np.exp(b[:, -1] - logsumexp(b, axis=1)) for b in blocks])

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
        return merge_tree(self._model(), self._fitted(), n_groups)

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
        model = deepcopy(self._answering())
        require_whole("n_clusters", n_clusters, 1)
        tree = model.merge_tree(n_clusters) if tree is None else tree
        groups = tree.cut(n_clusters)
        sites = model._sites()
        for id, group in zip(tree.ids.tolist(), groups.tolist(), strict=True):
            if id != group:
                model.lineage_.append(join_into(model.state_, [sites], group, id))
        if "label_ids_" in vars(model):
            places = np.minimum(np.searchsorted(tree.ids, model.label_ids_), tree.ids.size - 1)
            there = tree.ids[places] == model.label_ids_
            model.label_ids_ = np.where(there, groups[places], model.label_ids_)
            model.labels_ = np.searchsorted(model.cluster_ids_, model.label_ids_)
        return model

    def _answering(self) -> Self:
        """Return the model whose posterior is read: this one, unless it is a throw-away model."""
        return self

    def _sites(self) -> SiteBuffer:
        """Return what follows the clusters when they are merged; by default nothing is kept."""
        return SiteBuffer()

    def top_features(self, n: int = 10, feature_names: Any = None) -> list[list[tuple[Any, float]]]:
        """Return the n features with the largest mean of every cluster, largest first.

        Parameters
        ----------
        n : int
            Features a cluster.
        feature_names : sequence of length n_features_in_, optional
            Names to show; by default those of the data frame, or of the run, that it was fitted
            on, else positions.

        Returns
        -------
        top : list of lists of (name, value)
            A list a cluster, in the order of `cluster_ids_`.
        """
        require_whole("n", n, 1)
        means = self.means_
        if feature_names is None:
            known = getattr(self, "feature_names_in_", getattr(self, "names_", []))
            # A column of labels has a mean for each of them.
            feature_names = known if len(known) == means.shape[1] else range(means.shape[1])
        if len(feature_names) != means.shape[1]:
            raise ValueError(
                f"feature_names has {len(feature_names)} names for {means.shape[1]} features"
            )
        columns = np.argsort(-means, axis=1, kind="stable")[:, :n]
        return [
            [(feature_names[column], float(mean[column])) for column in chosen]
            for mean, chosen in zip(means, columns, strict=True)
        ]

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
            For the likelihood; ``length=100`` words a document for `DirichletMultinomial`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features_in_)
            Rows.
        ids : ndarray of shape (n_samples,)
            Stable ids of the clusters they were drawn from; -1 for a cluster not seen so far.
        """
        state, model = self._fitted(), self._model()
        rng = np.random.default_rng(random_state)
        weights = np.exp(log_prior_weights(model.prior, state)[0])
        slots = rng.choice(weights.size, size=n_samples, p=weights / weights.sum())
        rows = model.likelihood.sample(self._statistics(slots), rng, **options)
        return rows, np.append(state.ids, -1)[slots]


def likeliest(log_joint: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the position of every row's largest entry, and its share of the row."""
    best = np.argmax(log_joint, axis=1)
    shares = np.exp(log_joint[np.arange(len(best)), best] - logsumexp(log_joint, axis=1))
    return best, shares
