"""`StreamingMixture`: the streaming estimator."""

from collections.abc import Iterable, Iterator
from copy import copy
from functools import partial
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import validate_data

from bnpstream.estimator.base import require_weights, require_whole
from bnpstream.estimator.codec import decode, encode
from bnpstream.estimator.novelty import NoveltyReader
from bnpstream.estimator.prefix import Prefix
from bnpstream.estimator.reading import likeliest
from bnpstream.estimator.saving import (
    Savable,
    load_prefix,
    posterior_arrays,
    posterior_from,
    save_prefix,
)
from bnpstream.estimator.settings import ScheduledEstimator
from bnpstream.inference import adf, ep, window
from bnpstream.inference.visits import Absorbed, Record
from bnpstream.likelihoods import Batch, DirichletMultinomial, Likelihood
from bnpstream.likelihoods.frames import as_rows, names_of
from bnpstream.mixture import Model, survivor
from bnpstream.mixture.saving import window_arrays, window_from
from bnpstream.mixture.sites import totals
from bnpstream.mixture.window import Window
from bnpstream.priors import Prior
from bnpstream.tuning.learner import BaseLearner, Trial

Floats = NDArray[np.float64]

PER_ROW = ("labels_", "label_ids_", "probabilities_", "log_evidence_", "novelty_")
"""Attributes that describe the rows of the last call."""
PROVISIONAL = (*PER_ROW, "absorbed_", "state_", "window_", "lineage_", "epochs_", "likelihood_")
SAME_ROWS = 1e-6
"""Rows given again must add up to the posterior as closely as this."""


