"""Collapsed Gibbs sampling of hard assignments (Favaro & Teh 2013): the gold standard."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bnpstream.inference.chains import Chain, chain_at, init
from bnpstream.inference.split_merge import move
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.passes import gibbs as compiled
from bnpstream.likelihoods import Batch
from bnpstream.mixture import KernelArguments, Model, log_joint_row, log_marginals
from bnpstream.priors import Prior

__all__ = ["Chain", "Draw", "chain_at", "draw_auxiliary", "init", "run", "sweep"]


class Draw(NamedTuple):
    """Result of a sweep."""

    assignments: Integers
    auxiliary: float
    n_clusters: int
    log_likelihood: float
    """log p(x | assignments), including log h(x)."""


def sweep(
    model: Model,
    chain: Chain,
    batch: Batch,
    uniforms: Floats,
    kernel: KernelArguments | None = None,
) -> None:
    """Reassign each row given all others and U, in order.

    Parameters
    ----------
    model : Model
        Prior and likelihood; the prior's rule is used given U = exp(chain.state.auxiliary).
    chain : Chain
        Changed in place.
    batch : Batch
        The rows.
    uniforms : ndarray of shape (n,)
        One number in [0, 1) per row, so that both engines follow the same path.
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
    """Draw log U given the cluster sizes by slice sampling; `start` if there is no U.

    Stepping out and shrinking (Neal 2003) leaves the exact conditional invariant. The density is
    log-concave, so an interval around both ends of a slice contains all of it: steps may grow.
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
    n_moves: int = 0,
) -> Iterator[Draw]:
    """Run one chain from all rows in one cluster, yielding the result of each sweep.

    Parameters
    ----------
    model, batch, kernel
        As in `sweep`.
    rng : numpy.random.Generator
        Source of randomness.
    n_sweeps : int
        Sweeps.
    n_moves : int
        Splits or merges proposed before each sweep, given the same U.
    """
    chain = init(model, batch)
    log_base = float(batch.log_base.sum())
    for _ in range(n_sweeps):
        state = chain.state
        state.auxiliary = draw_auxiliary(model.prior, state.masses, state.auxiliary, rng)
        for _ in range(n_moves):
            chain, _ = move(model, chain, batch, rng, kernel)
        sweep(model, chain, batch, rng.random(len(batch)), kernel)
        state = chain.state
        yield Draw(
            chain.assignments.copy(),
            state.auxiliary,
            state.n_clusters,
            log_base + float(log_marginals(model, state).sum()),
        )
