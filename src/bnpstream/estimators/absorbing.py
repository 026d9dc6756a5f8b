"""How a streaming estimator absorbs rows: prefix, labels, end, and what is saved."""

from collections.abc import Iterable, Iterator
from copy import copy
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import validate_data

from bnpstream.estimators.base import require_weights, require_whole
from bnpstream.estimators.codec import decode, encode
from bnpstream.estimators.novelty import NoveltyReader
from bnpstream.estimators.prefix import Prefix
from bnpstream.estimators.reading import likeliest
from bnpstream.estimators.saving import (
    PER_ROW,
    Savable,
    load_prefix,
    posterior_arrays,
    posterior_from,
    save_prefix,
)
from bnpstream.estimators.stream_learning import StreamLearner
from bnpstream.inference import adf, ep, window
from bnpstream.inference.visits import Absorbed, Record
from bnpstream.likelihoods import Batch
from bnpstream.likelihoods.frames import as_rows, names_of
from bnpstream.mixture import Model, SiteBuffer
from bnpstream.mixture.snapshot import window_arrays, window_from
from bnpstream.mixture.window import Window
from bnpstream.search import Learner

Floats = NDArray[np.float64]

PROVISIONAL = (
    *PER_ROW,
    *("absorbed_", "state_", "window_", "lineage_", "epochs_", "prior_", "likelihood_"),
)


