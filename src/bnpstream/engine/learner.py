"""What a model leaves open is learnt from the stream: base measure and prior.

From the first P rows, before any of them is absorbed: what clusters are like on the whole (words:
their frequencies m; cells: centre and width), and the scale of it (words: c in alpha = c m; cells:
how wide clusters are): that which predicts the first of these rows best, each from those before it.

Then at n = P, 2P, 4P, ... rows: the parameters of the prior from the clusters so far; and from 2P
on the base measure again, its scale by the rows just before, as they were predicted. A base
measure is never judged by the marginal likelihood of the clusters that it made, which runs away
(``docs/design.md``).

Clusters already there stay as they are: they are sums of statistics, and from then on these are
read with the new base measure and weighed by the new prior. Rows are counted from the start of the
stream, never by calls, so any split into calls gives the same bits.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bnpstream.engine.ascent import search
from bnpstream.engine.partition import learnt_prior
from bnpstream.inference import adf
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.mixture import KernelArguments, MixtureState, Model, log_joint, log_joint_where
from bnpstream.mixture.snapshot import state_arrays, state_from
from bnpstream.priors import Prior

KernelFor = Callable[[Model, Batch], KernelArguments | None]

FIRST_FACTOR, FIRST_STEPS = 2.0, 7
FIRST_ROWS, EARLY = 160, 0.6
"""First rows that the search looks at, at most; the share that m is taken from meanwhile."""
LATER_FACTOR, LATER_STEPS = 1.6, 3
PROBE = 64
"""Rows before every later time that decide on the scale."""
TOLL = 1.0
"""Nats that a larger scale must be worth, a step."""
NEGLIGIBLE = -12.0
"""Clusters whose log score is so far below the best do not change which scale is better."""


class Trial(NamedTuple):
    """How rows are absorbed."""

    settings_for: Callable[[Prior], adf.Settings]
    kernel_for: KernelFor
    most_discount: float = 1.0
    """A prior is to have no larger one."""

    def absorb(self, model: Model, state: MixtureState, batch: Batch) -> float:
        """Absorb rows; return the sum of their log predictives one step ahead.

        These are compared between models, so they are over all clusters that pass the cut: with a
        limit a model of many like clusters would seem to predict worse than it does.
        """
        before, kernel = state.log_evidence, self.kernel_for(model, batch)
        settings = replace(self.settings_for(model.prior), max_responsibilities=None)
        for _ in adf.run(model, state, batch, settings, kernel):
            pass
        return state.log_evidence - before


class Learner:
    """Learns what is open in a prior, in a base measure, or in both.

    Parameters
    ----------
    n_first : int
        P.
    scale : float or None
        Of the base measure, relative to the first guess; None if it is not learnt.

    Attributes
    ----------
    n_next : int
        Rows at which something is learnt again.
    """

    def __init__(self, n_first: int, scale: float | None = None) -> None:
        self.n_first, self.scale = n_first, scale
        self.n_next = n_first
        self._before: MixtureState | None = None
        self._probe: list[Batch] = []
        self._found: Likelihood | None = None

    def first(self, trial: Trial, model: Model, batch: Batch) -> Model:
        """Return the model that the first rows speak for.

        Parameters
        ----------
        trial : Trial
            How rows are absorbed.
        model : Model
            Its base measure is a guess, made from all these rows.
        batch : Batch
            The first rows, P at most.
        """
        prior, guess = model
        looked_at = batch.part(0, FIRST_ROWS)
        early = looked_at.part(0, max(1, int(EARLY * len(looked_at))))
        located = guess.relocated(early.totals(guess.n_located))
        states: dict[float, MixtureState] = {}

        def score(scale: float) -> float:
            candidate = Model(prior, located.rescaled(scale))
            state = states[scale] = adf.init(candidate, batch.n_statistics)
            return trial.absorb(candidate, state, looked_at)

        self.scale = best = search(score, 1.0, FIRST_FACTOR, FIRST_STEPS, TOLL)
        nearest = min(states, key=lambda scale: abs(np.log(scale / best)))
        prior = self._prior(trial, prior, states[nearest])
        return Model(prior, guess.rescaled(best))

    def skip(self, n_rows: int) -> None:
        """Begin after so many rows: nothing is learnt up to there."""
        while self.n_next <= n_rows:
            self.n_next *= 2

    @property
    def n_probe(self) -> int:
        """Return how many rows decide on the scale next time; at P none do."""
        return 0 if self.scale is None or self.n_next == self.n_first else min(PROBE, self.n_first)

    def room(self, n_rows: int) -> int:
        """Return how many rows may be absorbed before there is something to do."""
        probing = self.n_next - self.n_probe
        return (probing if n_rows < probing else self.n_next) - n_rows

    def watch(self, trial: Trial, model: Model, batch: Batch, state: MixtureState) -> None:
        """Look at rows before they are absorbed: the last ones before the next time decide."""
        n_rows, n_probe = state.n_observations, self.n_probe
        if n_rows < self.n_next - n_probe or n_probe == 0:
            return
        self._probe.append(batch)
        if n_rows + len(batch) < self.n_next:
            self._before = self._before or state.copy()
            return
        before = self._before or state
        rows = type(batch).joined(self._probe)
        self._found = self._searched(trial, model, before, rows)
        self._before, self._probe = None, []

    def judge(self, trial: Trial, model: Model, batch: Batch, before: MixtureState) -> None:
        """Let rows decide on the scale now, from a posterior without them; `again` tells.

        For a stream that comes in parts: the first rows of the part in which the next time falls.
        """
        self._before, self._probe = None, []
        if self.n_probe > 0:
            self._found = self._searched(trial, model, before, batch.part(0, self.n_probe))

    def _searched(
        self, trial: Trial, model: Model, before: MixtureState, rows: Batch
    ) -> Likelihood:
        """Return the base measure that predicts rows best from a posterior without them."""
        current, now = self.scale or 1.0, model.likelihood
        totals = before.totals(now.n_located)
        moved = now.relocated(totals)
        joint = log_joint(model, before, rows, trial.kernel_for(model, rows), log_cut=NEGLIGIBLE)
        wanted = joint > joint.max(axis=1, keepdims=True) + NEGLIGIBLE
        wanted[:, -1] = True

        def score(scale: float) -> float:
            other = Model(model.prior, moved.rescaled(scale / current))
            kernel = trial.kernel_for(other, rows)
            joint = log_joint_where(other, before, rows, kernel, wanted)
            return float(logsumexp(joint, axis=1) @ rows.row_weights)

        self.scale = search(score, current, LATER_FACTOR, LATER_STEPS, TOLL)
        return now.relocated(totals + rows.totals(now.n_located)).rescaled(self.scale / current)

    def again(self, trial: Trial, model: Model, state: MixtureState) -> Model | None:
        """Return the model from now on, if it is time for another."""
        if state.n_observations < self.n_next:
            return None
        self.n_next *= 2
        likelihood, self._found = self._found or model.likelihood, None
        return Model(self._prior(trial, model.prior, state), likelihood)

    def at_the_end(self, trial: Trial, prior: Prior, state: MixtureState) -> Prior:
        """Return the prior of a stream that ended: learnt, if there were not P rows so far."""
        return prior if state.n_observations >= self.n_first else self._prior(trial, prior, state)

    def _prior(self, trial: Trial, prior: Prior, state: MixtureState) -> Prior:
        if not prior.learn:
            return prior
        return learnt_prior(prior, state, trial.most_discount)

    def save_into(self, document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Add what is known so far, the rows that are being looked at included."""
        document["learner"] = {"n_first": self.n_first, "scale": self.scale, "n_next": self.n_next}
        if self._before is not None:
            rows = type(self._probe[0]).joined(self._probe)
            arrays |= {f"learner.state.{k}": x for k, x in state_arrays(self._before).items()}
            arrays |= {f"learner.rows.{k}": x for k, x in rows.arrays().items()}

    @classmethod
    def load_from(
        cls, document: dict[str, Any], arrays: dict[str, NDArray[Any]], likelihood: Likelihood
    ) -> "Learner":
        """Return what `save_into` added."""
        saved = document["learner"]
        learner = cls(saved["n_first"], saved["scale"])
        learner.n_next = saved["n_next"]
        state, rows = (named(arrays, f"learner.{part}.") for part in ("state", "rows"))
        if state:
            learner._before = state_from(state, paired=likelihood.paired)
            learner._probe = [likelihood.batch_of(rows)]
        return learner


def named(arrays: dict[str, NDArray[Any]], start: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names start so, without it."""
    return {name[len(start) :]: x for name, x in arrays.items() if name.startswith(start)}