class StreamingMixture(Savable, NoveltyReader, ScheduledEstimator):
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
    likelihood : Likelihood, "auto" or the name of one
        What a row looks like in a cluster. "auto" chooses by what the rows look like: counts of
        words for a sparse matrix or whole numbers >= 0, a Gaussian with any covariance for real
        numbers (with a diagonal one if cells are missing), and a product of families for a table of
        mixed types. Names are "multinomial", "gaussian", "diagonal", "spherical", "poisson",
        "bernoulli" and "categorical".
    prefix_rows : int
        Rows from which a likelihood takes what it leaves open: its choice, its scale, its labels.
        They are counted from the start of the stream, never by calls: until there are so many they
        are kept, and a throw-away model of them answers; then they are absorbed in order. `fit` and
        `finish` make do with fewer.
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
    revisit : int or "all"
        W: the last W rows are kept; when there are W, all are revisited and the older half is
        frozen. 0 keeps none. "all" keeps all until `finish`: `partial_fit` and then `finish` with
        `n_revisits` = m amount to `fit` with `n_passes` = m + 1.
    n_revisits : int
        Sweeps over the window each time.
    tol : float
        Sweeps end early when the responsibilities of a row move by no more than this on average
        (half the summed absolute change).
    keep_sites : bool
        Keep what every row contributed, so that `refine` can revisit rows given again.
    merge_threshold : float, "auto" or None
        Merge two clusters that share rows when the model's log odds exceed this. 0 is even odds; 5,
        about 150 to 1, is conservative. Merging happens after every `merge_every` rows, or at each
        full window, or with `keep_sites` in `refine`, and to finish. None never merges. "auto"
        merges at even odds once the passes of `fit` over rows of cells are done, and sweeps again;
        documents are never merged by it.
    merge_every : int
        Rows between merges where there is no window.
    engine : {"auto", "compiled", "reference"}
        Compiled loops where prior and likelihood have them, or NumPy. Both make the same
        decisions from the same posterior; identical bits are promised within one engine.
    n_jobs : int, optional
        Threads that predict and score rows: -1 for all cores; by default one. Results do not
        depend on it, to the last bit. A pass is one thread's work: rows depend on each other.

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
        likeliest cluster at the moment the row arrived, or at the end of the call if rows were
        revisited or clusters merged during it. After `fit` and `refine` they are 0, 1, 2...
        without a gap: a cluster that is no row's likeliest is not counted.
    label_ids_ : ndarray of shape (n_rows,)
        For the same rows: the stable id of that cluster.
    probabilities_ : ndarray of shape (n_rows,)
        For the same rows: the responsibility of that cluster.
    log_evidence_ : ndarray of shape (n_rows,)
        For the same rows: the log predictive one step ahead, before the row was absorbed.
    novelty_ : ndarray of shape (n_rows,)
        For the same rows: the responsibility of a new cluster, before the row was absorbed.
    absorbed_ : Absorbed
        What became of every row that the last call absorbed, when it did: all of the above, and its
        responsibilities. With the call that fills the prefix these are all rows of the prefix.
    provisional_ : bool
        Whether the prefix is still filling, so that a throw-away model answers.
    total_log_evidence_ : float
        Sum of all one-step-ahead log predictives since the start of the stream.
    n_samples_seen_ : int
        Rows absorbed.
    likelihood_ : Likelihood
        The likelihood with nothing left open.
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

    window_: Window
    epochs_: list[ep.Epoch]
    prefix_: Prefix
    labels_: NDArray[np.intp]
    label_ids_: NDArray[np.int64]
    probabilities_: Floats
    log_evidence_: Floats
    novelty_: Floats
    absorbed_: Absorbed

    def __init__(
        self,
        prior: Prior | str = "dp",
        likelihood: Likelihood | str = "auto",
        *,
        prefix_rows: int = 500,
        new_cluster_threshold: float | None = None,
        min_responsibility: float = 1e-4,
        prune_threshold: float | None = None,
        n_passes: int = 1,
        revisit: int | Literal["all"] = 0,
        n_revisits: int = 1,
        tol: float = 1e-4,
        keep_sites: bool = False,
        merge_threshold: float | Literal["auto"] | None = "auto",
        merge_every: int = 1000,
        engine: Literal["auto", "compiled", "reference"] = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.prior = prior
        self.likelihood = likelihood
        self.prefix_rows = prefix_rows
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
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything, absorb the rows of X in order, revisit them, and `finish`.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_columns)
            Rows.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            How many rows a row counts for, see `partial_fit`.
        """
        schedule = self._schedule(batch_fit=True)
        fresh = self._unfitted()  # the model stays what it was until the new one is ready
        fresh._absorb(X, sample_weight, schedule)
        for _ in fresh._finish(schedule):
            pass
        if schedule is not None:
            fresh._relabel(X)
        fresh._close_gaps()
        self.__dict__ = fresh.__dict__
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Absorb the rows of X in order; any split of the same rows gives the same bits.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_columns)
            Rows. If any is bad, ValueError names it and nothing is absorbed.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            How many rows a row counts for: its responsibilities are those of one row, and it adds
            so many times its responsibilities and its statistics to the posterior. A row of weight
            zero is labelled but leaves no trace.
        """
        revised = self._absorb(X, sample_weight, self._schedule(batch_fit=False))
        return self._relabel(X) if revised else self

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
        self._fitted()
        schedule = self._schedule(batch_fit=False)
        if "prefix_" not in vars(self) and "_finishing" not in vars(self):
            self.epochs_ = []
        for _ in self._finish(schedule):
            yield self

    def refine(self, X: Any, n_passes: int = 1, sample_weight: Any = None) -> Self:
        """Revisit all rows of the stream, given again in the same order (needs `keep_sites`).

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_columns)
            Every row given so far.
        n_passes : int
            Sweeps at most.
        sample_weight : array-like of shape (n_rows,), optional
            The weights that the rows were given.
        """
        schedule = self._schedule(batch_fit=False)
        self._fitted()
        if "prefix_" in vars(self):
            self._begin(schedule, *self._learn(self.prefix_))
        state, model, settings = self._fitted(), self._model(), self._settings()
        sweeps = require_whole("n_passes", n_passes, 1)
        sites = self.window_.sites
        if not (self.keep_sites and sites.n_visited == state.n_observations):
            raise ValueError("refine needs the sites of all rows: fit with keep_sites=True")
        batch = self._encode(model, X)
        weights = require_weights(sample_weight, as_rows(X))
        if weights is not None:
            there = np.flatnonzero(weights)
            batch = batch.chosen(there).weighted(weights[there])
        if len(batch) != sites.n_visited:
            raise ValueError(
                f"refine needs the {sites.n_visited} rows absorbed so far, in order, "
                f"got {len(batch)}"
            )
        again = totals(sites, batch, state.n_clusters)[0]
        if state.distance(again) > SAME_ROWS * (1.0 + np.abs(again).max()):
            raise ValueError(
                "refine needs the rows absorbed so far, in order and with the weights they had; "
                "these are others"
            )
        revisits = window.Schedule(None, sweeps, self.tol, self._given_merge_threshold())
        kernel_for = partial(self._kernel, model)
        kernel_for(batch)
        self.epochs_ = []
        self._keep(window.revisit(model, state, sites, batch, settings, revisits, kernel_for))
        return self._relabel(X)._close_gaps()

    def _unfitted(self) -> Self:
        """Return a copy of the parameters alone."""
        fresh = copy(self)
        fresh.__dict__ = {
            name: x for name, x in vars(self).items() if "_" not in (name[0], name[-1])
        }
        return fresh

    def _absorb(self, X: Any, sample_weight: Any, schedule: window.Schedule | None) -> bool:
        """Absorb rows; return whether earlier rows were revisited or clusters merged meanwhile."""
        self.__dict__.pop("_finishing", None)
        n_prefix = require_whole("prefix_rows", self.prefix_rows, 1)
        rows, prefix = as_rows(X), vars(self).get("prefix_")
        fresh = prefix is None and "state_" not in vars(self)
        if fresh:
            likelihood = self._open_likelihood().bound(names_of(X) or []).settled(rows)
        else:
            likelihood = self._model().likelihood if prefix is None else prefix.likelihood
        if likelihood.is_informed:
            weights = require_weights(sample_weight, rows)
            batch = self._checked(X, rows, likelihood, reset=fresh)
            self._kernel(Model(self._prior(), likelihood), batch)
            if fresh:
                self._start(likelihood, batch)
            return self._visit(batch, weights, schedule)
        likelihood.check_rows(rows)
        weights = require_weights(sample_weight, rows)
        if not fresh:
            validate_data(self, X, reset=False, skip_check_array=True)
        kept = Prefix(likelihood) if prefix is None else prefix.copy()
        kept.append(rows, weights)
        chosen = self._learn(kept) if kept.n_rows >= n_prefix else None
        if fresh:
            validate_data(self, X, reset=True, skip_check_array=True)
        self.prefix_ = kept
        return chosen is not None and self._begin(schedule, *chosen)

    def _learn(self, prefix: Prefix, *, hasty: bool = False) -> tuple[Likelihood, Batch]:
        """Return the likelihood that the first rows make of what is open, and all rows encoded.

        In haste a base measure is guessed instead of searched for.
        """
        rows = prefix.rows()
        inform = prefix.likelihood.informed if hasty else partial(self._informed, prefix.likelihood)
        likelihood = inform(rows[: self.prefix_rows])
        try:
            batch = likelihood.encode(rows)
        except ValueError:  # a row of the last call, beyond those that it was learnt from
            likelihood.encode(prefix.last())
            raise
        self._kernel(Model(self._prior(), likelihood), batch)
        return likelihood, batch

    def _informed(self, likelihood: Likelihood, rows: Any) -> Likelihood:
        """Return a likelihood with what it leaves open taken from the first rows."""
        informed = likelihood.informed(rows)
        learns = isinstance(likelihood, DirichletMultinomial) and not likelihood.is_informed
        if not learns:
            return informed
        self._learner = BaseLearner(rows.shape[0])
        return self._learner.first(self._trial(), informed.encode(rows))

    def _successor(self) -> Likelihood:
        """Return the likelihood given since the last call; then nothing more is learnt."""
        likelihood = super()._successor()
        self.__dict__.pop("_learner", None)
        return likelihood

    def _trial(self) -> Trial:
        return Trial(self._prior(), self._settings(), self._kernel)

    def _begin(
        self, schedule: window.Schedule | None, likelihood: Likelihood, batch: Batch
    ) -> bool:
        """Absorb all rows that were kept; see `_absorb`."""
        prefix = self.prefix_
        del self.prefix_
        self._start(likelihood, batch)
        revised = self._visit(batch, prefix.weights(), schedule)
        for name in PER_ROW:
            setattr(self, name, getattr(self, name)[-prefix.n_last :])
        return revised

    def _start(self, likelihood: Likelihood, batch: Batch) -> None:
        """Make the posterior of no rows."""
        self._take(likelihood)
        self.state_ = adf.init(self._model(), batch.n_statistics)
        self.window_ = Window()
        self.lineage_ = []

    def _visit(
        self, batch: Batch, weights: Floats | None, schedule: window.Schedule | None
    ) -> bool:
        """Absorb encoded rows, those of weight zero left out; see `_absorb`."""
        every = batch
        there = np.arange(len(every)) if weights is None else np.flatnonzero(weights)
        if weights is not None:
            batch = every.chosen(there).weighted(weights[there])
        self.epochs_ = []
        records, revised = self._keep(self._learning(batch, schedule))
        self.absorbed_ = Absorbed.of(records)
        rows = self.absorbed_.rows
        self.labels_ = np.empty(len(every), np.intp)
        self.log_evidence_, self.probabilities_, self.novelty_ = np.empty((3, len(every)))
        self.label_ids_ = np.empty(len(every), np.int64)
        self.label_ids_[there] = rows.ids
        self.labels_[there] = np.searchsorted(self.cluster_ids_, rows.ids)
        self.log_evidence_[there], self.probabilities_[there] = rows.log_evidence, rows.shares
        self.novelty_[there] = rows.novelty
        if there.size < len(every):
            absent = np.setdiff1d(np.arange(len(every)), there)
            self._describe(every.chosen(absent), absent)
        return revised

    def _learning(self, batch: Batch, schedule: window.Schedule | None) -> Iterator[window.Outcome]:
        """Absorb rows; where a base measure is learnt, stop at the rows at which it changes."""
        start, learner = 0, vars(self).get("_learner")
        while start < len(batch):
            room = len(batch)
            if learner is not None:
                room = learner.room(self.state_.n_observations)
            part = batch.part(start, start + room)
            if learner is not None:
                learner.watch(self._trial(), part, self.state_)
            yield from self._outcomes(part, schedule)
            start += len(part)
            if learner is not None:
                better = learner.again(self.state_)
                if better is not None:
                    self._take(better)

    def _outcomes(self, batch: Batch, schedule: window.Schedule | None) -> Iterable[window.Outcome]:
        """Absorb rows by the schedule."""
        model, settings = self._model(), self._settings()
        if schedule is None:
            self.window_.prepare(size=0, keep_rows=False)
            return adf.run(model, self.state_, batch, settings, self._kernel(model, batch))
        self.window_.prepare(size=schedule.size, keep_rows=schedule.n_revisits > 0)
        posterior = (model, self.state_, self.window_)
        kernel_for = partial(self._kernel, model)
        return window.run(*posterior, batch, settings, schedule, kernel_for)

    def _describe(self, batch: Batch, places: NDArray[np.intp]) -> None:
        """Say of rows that were not absorbed what is said of those that were."""
        for joint in self._log_joint_of(batch):
            here, places = places[: len(joint)], places[len(joint) :]
            self.log_evidence_[here] = logsumexp(joint, axis=1)
            self.novelty_[here] = np.exp(joint[:, -1] - self.log_evidence_[here])
            self.labels_[here], self.probabilities_[here] = likeliest(joint[:, :-1])
            self.label_ids_[here] = self.cluster_ids_[self.labels_[here]]

    def _close_gaps(self) -> Self:
        """Give labels numbers without gaps: a cluster that is no row's likeliest has none."""
        self.labels_ = np.unique(self.label_ids_, return_inverse=True)[1]
        return self

    def __getattr__(self, name: str) -> Any:
        # While the first rows are kept, a throw-away model of them answers.
        if name in PROVISIONAL and "prefix_" in vars(self):
            return getattr(self._provisional(), name)
        return self.__getattribute__(name)  # says what is missing

    @property
    def provisional_(self) -> bool:
        """Return whether the prefix is still filling."""
        if "prefix_" in vars(self):  # first: `_fitted` would make the throw-away model
            return True
        self._fitted()
        return False

    def _provisional(self) -> Self:
        """Return a model of the rows kept so far, as if the stream ended here."""
        if self.prefix_.provisional is None:
            model = self._unfitted()
            model.prefix_ = copy(self.prefix_)
            first = model._learn(model.prefix_, hasty=True)
            model._begin(self._schedule(batch_fit=False), *first)
            self.prefix_.provisional = model
        return cast(Self, self.prefix_.provisional)

    def _keep(self, outcomes: Iterable[window.Outcome]) -> tuple[list[Record], bool]:
        """File sweeps and events; return the records of new rows, and whether there was more."""
        records, revised = [], False
        for outcome in outcomes:
            self.lineage_ += outcome.events
            if isinstance(outcome, Record):
                records.append(outcome)
                continue
            revised = True
            if isinstance(outcome, ep.Epoch):
                self.epochs_.append(outcome)
        return records, revised

    def _finish(self, schedule: window.Schedule | None) -> Iterator[None]:
        """Revisit what is left; `_finishing` says how much of it is done between two steps."""
        if "prefix_" in vars(self):
            self._begin(schedule, *self._learn(self.prefix_))
        if schedule is None:
            self.window_.prepare(size=0, keep_rows=False)
            return
        model, settings = self._model(), self._settings()
        kernel_for = partial(self._kernel, model)
        self.window_.prepare(size=schedule.size, keep_rows=schedule.n_revisits > 0)
        posterior = (model, self.state_, self.window_)
        last = self._last_merges(schedule)
        stages = [schedule] if last is None else [schedule, last]
        begun, past = vars(self).get("_finishing", (0, window.Progress()))
        for stage, plan in enumerate(stages):
            if stage < begun:
                continue
            done = past if stage == begun else window.Progress()
            for outcome in window.finish(*posterior, settings, plan, kernel_for, done):
                self._keep([outcome])
                done = done.after(outcome, plan.tolerance)
                self._finishing = (stage, done)
                yield
        self.__dict__.pop("_finishing", None)
        if not self.keep_sites:
            self.window_.freeze(self.window_.n_rows)

    def _relabel(self, X: Any) -> Self:
        """Set the labels of rows as the posterior sees them now."""
        batch = self._encode(self._model(), X)
        found = [likeliest(joint[:, :-1]) for joint in self._log_joint_of(batch, new=False)]
        self.labels_, self.probabilities_ = (
            np.concatenate(part) for part in zip(*found, strict=True)
        )
        self.label_ids_ = self.cluster_ids_[self.labels_]
        return self

    def _save_into(self, document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        if "prefix_" in vars(self):
            save_prefix(self.prefix_, document, arrays)
        if "state_" not in vars(self):
            return
        document["likelihood"] = encode(self.likelihood_)
        if "_learner" in vars(self):
            self._learner.save_into(document, arrays)
        document["keep_rows"] = self.window_.keep_rows
        document["epochs"] = [encode(tuple(epoch._replace(events=[]))) for epoch in self.epochs_]
        arrays |= posterior_arrays(self.state_, self.lineage_)
        arrays |= window_arrays(self.window_)
        if "_finishing" in vars(self):
            stage, progress = self._finishing
            document["finishing"] = [stage, list(progress)]

    def _load_from(
        self, document: dict[str, Any], arrays: dict[str, NDArray[Any]], classes: list[type]
    ) -> None:
        if "prefix" in document:
            self.prefix_ = load_prefix(document, arrays, classes)
        if "likelihood" not in document:
            return
        self._take(decode(document["likelihood"], classes))
        if "learner" in document:
            self._learner = BaseLearner.load_from(document, arrays)
        self.state_, self.lineage_ = posterior_from(arrays, paired=self.likelihood_.paired)
        self.window_ = window_from(
            arrays, self.likelihood_, self.state_, keep_rows=document["keep_rows"]
        )
        self.epochs_ = [ep.Epoch(*decode(epoch)) for epoch in document["epochs"]]
        if "finishing" in document:
            stage, progress = document["finishing"]
            self._finishing = (stage, window.Progress(*progress))

    def resolve_id(self, id: int) -> int | None:
        """Return the id that a cluster lives on as after merges, or None if it was dropped."""
        born = self._fitted().next_id
        if not 0 <= id < born:
            raise ValueError(f"no cluster has had the id {id}; ids so far are 0 to {born - 1}")
        return survivor(id, self.lineage_)
