"""How a streaming estimator learns what is left open: from the first rows, and along the stream."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from bnpstream.estimators.fading import ForgettingEstimator
from bnpstream.estimators.prefix import Prefix
from bnpstream.estimators.settings import ScheduledEstimator
from bnpstream.inference import adf, window
from bnpstream.inference.forgetting import Ticks
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.mixture import Model
from bnpstream.mixture.window import Window
from bnpstream.search import Learner


class StreamLearner(ForgettingEstimator, ScheduledEstimator):
    """Learns at fixed row counts; between them rows are absorbed by the schedule."""

    window_: Window

    def _learn(self, prefix: Prefix) -> tuple[Model, Batch, Learner | None]:
        """Return the model that the first rows make of what is open, and all rows encoded.

        Last comes what goes on learning.
        """
        rows = prefix.rows()
        first = rows[prefix.counted()[: self.prefix_rows]]
        model, learner = self._informed(prefix.likelihood.chosen(first), first)
        try:
            batch = model.likelihood.encode(rows)
        except ValueError:  # a row of the last call, beyond those that it was learnt from
            model.likelihood.encode(prefix.last())
            raise
        self._kernel(model, batch)
        return model, batch, learner

    def _informed(self, likelihood: Likelihood, rows: Any) -> tuple[Model, Learner | None]:
        """Return the model with what is left open taken from the first rows."""
        guess = Model(self._prior(), likelihood.informed(rows))
        learner = Learner(int(rows.shape[0]))
        if likelihood.scale_is_open:
            batch = guess.likelihood.encode(rows)
            return learner.first(self._trial(), guess, batch), learner
        return guess, learner if guess.prior.learn else None

    def _successor(self) -> Likelihood:
        """Return the likelihood given since the last call; no other is learnt from then on."""
        likelihood = super()._successor()
        if "_learner" in vars(self):
            self._learner.scale = None
        return likelihood

    def _learning(
        self, batch: Batch, ticks: Ticks | None, schedule: window.Schedule | None
    ) -> Iterator[window.Outcome]:
        """Absorb rows; where something is learnt, stop at the rows at which it changes."""
        start, learner = 0, vars(self).get("_learner")
        while start < len(batch):
            room = len(batch)
            if learner is not None:
                room = learner.room(self.state_.n_observations)
            part = batch.part(start, start + room)
            fading = None if ticks is None else ticks.part(start, start + len(part))
            if learner is not None:
                learner.watch(self._trial(), self._model(), part, self.state_)
            yield from self._outcomes(part, fading, schedule)
            start += len(part)
            if learner is not None:
                better = learner.again(self._trial(), self._model(), self.state_)
                if better is not None:
                    self._take_prior(better.prior)
                    self._take(better.likelihood)

    def _outcomes(
        self, batch: Batch, ticks: Ticks | None, schedule: window.Schedule | None
    ) -> Iterable[window.Outcome]:
        """Absorb rows by the schedule."""
        model, settings = self._model(), self._settings()
        if schedule is None:
            self.window_.prepare(size=0, keep_rows=False)
            kernel = self._kernel(model, batch)
            return adf.run(model, self.state_, batch, settings, kernel, ticks)
        self.window_.prepare(size=schedule.size, keep_rows=schedule.n_revisits > 0)
        posterior = (model, self.state_, self.window_)
        kernel_for = partial(self._kernel, model)
        return window.run(*posterior, batch, settings, schedule, kernel_for, ticks)
