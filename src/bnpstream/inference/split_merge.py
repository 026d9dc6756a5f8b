"""Split-merge moves of the Gibbs sampler (Jain & Neal 2004), with exact ratios given U.

Two rows, the anchors, are drawn. If they are in one cluster, a split is proposed, else a merge of
their clusters. Both use a launch state: the other rows of the cluster or clusters are assigned to
two clusters at random, followed by some restricted Gibbs scans, which leave the anchors where they
are. One more scan proposes a split; for a merge it would
have to restore the existing clusters, and its probability is what the ratio needs.
"""

import numpy as np

from bnpstream.inference.chains import Chain, chain_at
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.measures.rules import GIVEN, DiscountParameters
from bnpstream.kernels.passes import gibbs as compiled
from bnpstream.likelihoods import Batch
from bnpstream.mixture import (
    KernelArguments,
    MixtureState,
    Model,
    log_joint_row,
    log_marginals,
)
from bnpstream.mixture.model import kernel_arguments

SCANS = 3
"""Restricted scans of the launch state, as many as Jain & Neal's experiments need."""


def move(
    model: Model,
    chain: Chain,
    batch: Batch,
    rng: np.random.Generator,
    kernel: KernelArguments | None = None,
) -> tuple[Chain, bool]:
    """Propose one split or merge; return the chain, a new one if the proposal was accepted.

    Parameters
    ----------
    model, chain, batch
        As in ``gibbs.sweep``; U = exp(chain.state.auxiliary).
    rng : numpy.random.Generator
        Source of randomness: both engines draw the same numbers.
    kernel : KernelArguments or None
        For the compiled engine; None for the reference.
    """
    if len(batch) < 2:
        return chain, False
    first, second = rng.choice(len(batch), 2, replace=False)
    labels, state = chain.assignments, chain.state
    splits = labels[first] == labels[second]
    inside = np.flatnonzero((labels == labels[first]) | (labels == labels[second]))
    others = inside[(inside != first) & (inside != second)]
    members = batch.chosen(np.concatenate([[first, second], others]))
    halves = np.append([0, 1], rng.integers(0, 2, others.size))
    pair = chain_at(model, members, halves, state.auxiliary)
    for uniforms in rng.random((SCANS, others.size)):
        _scan(model, pair, members, uniforms, kernel)
    uniforms = rng.random(others.size)
    now = None if splits else np.append([0, 1], (labels[others] == labels[second]).astype(np.int64))
    log_proposed = scan(model, pair, members, uniforms, None if now is None else now[2:])
    apart = pair.state
    log_ratio = _log_ratio(model, members, apart, state.n_clusters + int(splits))
    gain = log_ratio - log_proposed if splits else log_proposed - log_ratio
    if not np.log(1.0 - rng.random()) < gain:
        return chain, False
    proposed = labels.copy()
    if splits:
        proposed[others[pair.assignments[2:] == 1]] = state.n_clusters
        proposed[second] = state.n_clusters
    else:
        proposed[inside] = labels[first]
        proposed[proposed == state.n_clusters - 1] = labels[second]  # slots stay packed
    return chain_at(model, batch, proposed, state.auxiliary), True


def _log_ratio(model: Model, members: Batch, apart: MixtureState, count: int) -> float:
    """Return the log probability of two clusters against one given U; `count` clusters if two."""
    together = chain_at(model, members, np.zeros(len(members), np.int64), np.nan).state
    likelihood = log_marginals(model, apart).sum() - log_marginals(model, together).sum()
    ones = np.ones((2, 1))
    log_u = apart.auxiliary if np.isfinite(apart.auxiliary) else 0.0  # no U: it has no effect
    of_one = model.prior.log_merge_odds(apart.masses[:, None], ones, ones[0], float(count), log_u)
    return float(likelihood - of_one[0])


def _scan(
    model: Model, pair: Chain, batch: Batch, uniforms: Floats, kernel: KernelArguments | None
) -> None:
    """Do a restricted scan, ignoring its probability."""
    others = batch.part(2, len(batch))
    prior = DiscountParameters(GIVEN, 0.0, float(model.prior.smallest_mass))
    known = None
    if kernel is not None and model.prior.kernel_parameters_given(pair.state.auxiliary) is not None:
        known = kernel_arguments((prior, kernel.likelihood), others, 1)
    if known is None:
        scan(model, pair, batch, uniforms, None)
        return
    assignments = pair.assignments[2:].copy()
    reached = np.zeros(1, np.int64)
    while reached[0] < len(others):
        wanted = compiled.sweep(
            prior,
            known.likelihood,
            pair.state.arrays,
            pair.state.cache(model.likelihood),
            known.rows,
            assignments,
            uniforms,
            reached,
        )
        pair.state.make_space(wanted)
    pair.assignments[2:] = assignments


def scan(
    model: Model, pair: Chain, batch: Batch, uniforms: Floats, wanted: Integers | None
) -> float:
    """Reassign all rows except the first two to one of two clusters, or as wanted.

    Return the log probability of the result.
    """
    conditional, state = Model(model.prior.given_auxiliary(), model.likelihood), pair.state
    total = 0.0
    for i in range(2, len(batch)):
        row = batch.row(i)
        state.move(int(pair.assignments[i]), row, -1.0)
        scores = log_joint_row(conditional, state, row, fixed_auxiliary=True)[0][:2]
        weights = np.cumsum(np.exp(scores - scores.max()))
        if wanted is None:
            chosen = int(uniforms[i - 2] * weights[1] >= weights[0])
        else:
            chosen = int(wanted[i - 2])
        total += float(scores[chosen] - scores.max() - np.log(weights[1]))
        state.move(chosen, row, 1.0)
        pair.assignments[i] = chosen
    return total
