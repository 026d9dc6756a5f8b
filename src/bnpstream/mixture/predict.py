"""Predictions of a posterior for rows that it has not absorbed."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import NO_MASS, Floats, Integers
from bnpstream.kernels.measures.rules import Rule
from bnpstream.kernels.passes.steps import log_joint_pairs, log_joint_rows
from bnpstream.likelihoods import Batch, Row
from bnpstream.mixture.model import KernelArguments, Model
from bnpstream.mixture.state import MixtureState
from bnpstream.mixture.threads import in_threads
from bnpstream.priors import Prior


def log_joint_row(
    model: Model, state: MixtureState, row: Row, *, fixed_auxiliary: bool = False
) -> tuple[Floats, float]:
    """Return log(prior weight x predictive) of one row, and its log auxiliary.

    With `fixed_auxiliary` the state's log U is used unchanged.

    Returns
    -------
    log_scores : ndarray of shape (K + 1,)
        Without log h(x); the last entry is the new cluster. Eq. (15), not normalised.
    auxiliary : float
        Root of the mode equation, the warm start for the next row.
    """
    log_weights, auxiliary = log_prior_weights(model.prior, state, fixed_auxiliary=fixed_auxiliary)
    return log_weights + model.likelihood.log_predictive(state.candidates, row), auxiliary


def log_prior_weights(
    prior: Prior, state: MixtureState, *, fixed_auxiliary: bool = False
) -> tuple[Floats, float]:
    """Return the log prior weights of K clusters and a new one, and the log auxiliary.

    If the posterior has no mass left, the next row opens a cluster.
    """
    if state.total_mass <= NO_MASS:
        return np.append(np.full(state.n_clusters, -np.inf), 0.0), state.auxiliary
    posterior = (state.masses, state.log_vacancy, state.total_mass)
    auxiliary = state.auxiliary
    if not fixed_auxiliary:
        auxiliary = prior.solve_auxiliary(*posterior, auxiliary)
    return prior.log_weights(*posterior, auxiliary), auxiliary


def log_marginals(model: Model, state: MixtureState, slots: Integers | None = None) -> Floats:
    """Return the log marginal likelihood of the rows of clusters, without log h(x).

    Parameters
    ----------
    model, state
        The posterior.
    slots : ndarray of shape (n,), optional
        Clusters; by default all.
    """
    chosen = np.arange(state.n_clusters) if slots is None else slots
    if state.is_wide:  # the same numbers, from nonzero columns
        return model.likelihood.log_marginal_sparse(state.sparse_rows(chosen))
    parts = [model.likelihood.log_marginal(state.rows(part)) for part in state.blocks(chosen)]
    return np.concatenate([np.empty(0), *parts])


def log_joint(
    model: Model,
    state: MixtureState,
    batch: Batch,
    kernel: KernelArguments | None,
    log_weights: Floats | None = None,
    *,
    log_cut: float = -np.inf,
) -> Floats:
    """Return log(prior weight x predictive) of each row in each cluster and a new one.

    Parameters
    ----------
    model, state
        The posterior; not changed.
    batch : Batch
        n encoded rows.
    kernel : KernelArguments or None
        From `Model.kernel_arguments` for the compiled engine; None for the reference.
    log_weights : ndarray of shape (K + 1,), optional
        Prior log weights to use; by default those of the posterior.
    log_cut : float
        Scores farther below the best of their row may be -inf. 0 asks for the best only.

    Returns
    -------
    log_scores : ndarray of shape (n, K + 1)
        Including log h(x): their logsumexp is the log predictive of the row.
    """
    if log_weights is None:
        log_weights = log_prior_weights(model.prior, state)[0]
    out = np.empty((len(batch), state.n_clusters + 1))
    if kernel is not None:
        _fill_log_joint(model, state, kernel, log_weights, log_cut, out)
        return out
    for i in range(len(batch)):
        row = batch.row(i)
        out[i] = model.likelihood.log_predictive(state.candidates, row) + row.log_base
    return out + log_weights


def log_joint_where(
    model: Model,
    state: MixtureState,
    batch: Batch,
    kernel: KernelArguments | None,
    wanted: NDArray[np.bool_],
) -> Floats:
    """Return `log_joint` where wanted, -inf elsewhere; caches do not change.

    Parameters
    ----------
    model, state, batch, kernel
        As in `log_joint`.
    wanted : ndarray of shape (n, K + 1)
        Which scores are wanted. Few are fast.
    """
    if kernel is not None and batch.scores_alone:
        out = np.full(wanted.shape, -np.inf)
        log_weights = log_prior_weights(model.prior, state)[0]
        log_joint_pairs(kernel.likelihood, state.arrays, kernel.rows, log_weights, wanted, out)
        return out
    return np.where(wanted, log_joint(model, copy(state), batch, kernel), -np.inf)


def _fill_log_joint(
    model: Model,
    state: MixtureState,
    kernel: KernelArguments,
    log_weights: Floats,
    log_cut: float,
    out: Floats,
) -> None:
    """Fill `out` by the compiled engine, with some rows per thread."""
    known = (state.masses > 0.0) & np.isfinite(log_weights[:-1])
    excess = log_weights[:-1][known] - np.log(state.masses[known])
    shift = float(excess.max()) if known.any() else 0.0
    weights = np.zeros(state.arrays.masses.size)
    weights[: state.n_clusters] = np.exp(log_weights[:-1] - shift)  # not above the masses
    rule = Rule(0.0, float(np.exp(log_weights[-1] - shift)), -shift, 0.0)
    cache = state.cache(model.likelihood)
    shared = (kernel.likelihood, state.arrays, cache, kernel.rows, weights, rule, log_cut)
    in_threads(
        lambda start, stop: log_joint_rows(*shared, start, stop, out), len(out), kernel.n_jobs
    )