class StreamAbsorber(Savable, NoveltyReader, StreamLearner):
    """Absorbs rows in order; any split into calls gives the same bits."""

    epochs_: list[ep.Epoch]
    prefix_: Prefix
    labels_: NDArray[np.intp]
    label_ids_: NDArray[np.int64]
    probabilities_: Floats
    log_evidence_: Floats
    novelty_: Floats
    absorbed_: Absorbed

    def _absorb(
        self, X: Any, sample_weight: Any, timestamps: Any, schedule: window.Schedule | None
    ) -> bool:
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
            stamps = self._stamps(timestamps, len(batch), self._is_by_time())
            model = Model(self._prior(), likelihood)
            self._kernel(model, batch)
            if fresh:
                self._start(model, batch, Learner(n_prefix) if model.prior.learn else None)
            return self._visit(batch, weights, stamps, schedule)
        likelihood.check_rows(rows)
        weights = require_weights(sample_weight, rows)
        stamps = self._stamps(timestamps, int(rows.shape[0]), self._is_by_time())
        if not fresh:
            validate_data(self, X, reset=False, skip_check_array=True)
        kept = Prefix(likelihood) if prefix is None else prefix.copy()
        kept.append(rows, weights, stamps)
        chosen = self._learn(kept) if kept.counted().size >= n_prefix else None
        if fresh:
            validate_data(self, X, reset=True, skip_check_array=True)
        self.prefix_ = kept
        return chosen is not None and self._begin(schedule, *chosen)

    def _is_by_time(self) -> bool | None:
        """Return whether the rows so far had time stamps; None if that is not decided."""
        if "prefix_" in vars(self):
            return self.prefix_.stamps() is not None
        return self.clock_.by_time if "clock_" in vars(self) else None

    def _model(self) -> Model:
        """Return prior and likelihood as they are now; of a filling prefix, the throw-away ones."""
        return self._provisional()._model() if "prefix_" in vars(self) else super()._model()

    def _begin(
        self,
        schedule: window.Schedule | None,
        model: Model,
        batch: Batch,
        learner: Learner | None,
    ) -> bool:
        """Absorb all rows that were kept; see `_absorb`."""
        prefix = self.prefix_
        del self.prefix_
        self._start(model, batch, learner)
        revised = self._visit(batch, prefix.weights(), prefix.stamps(), schedule)
        for name in PER_ROW:
            setattr(self, name, getattr(self, name)[-prefix.n_last :])
        return revised

    def _start(self, model: Model, batch: Batch, learner: Learner | None) -> None:
        """Make the posterior of no rows."""
        self._take(model.likelihood)
        self._take_prior(model.prior)
        if learner is not None:
            self._learner = learner
        self.state_ = adf.init(self._model(), batch.n_statistics)
        self._settings().budget.check(self.state_)
        self.window_ = Window()
        self.lineage_ = []

    def _visit(
        self,
        batch: Batch,
        weights: Floats | None,
        stamps: Floats | None,
        schedule: window.Schedule | None,
    ) -> bool:
        """Absorb encoded rows, those of weight zero left out; see `_absorb`."""
        self._follow_prior()
        every = batch
        there = np.arange(len(every)) if weights is None else np.flatnonzero(weights)
        if weights is not None:
            batch = every.chosen(there).weighted(weights[there])
        self.epochs_ = []
        stamps = None if stamps is None else stamps[there]
        ticks = self._ticks(self.state_.n_observations, len(batch), stamps)
        records, revised = self._keep(self._learning(batch, ticks, schedule))
        self.absorbed_ = Absorbed.of(records)
        rows = self.absorbed_.rows
        self.labels_ = np.empty(len(every), np.intp)
        self.log_evidence_, self.probabilities_, self.novelty_ = np.empty((3, len(every)))
        self.label_ids_ = np.empty(len(every), np.int64)
        self.label_ids_[there] = rows.ids
        self.labels_[there] = np.searchsorted(self.cluster_ids_, rows.ids)
        self.log_evidence_[there], self.probabilities_[there] = rows.log_evidence, rows.shares
        self.novelty_[there] = rows.novelty
        if not revised:
            self._relabel_rows(every, there[~np.isin(rows.ids, self.cluster_ids_)])
        if there.size < len(every):
            absent = np.setdiff1d(np.arange(len(every)), there)
            self._describe(every.chosen(absent), absent)
        return revised

    def _describe(self, batch: Batch, places: NDArray[np.intp]) -> None:
        """Say of rows that were not absorbed what is said of those that were."""
        for joint in self._log_joint_of(batch):
            here, places = places[: len(joint)], places[len(joint) :]
            self.log_evidence_[here] = logsumexp(joint, axis=1)
            self.novelty_[here] = np.exp(joint[:, -1] - self.log_evidence_[here])
            self._label(here, joint[:, :-1])

    def _relabel_rows(self, batch: Batch, places: NDArray[np.intp]) -> None:
        """Label rows whose clusters are gone since by those that are there now."""
        if places.size > 0:
            for joint in self._log_joint_of(batch.chosen(places), new=False):
                here, places = places[: len(joint)], places[len(joint) :]
                self._label(here, joint[:, :-1])

    def _label(self, places: NDArray[np.intp], joint: Floats) -> None:
        self.labels_[places], self.probabilities_[places] = likeliest(joint)
        self.label_ids_[places] = self.cluster_ids_[self.labels_[places]]

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

    def _answering(self) -> Self:
        return self._provisional() if "prefix_" in vars(self) else self

    def _sites(self) -> SiteBuffer:
        return self.window_.sites

    def _provisional(self) -> Self:
        """Return a model of the rows kept so far, as if the stream ended here."""
        if self.prefix_.provisional is None:
            model = self._unfitted()
            model.prefix_ = copy(self.prefix_)
            model._begin(self._schedule(batch_fit=False), *model._learn(model.prefix_))
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
        if "_learner" in vars(self):
            self._take_prior(self._learner.at_the_end(self._trial(), self._prior(), self.state_))
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

    def _save_into(self, document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        if "prefix_" in vars(self):
            save_prefix(self.prefix_, document, arrays)
        if "state_" not in vars(self):
            return
        document["likelihood"] = encode(self.likelihood_)
        self._save_clock(document)
        if (prior := self._prior()).learn:
            document["prior"] = encode(prior)
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
        self._load_clock(document)
        self._take_prior(decode(document["prior"]) if "prior" in document else self._prior())
        if "learner" in document:
            self._learner = Learner.load_from(document, arrays, self.likelihood_)
        self.state_, self.lineage_ = posterior_from(arrays, paired=self.likelihood_.paired)
        self.window_ = window_from(
            arrays, self.likelihood_, self.state_, keep_rows=document["keep_rows"]
        )
        self.epochs_ = [ep.Epoch(*decode(epoch)) for epoch in document["epochs"]]
        if "finishing" in document:
            stage, progress = document["finishing"]
            self._finishing = (stage, window.Progress(*progress))
