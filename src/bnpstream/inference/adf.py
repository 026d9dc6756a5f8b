"""ADF-NRM, Algorithm 1: one pass over a stream (compiled twin: ``bnpstream.kernels.adf``)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bnpstream.kernels import adf as compiled
from bnpstream.kernels.arrays import Options, Trace
from bnpstream.likelihoods import Batch, Row
from bnpstream.mixture import KernelArguments, MixtureState, Model, log_joint_row

Floats = NDArray[np.float64]

RECORD_ROWS = 512
"""Rows between two records: often enough for a progress bar, seldom enough to cost nothing."""


@dataclass(frozen=True)
class Settings:
    """How responsibilities are used.

    Parameters
    ----------
    new_cluster_threshold : float
        epsilon: a new cluster opens if its responsibility is larger.
    min_responsibility : float
        The cut: a candidate is kept iff its log score is at least the best one's plus the
        logarithm of this; 0 keeps all.
    """

    new_cluster_threshold: float
    min_responsibility: float

    @property
    def log_min_responsibility(self) -> float:
        """Return the cut on the scale of log scores."""
        return float(np.log(self.min_responsibility)) if self.min_responsibility > 0 else -np.inf


class Response(NamedTuple):
    """What a row would do to the posterior."""

    responsibilities: Floats
    """(K,), or (K + 1,) if a cluster opens."""
    opens: bool
    log_evidence: float
    """One-step-ahead log predictive, log h(x) included."""
    auxiliary: float


class Record(NamedTuple):
    """What happened to some rows in order."""

    n_observations: int
    """Rows seen after the last of them."""
    rows: Trace
    """log evidence, clusters and likeliest cluster of every row as it arrived."""


def init(model: Model, n_statistics: int) -> MixtureState:
    """Return the posterior of no rows."""
    return MixtureState(n_statistics, model.likelihood.memory_order)


def respond(model: Model, state: MixtureState, row: Row, settings: Settings) -> Response:
    """Return the responsibilities of one row, Eq. (17), and whether it opens a cluster."""
    log_scores, auxiliary = log_joint_row(model, state, row)
    kept = log_scores >= log_scores.max() + settings.log_min_responsibility
    log_evidence = float(logsumexp(log_scores[kept]))
    responsibilities = np.where(kept, np.exp(log_scores - log_evidence), 0.0)
    opens = bool(responsibilities[-1] > settings.new_cluster_threshold)
    if not opens:
        responsibilities = responsibilities[:-1] / responsibilities[:-1].sum()
    return Response(responsibilities, opens, log_evidence + row.log_base, auxiliary)


def step(model: Model, state: MixtureState, row: Row, settings: Settings) -> Response:
    """Absorb one row into the posterior; return what it did."""
    response = respond(model, state, row, settings)
    if response.opens:
        state.open()
    state.add(response.responsibilities, row)
    state.auxiliary = response.auxiliary
    state.log_evidence += response.log_evidence
    return response


def run(
    model: Model,
    state: MixtureState,
    batch: Batch,
    settings: Settings,
    kernel: KernelArguments | None = None,
) -> Iterator[Record]:
    """Absorb every row of a batch in order, yielding a record now and then.

    Parameters
    ----------
    model : Model
        Prior and likelihood.
    state : MixtureState
        The posterior; changed in place.
    batch : Batch
        Encoded rows.
    settings : Settings
        Opening threshold and cut.
    kernel : KernelArguments or None
        From `Model.kernel_arguments` for the compiled engine; None for the reference. Both
        make the same decisions from the same state.
    """
    trace = Trace.empty(len(batch))
    for start in range(0, len(batch), RECORD_ROWS):
        stop = min(start + RECORD_ROWS, len(batch))
        if kernel is None:
            for i in range(start, stop):
                response = step(model, state, batch.row(i), settings)
                trace.log_evidence[i] = response.log_evidence
                trace.n_clusters[i] = state.n_clusters
                trace.ids[i] = state.ids[np.argmax(response.responsibilities)]
        else:
            _run_compiled(kernel, state, start, stop, settings, trace)
        yield Record(state.n_observations, trace.part(start, stop))


def _run_compiled(
    kernel: KernelArguments,
    state: MixtureState,
    start: int,
    stop: int,
    settings: Settings,
    trace: Trace,
) -> None:
    """Absorb rows start..stop-1, making room whenever the compiled loop runs out of slots."""
    options = Options(settings.new_cluster_threshold, settings.log_min_responsibility)
    while start < stop:
        state.make_room()
        start = compiled.run(
            kernel.prior, kernel.likelihood, state.arrays, kernel.rows, start, stop, options, trace
        )
