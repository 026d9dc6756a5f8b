"""Short passes over some rows, from scratch, that tell where to start: concentration and scale.

The average cluster (words: frequencies m) is estimated, block by block, from the rows before the
block. The first block has none before it: it uses its own, and does not count. With m from the very
rows that it predicts, a base measure under which no cluster can differ from m looks better than it
is: short texts then end up in a handful of clusters.

The scale is the one that predicts the rows of the first blocks best, for each concentration that
is tried. Concentrations are compared on the second half of the rows. At the start of a stream the
largest one within three standard errors of the best wins: if it is too large, the clusters will
show it later, when it is learnt again; if it is too small, no clusters open that could favour
a larger one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from bnpstream.engine.ascent import search
from bnpstream.engine.partition import with_concentration
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch
from bnpstream.mixture import MixtureState, Model
from bnpstream.priors import Prior

STARTS = (1.0, 10.0, 100.0)
"""Concentrations to try for words, besides the given one, if it is learnt."""
OF_VECTORS = 30.0
"""Initial concentration for vectors: any between 10 and 100 gives the same end result."""
MOST_ROWS, SCALE_ROWS = 500, 250
"""Most rows to look at; and those of them that decide on the scale."""
HALVINGS = 4
"""Blocks end after 1/16, 1/8, 1/4, 1/2 and all of the rows."""
FACTOR, STEPS, TOLL = 3.0, 6, 1.0
"""Search for a scale: ratio, most scores, and nats per step that a larger scale must gain."""
DOUBT = 3.0
"""Standard errors by which the chosen start may be behind the best one."""
LEAST_ROWS = 40
"""With fewer rows to compare, the best one wins."""


@dataclass
class Start:
    """One concentration and scale, and its results.

    Attributes
    ----------
    prior : Prior
        With this concentration.
    scale : float
        Scale of the base measure, relative to the guess.
    state : MixtureState
        The posterior of the rows so far.
    log_evidence : list of ndarray
        One-step-ahead log predictive of each row, block by block.
    """

    prior: Prior
    scale: float
    state: MixtureState
    log_evidence: list[Floats] = field(default_factory=list)

    @property
    def later(self) -> Floats:
        """Return the log predictives of the second half of the rows."""
        rows = np.concatenate(self.log_evidence)
        return rows[rows.size // 2 :]

    def lead(self, other: "Start") -> tuple[float, float]:
        """Return by how much this start predicts better than another, and the standard error."""
        lead = self.later - other.later
        return float(lead.sum()), float(lead.std() * np.sqrt(lead.size))


class Rehearsal:
    """Tries starts on some rows.

    Parameters
    ----------
    absorb : callable
        (model, state, batch) -> log predictives of the rows, absorbed one after the other.
    guess : Model
        The initial base measure.
    rows : Batch
        Rows to look at.
    """

    def __init__(
        self,
        absorb: Callable[[Model, MixtureState, Batch], Floats],
        guess: Model,
        rows: Batch,
    ) -> None:
        self._absorb, self._guess = absorb, guess
        self._n_statistics, self._paired = rows.n_statistics, guess.likelihood.paired
        n, n_located = len(rows), guess.likelihood.n_located
        ends = sorted({0, *(n >> k for k in range(HALVINGS + 1))})
        self._parts = [rows.part(*bounds) for bounds in pairwise(ends)]
        before, self._located = np.zeros(n_located), []
        for number, part in enumerate(self._parts):
            known = part.totals(n_located) if number == 0 else before
            self._located.append(guess.likelihood.relocated(known))
            before = before + part.totals(n_located)
        self._n_early = max(1, sum(end <= SCALE_ROWS for end in ends[1:]))

    def begin(self, prior: Prior, scale: float) -> Start:
        """Return a start after the rows that decide on the scale."""
        state = MixtureState(self._n_statistics, paired=self._paired)
        start = Start(prior, scale, state)
        self._go_on(start, 0, self._n_early)
        return start

    def end(self, start: Start) -> Start:
        """Return a start after all rows."""
        self._go_on(start, len(start.log_evidence), len(self._parts))
        return start

    def _go_on(self, start: Start, first: int, last: int) -> None:
        for part, located in zip(self._parts[first:last], self._located[first:last], strict=True):
            model = Model(start.prior, located.rescaled(start.scale))
            start.log_evidence.append(self._absorb(model, start.state, part))

    def best(self, doubt: float = 0.0) -> Start:
        """Return the start that fits the rows best.

        Parameters
        ----------
        doubt : float
            Among the starts that are behind the best by at most this many standard errors, take the
            one with the largest concentration.
        """
        found: list[Start] = []
        for prior in starting(self._guess):
            found.append(self._best_scale(prior, found[-1].scale if found else 1.0))
        return chosen(found, doubt)

    def _best_scale(self, prior: Prior, near: float) -> Start:
        tried: dict[float, Start] = {}

        def score(scale: float) -> float:
            start = tried[scale] = self.begin(prior, scale)
            return float(sum(rows.sum() for rows in start.log_evidence[1:]))

        top = search(score, near, FACTOR, STEPS, TOLL)
        nearest = min(tried, key=lambda scale: abs(np.log(scale / top)))
        start = self.end(tried[nearest])
        start.scale = top
        return start


def starting(model: Model) -> list[Prior]:
    """Return the prior with each concentration to try, in order.

    Only words need several. For a short text, a new cluster is as likely as an existing one, so few
    open if the concentration is small. A row of cells far from all clusters opens one at any
    concentration, and a large concentration only opens clusters side by side. So does a vector; but
    if groups lie close together, those that are joined at the beginning stay joined.
    """
    prior: Any = model.prior
    if "concentration" not in prior.learn or model.likelihood.n_located == 0:
        return [prior]
    if model.likelihood.feature_kind != "words":
        return [with_concentration(prior, OF_VECTORS)]
    return [with_concentration(prior, a) for a in sorted({prior.concentration, *STARTS})]


def chosen(starts: Sequence[Start], doubt: float) -> Start:
    """Return the last of some starts that is behind the best by at most the doubt."""
    best = max(starts, key=lambda start: float(start.later.sum()))
    if best.later.size < LEAST_ROWS:
        return best
    for start in reversed(starts):
        lead, error = best.lead(start)
        if lead <= doubt * error:
            return start
    return best
