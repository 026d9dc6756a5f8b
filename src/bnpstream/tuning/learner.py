"""A base measure of counts that is learnt from the stream: alpha_w = c m_w.

The mean m are the frequencies of words among the rows seen, smoothed. The strength c is what
predicts rows best that it was not learnt from. Both come from the first P rows, and again when 2 P,
4 P, 8 P... rows have been seen: m from all rows, c from the last few. Rows are counted from the
start of the stream, never by calls, so any split into calls gives the same bits.
"""

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bnpstream.inference import adf
from bnpstream.likelihoods import Batch, DirichletMultinomial
from bnpstream.likelihoods.multinomial import GUESSED_STRENGTH, mean_of
from bnpstream.mixture import KernelArguments, MixtureState, Model, log_joint
from bnpstream.mixture.saving import state_arrays, state_from
from bnpstream.priors import Prior
from bnpstream.tuning.strength import search

Floats = NDArray[np.float64]
KernelFor = Callable[[Model, Batch], KernelArguments | None]

FIRST_FACTOR, FIRST_STEPS = 2.0, 7
FIRST_ROWS, TRAINED = 250, 0.6
"""First rows that the search looks at, at most; the share that the others are predicted from."""
LATER_FACTOR, LATER_STEPS = 1.6, 3
PROBE = 64
"""Rows before every later time that decide on the strength."""
NEGLIGIBLE = -12.0
"""Clusters whose log score is so far below the best do not change which strength is better."""


class Trial(NamedTuple):
    """What candidates are compared by."""

    prior: Prior
    settings: adf.Settings
    kernel_for: KernelFor

    def absorb(self, likelihood: DirichletMultinomial, state: MixtureState, batch: Batch) -> float:
        """Absorb rows; return the sum of their log predictives one step ahead."""
        model, before = Model(self.prior, likelihood), state.log_evidence
        kernel = self.kernel_for(model, batch)
        for _ in adf.run(model, state, batch, self.settings, kernel):
            pass
        return state.log_evidence - before

    def predict(self, likelihood: DirichletMultinomial, state: MixtureState, batch: Batch) -> float:
        """Return the sum of the log predictives of rows; the state stays what it is."""
        model, frozen = Model(self.prior, likelihood), copy(state)  # with a cache of its own
        kernel = self.kernel_for(model, batch)
        joint = log_joint(model, frozen, batch, kernel, log_cut=NEGLIGIBLE)
        return float(logsumexp(joint, axis=1).sum())


class BaseLearner:
    """Learns alpha = c m.

    Parameters
    ----------
    n_first : int
        P: rows from which it is learnt at first.
    strength : float
        c.

    Attributes
    ----------
    n_next : int
        Rows at which it is learnt again.
    """

    def __init__(self, n_first: int, strength: float = GUESSED_STRENGTH) -> None:
        self.n_first, self.strength = n_first, strength
        self.n_next = 2 * n_first
        self._before: MixtureState | None = None
        self._probe: list[Batch] = []

    def first(self, trial: Trial, batch: Batch) -> DirichletMultinomial:
        """Return the likelihood that the first rows speak for."""
        looked_at = min(len(batch), FIRST_ROWS)
        half = max(1, int(TRAINED * looked_at))
        trained, rest = batch.part(0, half), batch.part(half, looked_at)
        mean = mean_of(_totals(trained))

        def score(strength: float) -> float:
            likelihood = DirichletMultinomial(strength * mean)
            state = adf.init(Model(trial.prior, likelihood), batch.n_statistics)
            trial.absorb(likelihood, state, trained)
            return trial.absorb(likelihood, state, rest)

        if len(rest) > 0:
            self.strength = search(score, GUESSED_STRENGTH, FIRST_FACTOR, FIRST_STEPS)
        return DirichletMultinomial(self.strength * mean_of(_totals(batch)))

    @property
    def n_probe(self) -> int:
        """Return how many rows decide on the strength."""
        return min(PROBE, self.n_first)

    def room(self, n_rows: int) -> int:
        """Return how many rows may be absorbed before there is something to do."""
        probing = self.n_next - self.n_probe
        return (probing if n_rows < probing else self.n_next) - n_rows

    def watch(self, trial: Trial, batch: Batch, state: MixtureState) -> None:
        """Look at rows before they are absorbed: the last ones before the next time decide."""
        n_rows = state.n_observations
        if n_rows < self.n_next - self.n_probe:
            return
        self._probe.append(batch)
        if n_rows + len(batch) < self.n_next:
            self._before = self._before or state.copy()
            return
        before = self._before or state
        rows = type(batch).joined(self._probe)
        mean = mean_of(_words(before))

        def score(strength: float) -> float:
            return trial.predict(DirichletMultinomial(strength * mean), before, rows)

        self.strength = search(score, self.strength, LATER_FACTOR, LATER_STEPS)
        self._before, self._probe = None, []

    def save_into(self, document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Add what is known so far, the rows that are being looked at included."""
        document["learner"] = {
            "n_first": self.n_first,
            "strength": self.strength,
            "n_next": self.n_next,
        }
        if self._before is not None:
            rows = type(self._probe[0]).joined(self._probe)
            arrays |= {f"learner.state.{k}": x for k, x in state_arrays(self._before).items()}
            arrays |= {f"learner.rows.{k}": x for k, x in rows.arrays().items()}

    @classmethod
    def load_from(cls, document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> "BaseLearner":
        """Return what `save_into` added."""
        saved = document["learner"]
        learner = cls(saved["n_first"], saved["strength"])
        learner.n_next = saved["n_next"]
        state, rows = (_named(arrays, f"learner.{part}.") for part in ("state", "rows"))
        if state:
            learner._before = state_from(state, paired=False)
            learner._probe = [DirichletMultinomial().batch_of(rows)]
        return learner

    def again(self, state: MixtureState) -> DirichletMultinomial | None:
        """Return the likelihood from now on, if it is time for another."""
        if state.n_observations < self.n_next:
            return None
        self.n_next *= 2
        return DirichletMultinomial(self.strength * mean_of(_words(state)))


def _named(arrays: dict[str, NDArray[Any]], start: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names start so, without it."""
    return {name[len(start) :]: x for name, x in arrays.items() if name.startswith(start)}


def _totals(batch: Batch) -> Floats:
    """Return the counts of words over all rows."""
    statistics: Any = batch.statistics
    return np.asarray(statistics.sum(axis=0), np.float64).ravel()[:-1]


def _words(state: MixtureState) -> Floats:
    """Return the counts of words over all clusters."""
    totals: Floats = sum((state.rows(slots).sum(axis=0) for slots in state.blocks()), np.zeros(1))
    return np.maximum(totals[:-1], 0.0)
