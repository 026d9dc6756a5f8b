"""Learns unset parameters of base measure and prior from the stream.

From the first P rows, before any of them is absorbed: the average cluster (words: frequencies m;
cells: centre and width), the scale of the base measure (words: c in alpha = c m; cells: the width
of clusters), and for words the initial concentration (`engine.rehearsal`).

Then at n = P, 2P, 4P, ... rows: the parameters of the prior from the clusters so far, with a lower
concentration if the last rows clearly favour it; and from 2P on the base measure again, its scale
by how well these rows were predicted. A stream may be stuck with too few clusters. So the rows
since the previous time are also absorbed from scratch, with larger concentrations: several hundred
rows, because clusters of short texts pay off only after so many. If one of these predicts the rows
better, and finds more clusters in them than the stream has in all, the stream continues with it. A
base measure is never judged by the marginal likelihood of the clusters that it made, which runs
away (``docs/decisions/2026-11-16-learning-from-the-stream.md``).

Existing clusters stay as they are: they are sums of statistics, which from then on are read with
the new base measure and weighed by the new prior. Rows are counted from the start of the stream,
never by calls, so any split into calls gives the same bits.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bnpstream.engine.ascent import LEAST, MOST, search
from bnpstream.engine.partition import learnt_prior, with_concentration
from bnpstream.engine.rehearsal import DOUBT, MOST_ROWS, STARTS, Rehearsal, Start, starting
from bnpstream.inference import adf
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.mixture import KernelArguments, MixtureState, Model, log_joint, log_joint_where
from bnpstream.mixture.predict import log_prior_weights
from bnpstream.mixture.saved import named, rows_from
from bnpstream.mixture.snapshot import state_arrays, state_from
from bnpstream.priors import Prior

KernelFor = Callable[[Model, Batch], KernelArguments | None]

LATER_FACTOR, LATER_STEPS = 1.6, 3
SPREAD = (1.0, 0.125, 8.0)
"""Initial scales to try, relative to the current one."""
LOWER = 0.25
"""Least concentration that rows may favour, relative to the one that fits the clusters."""
PROBE, JUDGES = 256, 64
"""Most rows before a later time that the posterior which decides on the scale does not know,
and the last of them, which decide."""
REHEARSED = 1024
"""Most rows before a later time that decide whether the stream is stuck."""
TOLL = 1.0
"""Nats per step that a larger scale must gain."""
FEW = STARTS[-1] / 2.0
"""Largest concentration for which a start with more clusters is tried."""
CLEAR = 2.0
"""Standard errors by which an alternative must predict rows better."""
BEST = 128
"""Clusters per row that are scored again for each scale; they stand in for the others."""
NEGLIGIBLE = -12.0
"""Clusters with log scores this far below the best do not affect which scale is better."""


class Trial(NamedTuple):
    """How rows are absorbed."""

    settings_for: Callable[[Prior], adf.Settings]
    kernel_for: KernelFor
    most_discount: float = 1.0
    """Largest discount that a prior may have."""

    def absorb(self, model: Model, state: MixtureState, batch: Batch) -> Floats:
        """Absorb rows; return their one-step-ahead log predictives.

        They are compared between models, so they are over all clusters that pass the cut: with a
        limit, a model of many similar clusters would seem to predict worse than it does.
        """
        settings = replace(self.settings_for(model.prior), max_responsibilities=None)
        records = adf.run(model, state, batch, settings, self.kernel_for(model, batch))
        return np.concatenate([np.empty(0), *(record.rows.log_evidence for record in records)])


class Learner:
    """Learns what is open in a prior, in a base measure, or in both.

    Parameters
    ----------
    n_first : int
        P.
    scale : float or None
        Scale of the base measure, relative to the first guess; None if it is not learnt.
    wide : bool
        Whether to search far from the current values. Streams of earlier versions do not.
    rehearsed : int
        Most rows that decide whether the stream is stuck; 0 if it cannot be, or was saved by an
        earlier version: then only the rows that decide on the scale are used.

    Attributes
    ----------
    n_next : int
        Number of rows at which to learn again.
    """

    def __init__(
        self,
        n_first: int,
        scale: float | None = None,
        *,
        wide: bool = True,
        rehearsed: int = REHEARSED,
    ) -> None:
        self.n_first, self.scale, self.wide, self.rehearsed = n_first, scale, wide, rehearsed
        self.n_next = n_first
        self._before: MixtureState | None = None
        self._probe: list[Batch] = []
        self._found: Likelihood | None = None
        self._restart: Start | None = None
        self._share = 1.0

    def first(self, trial: Trial, model: Model, batch: Batch) -> Model:
        """Return the model that fits the first rows best.

        Parameters
        ----------
        trial : Trial
            How rows are absorbed.
        model : Model
            Its base measure is a guess from all these rows.
        batch : Batch
            The first rows, at most P.
        """
        rows = batch.part(0, MOST_ROWS)
        if len(starting(model)) == 1:
            self.rehearsed = 0
        start = Rehearsal(trial.absorb, model, rows).best(DOUBT)
        self.scale = start.scale
        prior = self.prior_of(trial, start.prior, start.state)
        return Model(prior, model.likelihood.rescaled(start.scale))

    def skip(self, n_rows: int) -> None:
        """Start after this many rows: nothing is learnt before."""
        while self.n_next <= n_rows:
            self.n_next *= 2

    @property
    def n_predicted(self) -> int:
        """Return the number of rows unknown to the posterior that decides on the scale; 0 at P."""
        if self.scale is None or self.n_next == self.n_first:
            return 0
        return min(PROBE if self.wide else JUDGES, self.n_first)

    @property
    def n_probe(self) -> int:
        """Return the number of rows to look at next time; 0 at P."""
        n_predicted = self.n_predicted
        if n_predicted == 0 or not self.wide:
            return n_predicted
        return max(n_predicted, min(self.rehearsed, self.n_next // 2))

    def room(self, n_rows: int) -> int:
        """Return the number of rows that may be absorbed before there is something to do."""
        stops = (self.n_next - self.n_probe, self.n_next - self.n_predicted, self.n_next)
        return next(stop for stop in stops if n_rows < stop) - n_rows

    def watch(self, trial: Trial, model: Model, batch: Batch, state: MixtureState) -> None:
        """Look at rows before they are absorbed: the last ones before the next time decide."""
        n_rows = state.n_observations
        if n_rows < self.n_next - self.n_probe or self.n_probe == 0:
            return
        self._probe.append(batch)
        if n_rows + len(batch) < self.n_next:
            if n_rows >= self.n_next - self.n_predicted:
                self._before = self._before or state.copy()
            return
        rows = type(batch).joined(self._probe)
        predicted = rows.part(max(len(rows) - self.n_predicted, 0), len(rows))
        self._searched(trial, model, self._before or state, predicted, rows)
        self._before, self._probe = None, []

    def judge(self, trial: Trial, model: Model, batch: Batch, before: MixtureState) -> None:
        """Let rows decide now, from a posterior without them; `again` returns the result.

        For a stream that comes in parts: the first rows of the part that contains the next time.
        """
        self._before, self._probe = None, []
        if self.n_probe > 0:
            predicted = batch.part(0, self.n_predicted)
            self._searched(trial, model, before, predicted, batch.part(0, self.n_probe))

    def _searched(
        self, trial: Trial, model: Model, before: MixtureState, predicted: Batch, rows: Batch
    ) -> None:
        """Find what predicts rows best, some of them from a posterior without; see `again`."""
        current, now = self.scale or 1.0, model.likelihood
        if self.wide:
            self._restart = self._other_start(trial, model, rows, before.n_clusters)
        if self._restart is not None:
            self.scale = self._restart.scale
        else:
            judging = predicted.part(max(len(predicted) - JUDGES, 0), len(predicted))
            self._judge_scales(trial, model, before, judging)
        totals = before.totals(now.n_located) + predicted.totals(now.n_located)
        self._found = now.relocated(totals).rescaled((self.scale or 1.0) / current)

    def _other_start(
        self, trial: Trial, model: Model, rows: Batch, n_clusters: int
    ) -> Start | None:
        """Return a start that predicts rows clearly better, all from scratch, if there is one.

        From scratch, a larger concentration predicts better even if all clusters are known. So it
        must also find more of them than the stream has.
        """
        prior: Any = model.prior
        if len(starting(model)) == 1 or prior.concentration > FEW:
            return None
        current = self.scale or 1.0
        guess = Model(prior, model.likelihood.rescaled(1.0 / current))
        rehearsal = Rehearsal(trial.absorb, guess, rows)
        best: Any = rehearsal.best()
        if best.prior.concentration <= prior.concentration or best.state.n_clusters <= n_clusters:
            return None
        lead, error = best.lead(rehearsal.end(rehearsal.begin(prior, current)))
        return best if lead > CLEAR * error else None

    def _judge_scales(self, trial: Trial, model: Model, before: MixtureState, rows: Batch) -> None:
        """Find the scale, and how far the concentration should be below that of the clusters."""
        current = self.scale or 1.0
        moved = model.likelihood.relocated(before.totals(model.likelihood.n_located))
        joint = log_joint(model, before, rows, trial.kernel_for(model, rows), log_cut=NEGLIGIBLE)
        wanted = joint > joint.max(axis=1, keepdims=True) + NEGLIGIBLE
        wanted[:, -1] = True
        places, left_out = _best(joint, wanted, BEST if self.wide else before.n_clusters)
        priors = self._lowered(trial, model.prior, before) if self.wide else [model.prior]
        usual = log_prior_weights(model.prior, before)[0]
        changes = [_change(log_prior_weights(prior, before)[0], usual)[places] for prior in priors]
        steps: dict[float, int] = {}
        heights: dict[float, float] = {}

        def score(scale: float) -> float:
            if scale not in heights:
                other = Model(model.prior, moved.rescaled(scale / current))
                joint = log_joint_where(other, before, rows, trial.kernel_for(other, rows), wanted)
                kept = np.take_along_axis(joint, places, axis=1)
                kept[:, :-1] += left_out
                predicted = [logsumexp(kept + change, axis=1) for change in changes]
                steps[scale] = _clearly_best(predicted, rows.row_weights)
                heights[scale] = float(predicted[steps[scale]] @ rows.row_weights)
            return heights[scale]

        start = current
        if self.wide:
            tried = [current * factor for factor in SPREAD]
            start = max((x for x in tried if LEAST <= x <= MOST or x == current), key=score)
        self.scale = best = search(score, start, LATER_FACTOR, LATER_STEPS, TOLL)
        nearest = min(steps, key=lambda scale: abs(np.log(scale / best)))
        self._share = LOWER ** steps[nearest]

    def _lowered(self, trial: Trial, prior: Prior, state: MixtureState) -> list[Prior]:
        """Return the prior that fits the clusters, and one with a lower concentration."""
        learnt: Any = self.prior_of(trial, prior, state)
        if "concentration" not in learnt.learn:
            return [learnt]
        return [learnt, with_concentration(learnt, LOWER * learnt.concentration)]

    def again(self, trial: Trial, model: Model, state: MixtureState) -> Model | None:
        """Return the new model, if it is time for one."""
        if state.n_observations < self.n_next:
            return None
        self.n_next *= 2
        likelihood, self._found = self._found or model.likelihood, None
        restart, self._restart = self._restart, None
        share, self._share = self._share, 1.0
        if restart is not None:
            return Model(restart.prior, likelihood)
        prior: Any = self.prior_of(trial, model.prior, state)
        if share != 1.0:
            prior = with_concentration(prior, share * prior.concentration)
        return Model(prior, likelihood)

    def at_the_end(self, trial: Trial, prior: Prior, state: MixtureState) -> Prior:
        """Return the prior of a stream that ended, learnt now if there were fewer than P rows."""
        return prior if state.n_observations >= self.n_first else self.prior_of(trial, prior, state)

    def prior_of(self, trial: Trial, prior: Prior, state: MixtureState) -> Prior:
        """Return the prior that fits the clusters."""
        if not prior.learn:
            return prior
        return learnt_prior(prior, state, trial.most_discount)

    def save_into(self, document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Add what is known so far, including the rows being looked at."""
        document["learner"] = {
            "n_first": self.n_first,
            "scale": self.scale,
            "n_next": self.n_next,
            "wide": self.wide,
            "rehearsed": self.rehearsed,
        }
        if self._before is not None:
            arrays |= {f"learner.state.{k}": x for k, x in state_arrays(self._before).items()}
        if self._probe:
            rows = type(self._probe[0]).joined(self._probe)
            arrays |= {f"learner.rows.{k}": x for k, x in rows.arrays().items()}

    @classmethod
    def load_from(
        cls,
        document: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        likelihood: Likelihood,
        n_statistics: int,
    ) -> "Learner":
        """Return what `save_into` added, for a posterior with this many columns."""
        saved = document["learner"]
        learner = cls(
            saved["n_first"],
            saved["scale"],
            wide=saved.get("wide", False),
            rehearsed=saved.get("rehearsed", 0),
        )
        learner.n_next = saved["n_next"]
        if state := named(arrays, "learner.state."):
            learner._before = state_from(state, paired=likelihood.paired)
        if named(arrays, "learner.rows."):
            learner._probe = [rows_from(arrays, "learner.rows.", likelihood, n_statistics)]
        return learner


