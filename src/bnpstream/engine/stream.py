"""`Stream`: one object that owns a posterior and everything that depends on its history."""

from collections.abc import Iterable, Iterator
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from bnpstream.engine.absorption import Absorption, Checked, Told
from bnpstream.engine.arrivals import Arrivals
from bnpstream.engine.checks import require_stamps, require_weights
from bnpstream.engine.encoder import Encoder
from bnpstream.engine.learner import Learner, Trial
from bnpstream.engine.loops import Loops
from bnpstream.engine.notice import warn_of_slowness
from bnpstream.engine.parallel.rounds import Rounds, prepared
from bnpstream.engine.phase import Phase
from bnpstream.engine.posterior import Posterior
from bnpstream.engine.prefix import Prefix, n_rows
from bnpstream.engine.revisits import finishing, refine
from bnpstream.engine.settings import Settings
from bnpstream.engine.steps import clock_ticks, steps
from bnpstream.engine.topic_finder import TopicFinder
from bnpstream.engine.topics import Topics
from bnpstream.inference import adf, ep, window
from bnpstream.inference.forgetting import TICKS, Clock, Ticks
from bnpstream.inference.merge import join_into
from bnpstream.inference.tree import MergeTree
from bnpstream.inference.visits import Record
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.mixture import Event, KernelArguments, MixtureState, Model
from bnpstream.mixture.interrupts import deferred
from bnpstream.mixture.window import Window
from bnpstream.priors import Prior

NEVER = 2**62
"""More rows than will ever come."""


