"""`StreamingMixture`: the streaming estimator."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted, validate_data

from bnpstream.estimator.base import MixtureEstimator, require_whole
from bnpstream.inference import adf, ep, window
from bnpstream.inference.visits import Record
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.mixture import (
    Event,
    MixtureState,
    Model,
    log_joint,
    log_prior_weights,
    survivor,
)
from bnpstream.mixture.window import Window
from bnpstream.priors import Prior

Floats = NDArray[np.float64]

LOWEST_DEFAULT_THRESHOLD = 0.1
SCORED_CELLS = 4_000_000
"""(row, cluster) scores held at a time: 32 MB."""


class StreamingMixture(MixtureEstimator):
    """Cluster a stream in one pass, with as many clusters as the data ask for.

    ADF-NRM, Algorithm 1 of Tank, Foti & Fox (2015): a variational posterior of a mixture model
    whose prior is a normalized random measure, updated row by row. Rows that can be revisited
    improve it: all of them in `fit` (`n_passes`, EP-NRM, Algorithm 2), or on an endless stream
    the last `revisit` ones, in bounded memory.

    Parameters
    ----------
    prior : Prior or {"dp", "nig", "py"}
        How clusters arise. The strings stand for a Dirichlet process, a normalized inverse
        Gaussian process and a Pitman-Yor process with concentration 1.
    likelihood : Likelihood or {"multinomial"}
        What a row looks like in a cluster.
    new_cluster_threshold : float, optional
        epsilon in [sigma, 1): a row opens a cluster if the new cluster's responsibility is
        larger. Below sigma, the prior's discount, an opened cluster would have zero weight ever
        after. Default .1, or sigma where that is larger: low enough that the posterior is
        truncated little, high enough that a doubtful row does not cost every later row a
        cluster to look at.
    min_responsibility : float
        The cut: a cluster takes part in a row only if its score is at least this fraction of
        the best one's. Cells that would get a negligible share stay empty.
    prune_threshold : float, optional
        A cluster that a revisit leaves with less mass is dropped. Default the opening threshold.
    n_passes : int
        Passes of `fit` over its rows: the first is ADF, the others EP sweeps.
    revisit : int
        W: the last W rows are kept; when there are W, all are revisited and the older half is
        frozen. 0 keeps none.
    n_revisits : int
        Sweeps over the window each time.
    tol : float
        Sweeps end early when the responsibilities of a row move by no more than this on average
        (half the summed absolute change).
    keep_sites : bool
        Keep what every row contributed, so that `refine` can revisit rows given again.
    merge_threshold : float, optional
        Merge two clusters that share rows when the model's log odds exceed this; by default
        clusters are never merged. Merging happens after every `merge_every` rows, or at each
        full window, and to finish.
    merge_every : int
        Rows between merges where there is no window.
    engine : {"auto", "compiled", "reference"}
        Compiled loops where prior and likelihood have them, or NumPy. Both make the same
        decisions from the same posterior; identical bits are promised within one engine.

    Attributes
    ----------
    n_clusters_ : int
        Clusters so far.
    cluster_ids_ : ndarray of shape (n_clusters_,)
        Stable ids, ascending; everything below is in this order.
    weights_ : ndarray of shape (n_clusters_,)
        S_k / sum S: the share of the stream in each cluster.
    means_ : ndarray of shape (n_clusters_, n_features_in_)
        Posterior mean parameters; word probabilities for documents.
    labels_ : ndarray of shape (n_rows,)
        For the rows of the last `fit` or `partial_fit`: position in `cluster_ids_` of the
        likeliest cluster, at the moment the row arrived in one pass, and at the end of the call
        where rows are revisited or clusters merged.
    log_evidence_ : ndarray of shape (n_rows,)
        For the same rows: the log predictive one step ahead, before the row was absorbed.
    total_log_evidence_ : float
        Sum of all one-step-ahead log predictives since the start of the stream.
    n_samples_seen_ : int
        Rows absorbed.
    n_features_in_ : int
        Columns of the rows.
    epochs_ : list of Epoch
        What every sweep of the last call did: change, log predictive, clusters.
    lineage_ : list of Event
        Every birth, merge and death of a cluster since the start.
    state_ : MixtureState
        The posterior's arrays.
    window_ : Window
        The rows that can still be revisited.

    Examples
    --------
    >>> from bnpstream import StreamingMixture, normalized_inverse_gaussian
    >>> from bnpstream.datasets import bars
    >>> images = bars(n_images=200, seed=0)
    >>> model = StreamingMixture(prior=normalized_inverse_gaussian(concentration=10, tilt=100))
    >>> model.partial_fit(images.counts[:100]).partial_fit(images.counts[100:]).n_samples_seen_
    200
    >>> model.predict_proba(images.counts).sum(axis=1).round(12).min()
    np.float64(1.0)
    """

    state_: MixtureState
    window_: Window
    epochs_: list[ep.Epoch]
    lineage_: list[Event]
    labels_: NDArray[np.intp]
    log_evidence_: Floats

    def __init__(
        self,
        prior: Prior | str = "dp",
        likelihood: Likelihood | str = "multinomial",
        *,
        new_cluster_threshold: float | None = None,
        min_responsibility: float = 1e-4,
        prune_threshold: float | None = None,
        n_passes: int = 1,
        revisit: int = 0,
        n_revisits: int = 1,
        tol: float = 1e-4,
        keep_sites: bool = False,
        merge_threshold: float | None = None,
        merge_every: int = 1000,
        engine: Literal["auto", "compiled", "reference"] = "auto",
    ) -> None:
        self.prior = prior
        self.likelihood = likelihood
        self.new_cluster_threshold = new_cluster_threshold
        self.min_responsibility = min_responsibility
        self.prune_threshold = prune_threshold
        self.n_passes = n_passes
        self.revisit = revisit
        self.n_revisits = n_revisits
        self.tol = tol
        self.keep_sites = keep_sites
        self.merge_threshold = merge_threshold
        self.merge_every = merge_every
        self.engine = engine

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, absorb the rows of X in order, revisit them, and `finish`.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_columns)
            Rows.
        y : ignored
        """
        schedule = self._schedule(batch_fit=True)
        self._absorb(X, schedule, fresh=True)
        self._finish(schedule)
        return self if schedule is None else self._relabel(X)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Absorb the rows of X in order; any split of the same rows gives the same bits.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_columns)
            Rows. If any is bad, ValueError names it and nothing is absorbed.
        y : ignored
        """
        schedule = self._schedule(batch_fit=False)
        self._absorb(X, schedule, fresh=not hasattr(self, "state_"))
        return self if schedule is None else self._relabel(X)

    def finish(self) -> Self:
        """Revisit what is left in the window and freeze it: the stream has ended, or pauses."""
        self._fitted()
        self.epochs_ = []
        self._finish(self._schedule(batch_fit=False))
        return self

    def refine(self, X: Any, n_passes: int = 1) -> Self:
        """Revisit all rows of the stream, given again in the same order (needs `keep_sites`).

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples_seen_, n_columns)
            Every row absorbed so far.
        n_passes : int
            Sweeps at most.
        """
        state, model, settings = self._fitted(), self._model(), self._settings()
        batch = self._encode(model, X)
        sites = self.window_.sites
        if not (self.keep_sites and sites.n_visited == state.n_observations):
            raise ValueError("refine needs the sites of all rows: fit with keep_sites=True")
        if len(batch) != sites.n_visited:
            raise ValueError(
                f"refine needs the {sites.n_visited} rows absorbed so far, in order, "
                f"got {len(batch)}"
            )
        sweeps = require_whole("n_passes", n_passes, 1)
        schedule = window.Schedule(None, sweeps, self.tol, self.merge_threshold)
        outcomes = window.revisit(
            model, state, sites, batch, settings, schedule, partial(self._kernel, model)
        )
        self.epochs_ = []
        self._keep(outcomes)
        return self._relabel(X)

    def _absorb(self, X: Any, schedule: window.Schedule | None, *, fresh: bool) -> None:
        model, settings = self._model(), self._settings()
        batch = model.likelihood.encode(X)
        kernel = self._kernel(model, batch)
        validate_data(self, X, reset=fresh, skip_check_array=True)
        if fresh:
            self.state_ = adf.init(model, batch.n_statistics)
            self.window_ = Window()
            self.lineage_ = []
        if self.window_.n_rows == 0:
            self.window_.keep_rows = schedule is not None and schedule.n_revisits > 0
        self.epochs_ = []
        outcomes: Iterable[window.Outcome]
        if schedule is None:
            outcomes = adf.run(model, self.state_, batch, settings, kernel)
        else:
            outcomes = window.run(
                model,
                self.state_,
                self.window_,
                batch,
                settings,
                schedule,
                partial(self._kernel, model),
            )
        records = self._keep(outcomes)
        self.log_evidence_ = np.concatenate([record.rows.log_evidence for record in records])
        ids = np.concatenate([record.rows.ids for record in records])
        self.labels_ = np.searchsorted(self.cluster_ids_, ids)

    def _keep(self, outcomes: Iterable[window.Outcome]) -> list[Record]:
        """File sweeps and events; return the records of new rows."""
        records = []
        for outcome in outcomes:
            if isinstance(outcome, Record):
                records.append(outcome)
                self.lineage_ += outcome.events
            elif isinstance(outcome, ep.Epoch):
                self.epochs_.append(outcome)
                self.lineage_ += outcome.events
            else:
                self.lineage_ += outcome
        return records

    def _finish(self, schedule: window.Schedule | None) -> None:
        if schedule is None:
            return
        model = self._model()
        held = self.window_
        outcomes = window.finish(
            model, self.state_, held, self._settings(), schedule, partial(self._kernel, model)
        )
        self._keep(outcomes)
        if not self.keep_sites:
            held.freeze(held.n_rows)

    def _relabel(self, X: Any) -> Self:
        """Set the labels of rows as the posterior sees them now."""
        self.labels_ = self.predict(X)
        return self

    def _schedule(self, *, batch_fit: bool) -> window.Schedule | None:
        """Return when rows are revisited and clusters merged, or None for plain ADF."""
        n_passes = require_whole("n_passes", self.n_passes, 1)
        size = require_whole("revisit", self.revisit, 0)
        n_revisits = require_whole("n_revisits", self.n_revisits, 1)
        merge_every = require_whole("merge_every", self.merge_every, 1)
        if not self.tol >= 0.0:
            raise ValueError(f"tol must be >= 0, got {self.tol!r}")
        if n_passes > 1 and size > 0:
            raise ValueError(
                f"n_passes={n_passes} revisits all rows and revisit={size} the last ones: "
                "give one of them"
            )
        if self.keep_sites and size > 0:
            raise ValueError(f"keep_sites=True keeps all sites, revisit={size} the last: give one")
        merging = (self.tol, self.merge_threshold)
        if batch_fit and n_passes > 1:
            return window.Schedule(None, n_passes - 1, *merging)
        if size > 0:
            return window.Schedule(size, n_revisits, *merging)
        if self.keep_sites:
            return window.Schedule(None, 0, *merging)
        if self.merge_threshold is not None:
            return window.Schedule(merge_every, 0, *merging)
        return None

    def _settings(self) -> adf.Settings:
        sigma = self._model().prior.smallest_mass
        threshold = self.new_cluster_threshold
        if threshold is None:
            threshold = max(sigma, LOWEST_DEFAULT_THRESHOLD)
        if not sigma <= threshold < 1.0:
            raise ValueError(
                f"new_cluster_threshold (epsilon) must be in [{sigma:g}, 1), not below the prior's "
                f"discount {sigma:g} (a cluster opened with less mass has no weight), "
                f"got {threshold!r}"
            )
        if not 0.0 <= self.min_responsibility < 1.0:
            raise ValueError(
                f"min_responsibility must be in [0, 1), got {self.min_responsibility!r}"
            )
        prune = threshold if self.prune_threshold is None else self.prune_threshold
        if not prune >= 0.0:
            raise ValueError(f"prune_threshold must be >= 0, got {prune!r}")
        return adf.Settings(float(threshold), float(self.min_responsibility), float(prune))

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
        return self._model().likelihood.posterior_mean(self._fitted().statistics[self._order()])

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

    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self._fitted().ids)

    def _log_joint(self, X: Any) -> list[Floats]:
        """Return log joints in blocks of rows: clusters in order of id, the new one last."""
        state, model = self._fitted(), self._model()
        batch = self._encode(model, X)
        columns = np.append(self._order(), state.n_clusters)
        rows = max(1, SCORED_CELLS // columns.size)
        parts = [batch.part(start, start + rows) for start in range(0, len(batch), rows)]
        return [
            log_joint(model, state, part, self._kernel(model, part))[:, columns] for part in parts
        ]

    def _encode(self, model: Model, X: Any) -> Batch:
        batch = model.likelihood.encode(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return batch

    def resolve_id(self, id: int) -> int | None:
        """Return the id that a cluster lives on as after merges, or None if it was dropped."""
        self._fitted()
        return survivor(id, self.lineage_)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the position in `cluster_ids_` of every row's likeliest cluster."""
        return np.concatenate([np.argmax(block[:, :-1], axis=1) for block in self._log_joint(X)])

    def predict_ids(self, X: Any) -> NDArray[np.int64]:
        """Return the stable id of every row's likeliest cluster."""
        return self.cluster_ids_[self.predict(X)]

    def predict_proba(self, X: Any) -> Floats:
        """Return every row's responsibilities over `cluster_ids_`; they sum to one.

        The possibility of a new cluster is left out.
        """
        blocks = []
        for block in self._log_joint(X):
            known = block[:, :-1]
            blocks.append(np.exp(known - logsumexp(known, axis=1, keepdims=True)))
        return np.concatenate(blocks)

    def score_samples(self, X: Any) -> Floats:
        """Return the log predictive of every row, log h(x) and a new cluster included."""
        return np.concatenate([logsumexp(block, axis=1) for block in self._log_joint(X)])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log predictive of the rows."""
        return float(self.score_samples(X).mean())

    def top_features(self, n: int = 10, feature_names: Any = None) -> list[list[tuple[Any, float]]]:
        """Return the n features with the largest mean of every cluster, largest first.

        Parameters
        ----------
        n : int
            Features a cluster.
        feature_names : sequence of length n_features_in_, optional
            Names to show; by default those of the data frame it was fitted on, else positions.

        Returns
        -------
        top : list of lists of (name, value)
            A list a cluster, in the order of `cluster_ids_`.
        """
        means = self.means_
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", range(means.shape[1]))
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
        rows = model.likelihood.sample(state.candidates[slots], rng, **options)
        return rows, np.append(state.ids, -1)[slots]