def _best(joint: Floats, wanted: NDArray[np.bool_], most: int) -> tuple[NDArray[np.intp], Floats]:
    """Return the best clusters of each row and the new one, and what the others add to them.

    Parameters
    ----------
    joint : ndarray of shape (n, K + 1)
        Log scores.
    wanted : ndarray of shape (n, K + 1)
        Entries that matter; of the clusters, only the best are kept.
    most : int
        Most clusters to keep.

    Returns
    -------
    places : ndarray of shape (n, most + 1)
        Columns.
    log_ratio : ndarray of shape (n, 1)
        Log of the sum over clusters that matter, minus that over those kept.
    """
    n, n_clusters = joint.shape[0], joint.shape[1] - 1
    if n_clusters <= most:
        return np.tile(np.arange(n_clusters + 1), (n, 1)), np.zeros((n, 1))
    scores = np.where(wanted, joint, -np.inf)[:, :-1]
    order = np.argpartition(-scores, most - 1, axis=1)
    np.put_along_axis(wanted, order[:, most:], False, axis=1)
    best = np.sort(order[:, :most], axis=1)
    kept = logsumexp(np.take_along_axis(scores, best, axis=1), axis=1, keepdims=True)
    ratio = np.zeros((n, 1))
    there = np.isfinite(kept)
    ratio[there] = logsumexp(scores, axis=1, keepdims=True)[there] - kept[there]
    return np.column_stack([best, np.full(n, n_clusters)]), ratio


def _clearly_best(predicted: Sequence[Floats], weights: Floats) -> int:
    """Return the index of the best log predictives of rows, or 0 if its lead may be chance."""
    best = max(range(len(predicted)), key=lambda j: float(predicted[j] @ weights))
    lead = (predicted[best] - predicted[0]) * weights
    return best if lead.sum() > CLEAR * lead.std() * np.sqrt(lead.size) else 0


def _change(log_weights: Floats, before: Floats) -> Floats:
    """Return the change of log weights; one that was -inf stays so."""
    known = np.isfinite(before)
    return np.where(known, log_weights, 0.0) - np.where(known, before, 0.0)