class Stream:
    """A posterior over clusters, and everything needed to continue it.

    Any split of the same rows into calls gives the same bits.

    Parameters
    ----------
    prior : Prior
        Prior over partitions; it may be learnt along the stream.
    encoder : Encoder
        Likelihood, and how rows are encoded.
    settings : Settings
        How rows are absorbed.
    all_rows : bool
        Whether one call gives all rows, so that `n_passes` applies.

    Attributes
    ----------
    phase : Phase
        Current phase.
    encoder : Encoder
        Owns the likelihood, and the columns if they grow.
    state : MixtureState
        The posterior.
    prefix : Prefix
        Rows kept until there are enough; empty from then on.
    learner : Learner or None
        Learns what is open in prior and base measure.
    clock : Clock or None
        State of forgetting, with a half-life.
    ticks_per_half_life : int
        How often rows fade per half-life; streams keep their initial value.
    window : Window
        Rows that can still be revisited, and what each row contributed.
    rounds : Rounds
        Rows that wait until there are enough to be absorbed in parallel (`staleness`).
    finder : TopicFinder
        Finds topics, and holds the last ones.
    arrivals : Arrivals
        Log predictives of the last rows on arrival.
    lineage : list of Event
        Births, merges, deaths and retirements since the start.
    epochs : list of Epoch
        Result of each sweep of the last call.
    last : Absorption or None
        Results for the rows of the last call, as far as they are absorbed, and for those that had
        waited for them.
    n_together : int
        First rows, of several calls, that are absorbed together: interrupts wait for their end.
    progress : (int, Progress) or None
        Between two steps of `finishing`: the stage, and how far it has come.
    """

    def __init__(
        self, prior: Prior, encoder: Encoder, settings: Settings, *, all_rows: bool = False
    ) -> None:
        self.encoder, self.phase = encoder, Phase.EMPTY
        self.prefix, self.window, self.rounds = Prefix(), Window(), Rounds()
        self.finder, self.arrivals = TopicFinder(), Arrivals()
        self.learner: Learner | None = None
        self.clock: Clock | None = None
        self.ticks_per_half_life = TICKS
        self.lineage: list[Event] = []
        self.epochs: list[ep.Epoch] = []
        self.last: Absorption | None = None
        self._told = Told()
        self._state: MixtureState | None = None
        self.n_together = 0
        self.progress: tuple[int, window.Progress] | None = None
        self._provisional: Stream | None = None
        self._given_prior = self._prior = prior
        self.settings = settings
        self.configure(settings, all_rows=all_rows)

    def resume_prefix(self, prefix: Prefix) -> None:
        """Continue with rows that were kept."""
        self.prefix, self.phase = prefix, Phase.PREFIX

    def without_history(self) -> Self:
        """Return this stream without its events, sweeps and last call; the rest is shared."""
        other = copy(self)
        other.lineage, other.epochs, other.last = [], [], None
        other.rounds, other._told = Rounds(self.rounds.parts), Told()
        other._loops, other._provisional = Loops(self.settings), None
        other.arrivals = Arrivals()
        other.finder = replace(self.finder.forgetful(), n_next=NEVER)
        return other

    def resume(self, state: MixtureState, kept: Window, lineage: list[Event]) -> None:
        """Continue with a posterior, the rows that can be revisited, and its history."""
        self._state, self.window, self.lineage = state, kept, lineage
        self.prefix, self.phase = Prefix(), Phase.RUNNING

    # Settings, prior and likelihood: what a user may change between two calls.

    def configure(
        self, settings: Settings, prior: Prior | None = None, *, all_rows: bool = False
    ) -> None:
        """Use other settings from now on, and another prior; a ValueError changes nothing.

        Parameters
        ----------
        settings : Settings
            ValueError says which is invalid under the prior.
        prior : Prior, optional
            If it is the one given before, what was learnt of it stays.
        all_rows : bool
            Whether one call gives all rows, so that `n_passes` applies.
        """
        other = prior is not None and prior != self._given_prior
        used = prior if prior is not None and other else self._prior
        settings.check(used)
        with deferred():
            if self.phase is Phase.RUNNING and self.settings.round_rows != settings.round_rows:
                self.settle()  # waiting rows do not belong to other rounds
            self.settings, self._prior = settings, used
            self.schedule = settings.schedule(all_rows=all_rows)
            self._loops, self._provisional = Loops(settings), None
            self.finder.set(settings.n_topics, settings.granularity)
            if prior is not None:
                self._given_prior = prior
                self._follow_prior()

    @property
    def revisits(self) -> bool:
        """Return whether rows are revisited, clusters merged, or sites kept."""
        return self.schedule is not None

    def check_likelihood(self, likelihood: Likelihood, given: Any = None) -> None:
        """Raise ValueError if the posterior cannot continue with a likelihood.

        Parameters
        ----------
        likelihood : Likelihood
            Set since the last call.
        given : optional
            How it was given, for example by name.
        """
        if not likelihood.is_informed:
            raise ValueError(
                f"likelihood {likelihood if given is None else given!r} must be learnt from the "
                "first rows, but these are already absorbed: give all its parameters, or call fit"
            )
        if not likelihood.continues(self.likelihood):
            raise ValueError(
                f"likelihood {likelihood!r} needs other statistics than {self.likelihood!r}, with "
                "which earlier rows were absorbed: call fit"
            )

    def use_likelihood(self, likelihood: Likelihood) -> None:
        """Use a likelihood that was set since the last call, and stop learning it."""
        self.check_likelihood(likelihood)
        self.encoder.use(likelihood)
        self._provisional, self.arrivals = None, Arrivals()
        if self.learner is not None:
            self.learner.scale = None

    def adopt(self, prior: Prior, likelihood: Likelihood | None, learner: Learner | None) -> None:
        """Take over what another copy of this stream has learnt; None keeps the likelihood."""
        self._adopt_prior(prior)
        if likelihood is not None:
            self.encoder.use(likelihood)
        self.learner = learner

    def _adopt_prior(self, prior: Prior) -> None:
        self._prior, self._provisional = prior, None

    def _adopt(self, model: Model) -> None:
        self._adopt_prior(model.prior)
        self.encoder.use(model.likelihood)

    def learn_prior(self) -> None:
        """Learn what is open in the prior from the current clusters."""
        if self.learner is not None:
            self._adopt_prior(self.learner.prior_of(self.trial, self._prior, self.state))

    def _follow_prior(self) -> None:
        """Start to learn what is open in the prior."""
        if self._prior.learn and self.learner is None and self._state is not None:
            self.learner = Learner(self.settings.prefix_rows)
            self.learner.skip(self._state.n_observations)

    # Parts of a stream.

    @property
    def prior(self) -> Prior:
        """Return the prior as given, or as learnt since."""
        return self._prior

    @property
    def given_prior(self) -> Prior:
        """Return the prior as given."""
        return self._given_prior

    @property
    def likelihood(self) -> Likelihood:
        """Return the likelihood, as learnt so far."""
        return self.encoder.likelihood

    @property
    def model(self) -> Model:
        """Return the current prior and likelihood."""
        return Model(self._prior, self.encoder.likelihood)

    @property
    def state(self) -> MixtureState:
        """Return the posterior of the rows absorbed; there is none before the prefix is full."""
        if self._state is None:
            raise ValueError("no rows have been absorbed yet: absorb some, or call finish")
        return self._state

    @property
    def n_rows(self) -> int:
        """Return the number of rows absorbed or kept; absorbed rows of weight zero do not count."""
        if self._state is None:
            return self.prefix.n_rows
        return self._state.n_observations + self.rounds.n_rows

    @property
    def waits(self) -> bool:
        """Return whether some of the rows given are not in the posterior yet."""
        return self.phase is Phase.PREFIX or self.rounds.n_rows > 0

    @property
    def visits(self) -> adf.Settings:
        """Return how a row is visited under the current prior."""
        return self._loops.visits(self._prior)

    @property
    def trial(self) -> Trial:
        """Return how the learner visits rows."""
        return self._loops.trial

    def kernel(self, model: Model, batch: Batch) -> KernelArguments | None:
        """Return what compiled loops need for some rows, or None for the reference engine."""
        return self._loops.kernel(model, batch)

    @property
    def posterior(self) -> Posterior:
        """Return the posterior; while rows wait, a provisional one."""
        return self.answering._own_posterior

    @property
    def _own_posterior(self) -> Posterior:
        """Return the posterior of the rows absorbed so far, whether or not others wait."""
        return Posterior(self.model, self.state, self.encoder, self.kernel)

    @property
    def answering(self) -> "Stream":
        """Return the stream whose posterior is read; while rows wait, one as if it had ended."""
        if not self.waits:
            return self
        if self._provisional is None:
            self._provisional = self._as_if_ended()
        return self._provisional

    def _as_if_ended(self) -> "Stream":
        """Return a throw-away stream of the rows given so far."""
        if self.phase is Phase.PREFIX:
            other = Stream(self._given_prior, deepcopy(self.encoder), self.settings)
            other.resume_prefix(self.prefix)
            other.ticks_per_half_life = self.ticks_per_half_life
        else:
            other = deepcopy(self)
        other.settle()
        return other

    def novelty_quantiles(self, batch: Batch) -> Floats:
        """Return, for each row, the share of the last rows that were more probable, shape (n,)."""
        stream = self.answering
        if stream.likelihood.feature_kind == "words":
            raise ValueError(
                "novelty_quantile compares log predictives, but those of documents depend on their "
                "lengths: use surprise, which allows for that"
            )
        if stream.arrivals.log_evidence.size == 0:
            raise ValueError(
                "novelty_quantile has no rows to compare with: the model was saved by an earlier "
                "version, fitted on a cluster or coarsened, or its likelihood was changed. First "
                "absorb some rows with partial_fit"
            )
        return stream.arrivals.quantiles(stream.posterior.log_predictives(batch))

    def view(self, rows: Any) -> Batch:
        """Return rows to look at, encoded with the columns known so far."""
        encoder = self.answering.encoder
        return encoder.view(encoder.prepared(rows))

    # Absorbing rows.

    def check(self, rows: Any, weights: Any = None, timestamps: Any = None) -> Checked:
        """Return rows that can be absorbed; ValueError names what is wrong, and nothing changes.

        Parameters
        ----------
        rows : array, sparse, or list of documents or records
            Rows of the kind that the encoder takes.
        weights : array-like of shape (n,), optional
            Number of rows that each counts for; rows of weight zero leave no trace.
        timestamps : array-like of shape (n,), optional
            Times of the rows.
        """
        encoder = self.encoder.settled(rows) if self.phase is Phase.EMPTY else self.encoder
        running = self.phase is Phase.RUNNING or encoder.is_informed
        threads = self.settings.learn_threads
        found = prepared(encoder, rows, threads) if running else encoder.check(rows)
        n = len(found) if running else n_rows(found)
        weighed = require_weights(weights, n)
        stamps = require_stamps(timestamps, n, self.settings.half_life, self._is_by_time())
        if running:
            if self.settings.engine == "compiled":  # raises if there is no such engine
                self.kernel(Model(self._prior, encoder.likelihood), encoder.view(found))
            return Checked(encoder, found, n, weighed, stamps, None)
        prefix = self.prefix.with_rows(found, weighed, stamps)
        return Checked(encoder, found, n, weighed, stamps, prefix)

    def absorb(self, rows: Any, weights: Any = None, timestamps: Any = None) -> Absorption | None:
        """Absorb rows in order, or keep them while the prefix, or a round, fills.

        Parameters
        ----------
        rows : Checked, or as in `check`
            Rows.
        weights, timestamps
            As in `check`.

        Returns
        -------
        absorption : Absorption or None
            Results for them, and for rows that had waited; None if all were kept.
        """
        given = rows if isinstance(rows, Checked) else self.check(rows, weights, timestamps)
        with deferred():
            return self._absorb(given)

    def _absorb(self, given: Checked) -> Absorption | None:
        """Absorb rows, or keep them."""
        self.progress = self._provisional = None
        if given.prefix is None:
            if self.phase is Phase.EMPTY:
                learns = self._prior.learn
                learner = Learner(self.settings.prefix_rows) if learns else None
                warn_of_slowness(given.encoder.likelihood)
                self.encoder = given.encoder
                self._start(self.model, self.encoder.n_statistics(given.rows), learner)
            return self._visit(given.rows, given.weights, given.stamps)
        if given.prefix.counted().size >= self.settings.prefix_rows:
            return self._begin_with(given.encoder, given.prefix)
        self.encoder, self.prefix, self.phase = given.encoder, given.prefix, Phase.PREFIX
        return None

    def begin(self) -> Absorption | None:
        """Absorb all rows that were kept now, after learning what is open from them."""
        with deferred():
            return self._begin_with(self.encoder, self.prefix)

    def settle(self) -> Absorption | None:
        """Absorb all waiting rows, of prefix and round; return the results, if there are any.

        A partial round is absorbed like a full one: later rows start another.
        """
        with deferred():
            if self.phase is not Phase.PREFIX:
                return self._settle_round()
            self.begin()
            self._settle_round()
            return self.last

    def _settle_round(self) -> Absorption | None:
        """Absorb the rows of a partial round."""
        self._provisional = None
        if not self.rounds.parts:
            return None
        records, _ = self.keep(self.rounds.settle(self))
        self.last = self._told.of_call(records, 0)
        return self._told.of_waiting(records)

    def _begin_with(self, encoder: Encoder, prefix: Prefix) -> Absorption | None:
        """Learn from the first rows, then absorb them all; if one is bad, nothing changes."""
        first = prefix.first(self.settings.prefix_rows)
        encoder = encoder.chosen(first)
        guess, batch = encoder.informed(first)
        warn_of_slowness(guess)
        n_first = n_rows(first)
        learner, model = Learner(max(n_first, 1)), Model(self._prior, guess)
        if batch is not None:
            self.settings.budget.check(adf.init(model, batch.n_statistics))
            model = learner.first(self.trial, model, batch)
        encoder.use(model.likelihood)
        try:
            rows = prepared(encoder, prefix.rows(), self.settings.learn_threads)
        except ValueError:  # a row of the last call, after those to learn from
            encoder.prepared(prefix.last())
            raise
        if self.settings.engine == "compiled":  # raises if there is no such engine
            self.kernel(model, encoder.view(rows))
        learns = batch is not None or model.prior.learn
        self.encoder, self.prefix = encoder, Prefix()
        self._start(model, encoder.n_statistics(rows), learner if learns else None)
        self.n_together = n_first  # some of these rows came in earlier calls
        n_waited = prefix.n_rows - prefix.n_last
        return self._visit(rows, prefix.weights(), prefix.stamps(), n_waited)

    def _start(self, model: Model, n_statistics: int, learner: Learner | None) -> None:
        """Create the posterior of no rows."""
        state = adf.init(model, n_statistics)
        self.settings.budget.check(state)
        self._adopt(model)
        self.learner, self._state = learner, state
        self.window, self.rounds, self.lineage, self.clock = Window(), Rounds(), [], None
        self.finder, self.arrivals = self.finder.forgetful(), Arrivals()
        self.phase = Phase.RUNNING

    def _is_by_time(self) -> bool | None:
        """Return whether earlier rows had timestamps; None if undecided."""
        if self.phase is Phase.PREFIX:
            return self.prefix.stamps() is not None
        return None if self.clock is None else self.clock.by_time

    def _visit(
        self, rows: Any, weights: Floats | None, stamps: Floats | None, n_waited: int = 0
    ) -> Absorption | None:
        """Absorb prepared rows, without those of weight zero."""
        self._follow_prior()
        places = np.arange(len(rows)) if weights is None else np.flatnonzero(weights)
        if weights is not None:
            rows = rows.chosen(places).weighted(weights[places])
            stamps = None if stamps is None else stamps[places]
        self.epochs, n = [], places.size
        self._told = Told(places, n_waited).after(self.rounds.n_rows)
        outcomes: Iterable[window.Outcome]
        if self.settings.staleness == 0 or self.revisits:
            outcomes = self.steps(rows, n, clock_ticks(self, n, stamps))
        else:
            outcomes = self.rounds.absorb(self, rows, n)
        self.last = self._told.of_call(*self.keep(outcomes))
        return self.last

    def steps(self, rows: Any, n: int, ticks: Ticks | None = None) -> Iterator[window.Outcome]:
        """Absorb the first n of prepared rows, one after the other."""
        encoder = self.encoder
        return steps(self, partial(encoder.part, rows), partial(encoder.room, rows), n, ticks)

    def absorb_batch(self, batch: Batch) -> Iterator[window.Outcome]:
        """Absorb encoded rows, one after the other."""
        return steps(self, batch.part, lambda start: len(batch) - start, len(batch), None)

    def find_topics_in_time(self) -> None:
        """Find topics if enough rows have been seen; after an interrupt, before the next row."""
        if self.state.n_observations >= self.finder.n_next:
            self._find_topics()

    def _find_topics(self) -> None:
        """Find topics now, and record what happened to earlier ones."""
        self.lineage += self.finder.again(self._own_posterior)

    @property
    def topics(self) -> Topics:
        """Return the topics found last; for a stream too short for any, search without saving."""
        stream = self._with_topics()
        found = stream.finder.topics
        if found is None:
            found, _ = stream.finder.search(stream._own_posterior, None)
        return found

    @property
    def topics_now(self) -> Topics:
        """Return topics of the rows so far, which may be found for this answer only."""
        stream = self._with_topics()
        return stream.finder.asked(stream._own_posterior)

    def _with_topics(self) -> "Stream":
        """Return the stream that answers; if it has ended, its topics are found."""
        stream = self.answering if self.waits else self
        with deferred():
            if stream.finder.due:
                stream._find_topics()
        return stream

    def keep(self, outcomes: Iterable[window.Outcome]) -> tuple[list[Record], int]:
        """Record sweeps and events; return the records of new rows, and how many were revised.

        If rows are revisited along the stream, all count as revised as soon as some are.
        """
        records, n_rows, n_revised, revised = [], 0, 0, False
        for outcome in outcomes:
            self.lineage += outcome.events
            if isinstance(outcome, Record):
                records.append(outcome)
                n_rows += len(outcome.rows.ids)
                if self.likelihood.feature_kind != "words":  # for texts they depend on length
                    self.arrivals.add(outcome.rows.log_evidence)
                continue
            n_revised, revised = n_rows, True
            if isinstance(outcome, ep.Epoch):
                self.epochs.append(outcome)
        return records, n_rows if self.revisits and revised else n_revised

    # Revisiting rows, and the end of a stream.

    def finish(self) -> Absorption | None:
        """End the stream: absorb waiting rows, revisit the window, and freeze it."""
        began = None
        for step in self.finishing():
            began = step or began
        return began

    def finishing(self) -> Iterator[Absorption | None]:
        """Do what `finish` does, yielding after each step: a sweep, or a search for merges.

        Between two steps the stream can be saved; restored, it continues from there. If rows
        waited, their results are yielded first. Interrupts are obeyed between steps.
        """
        steps = self._finishing()
        while True:
            with deferred():
                try:
                    step = next(steps)
                except StopIteration:
                    break
            yield step

    def _finishing(self) -> Iterator[Absorption | None]:
        """Do what `finish` does."""
        if self.phase is Phase.EMPTY:
            raise ValueError("nothing to finish: no rows have been given yet")
        began = self.settle()
        if began is None and self.progress is None:
            self.epochs = []
        if self.learner is not None and self.progress is None:  # not again in the middle
            self._adopt_prior(self.learner.at_the_end(self.trial, self._prior, self.state))
        yield from finishing(self, began)
        self.finder.due = True

    def refine(self, rows: Any, weights: Any = None, *, n_sweeps: int = 1) -> None:
        """Revisit all rows of the stream, given again in the same order (needs `keep_sites`).

        Parameters
        ----------
        rows, weights
            All rows given so far, and the weights given with them.
        n_sweeps : int
            Most sweeps.
        """
        with deferred():
            if self.phase is Phase.PREFIX:
                self.begin()
            refine(self, rows, weights, n_sweeps)

    def coarsened(self, tree: MergeTree, n_clusters: int) -> "Stream":
        """Return a copy whose clusters are merged into `n_clusters` groups of a tree.

        The clusters may already be groups of the same tree, at a finer cut.
        """
        other = deepcopy(self.answering)
        other.arrivals = Arrivals()  # rows are less probable in coarser clusters
        left = set(other.state.ids.tolist())
        groups = tree.cut(n_clusters)
        for id, group in zip(tree.ids.tolist(), groups.tolist(), strict=True):
            if id != group and id in left:
                other.lineage.append(join_into(other.state, [other.window.sites], group, id))
        return other
