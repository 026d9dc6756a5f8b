"""Collapsed Gibbs sampling of hard assignments (Favaro & Teh 2013): the gold standard."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.passes import gibbs as compiled
from bnpstream.likelihoods import Batch
from bnpstream.mixture import KernelArguments, MixtureState, Model, log_joint_row, log_marginals
from bnpstream.mixture.model import require_plain
from bnpstream.priors import Prior


class Chain(NamedTuple):
    """Where a chain stands: hard assignments, their totals, and log U."""

    assignments: Integers
    """(n,): slot of every row."""
    state: MixtureState
    """Totals of the assignments; `state.auxiliary` is log U."""


class Draw(NamedTuple):
    """One sweep's outcome."""

    assignments: Integers
    auxiliary: float
    n_clusters: int
    log_likelihood: float
    """log p(x | assignments), log h(x) included."""


def init(model: Model, batch: Batch) -> Chain:
    """Return a chain with all rows in one cluster."""
    return chain_at(model, batch, np.zeros(len(batch), np.int64), np.nan)


def chain_at(model: Model, batch: Batch, assignments: Integers, auxiliary: float) -> Chain:
    """Return the chain with given assignments, slots 0..K-1 all occupied, and log U."""
    require_plain(model, "Gibbs sampling")
    state = MixtureState(batch.n_statistics, paired=model.likelihood.paired)
    counts = np.bincount(assignments).astype(np.float64)
    for _ in counts:
        state.open()
    rows = np.arange(len(batch))
    members = csr_array((np.ones(len(batch)), (rows, assignments)), (len(batch), counts.size))
    statistics = batch.weighted_sums(members)
    # Occupied for certain: the log vacancy is as low as one row with q = 1 makes it.
    state.rebuild(statistics, counts, np.full(counts.size, -np.inf))
    state.auxiliary = auxiliary
    return Chain(assignments.copy(), state)


def sweep(
    model: Model,
    chain: Chain,
    batch: Batch,
    uniforms: Floats,
    kernel: KernelArguments | None = None,
) -> None:
    """Reassign every row given all others and U, in order.

    Parameters
    ----------
    model : Model
        Prior and likelihood; the prior's rule is used given U = exp(chain.state.auxiliary).
    chain : Chain
        Changed in place.
    batch : Batch
        The rows.
    uniforms : ndarray of shape (n,)
        One number in [0, 1) a row: both engines follow the same path.
    kernel : KernelArguments or None
        For the compiled engine; None for the reference.
    """
    state = chain.state
    parameters = model.prior.kernel_parameters_given(state.auxiliary)
    if kernel is not None and parameters is not None:
        reached = np.zeros(1, np.int64)
        while reached[0] < len(batch):
            state.make_room()
            wanted = compiled.sweep(
                parameters,
                kernel.likelihood,
                state.arrays,
                state.cache(model.likelihood),
                kernel.rows,
                chain.assignments,
                uniforms,
                reached,
            )
            state.make_space(wanted)
        return
    conditional = Model(model.prior.given_auxiliary(), model.likelihood)
    for i in range(len(batch)):
        row = batch.row(i)
        old = int(chain.assignments[i])
        state.move(old, row, -1.0)
        if state.masses[old] < 0.5:
            moved = state.drop(old)
            chain.assignments[chain.assignments == moved] = old
        scores, _ = log_joint_row(conditional, state, row, fixed_auxiliary=True)
        weights = np.cumsum(np.exp(scores - scores.max()))
        chosen = int(np.searchsorted(weights, uniforms[i] * weights[-1], side="right"))
        if chosen == state.n_clusters:
            state.open()
        state.move(chosen, row, 1.0)
        chain.assignments[i] = chosen


def draw_auxiliary(prior: Prior, counts: Floats, start: float, rng: np.random.Generator) -> float:
    """Draw log U given the cluster sizes by slice sampling; `start` where there is no U.

    Stepping out and shrinking (Neal 2003) leaves the exact conditional invariant. The density is
    log-concave, so whatever lies around both ends of a slice holds all of it: steps may grow.
    """
    log_density = prior.auxiliary_log_density(counts)
    if log_density is None:
        return start
    v = start
    if not np.isfinite(v):
        vacancy = np.full(counts.size, -np.inf)
        v = prior.solve_auxiliary(counts, vacancy, float(counts.sum()), np.nan)
    level = log_density(v) + np.log(1.0 - rng.random())
    low = v - rng.random()
    high = low + 1.0
    step = 1.0
    while log_density(low) > level:
        low, step = low - step, 2.0 * step
    step = 1.0
    while log_density(high) > level:
        high, step = high + step, 2.0 * step
    while True:
        proposal = low + (high - low) * rng.random()
        if log_density(proposal) >= level:
            return float(proposal)
        if proposal < v:
            low = proposal
        else:
            high = proposal


def run(
    model: Model,
    batch: Batch,
    rng: np.random.Generator,
    kernel: KernelArguments | None = None,
    *,
    n_sweeps: int,
) -> Iterator[Draw]:
    """Run one chain from all rows in one cluster, yielding every sweep's outcome.

    Parameters
    ----------
    model, batch, kernel
        As in `sweep`.
    rng : numpy.random.Generator
        Source of randomness.
    n_sweeps : int
        Sweeps.
    """
    chain = init(model, batch)
    state = chain.state
    log_base = float(batch.log_base.sum())
    for _ in range(n_sweeps):
        state.auxiliary = draw_auxiliary(model.prior, state.masses, state.auxiliary, rng)
        sweep(model, chain, batch, rng.random(len(batch)), kernel)
        yield Draw(
            chain.assignments.copy(),
            state.auxiliary,
            state.n_clusters,
            log_base + float(log_marginals(model, state).sum()),
        )
