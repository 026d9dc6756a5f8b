"""Rows drawn from clusters, in place of rows that are no longer available.

The log odds of one cluster against two lack a term if they are computed from summed statistics
alone: two clusters that overlap share rows, and the choice between the two is worth its entropy.
Without it, clusters that overlap look like one. What rows shared is not kept, but a
posterior says what to expect: rows are drawn from each cluster, in proportion to its mass, and
`merge_all` uses their responsibilities like those of real rows.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from bnpstream.inference.merge import EVEN_ODDS, merge_all
from bnpstream.inference.topics import by_mass
from bnpstream.kernels.arrays import Floats, Integers, Sites
from bnpstream.likelihoods import Batch
from bnpstream.mixture import KernelArguments, MixtureState, Model, SiteBuffer, log_joint

DRAWS, DRAWN_CELLS = 2048, 1_000_000
"""Most rows drawn in all, and (row, statistic) cells of these; at most one row more per cluster.
The entropy of a choice is below .7 nats per row: 2048 rows give its mean to about one hundredth.
If rows have many columns, few are shared at all."""
LEAST_SHARE = 1e-4
"""Shares of a row below this, relative to the largest, count as zero."""
SCORED_CELLS = 4_000_000
"""Most (row, cluster) scores held at a time: 32 MB."""

KernelFor = Callable[[Model, Batch], KernelArguments | None]


def drawn_sites(
    model: Model, state: MixtureState, kernel_for: KernelFor
) -> tuple[SiteBuffer, Floats]:
    """Draw rows from the clusters, the same ones every time.

    Parameters
    ----------
    model, state
        The posterior.
    kernel_for : callable
        (model, batch) -> KernelArguments for the compiled engine, or None for the reference.

    Returns
    -------
    sites : SiteBuffer
        Responsibilities of the clusters for each row drawn.
    weights : ndarray of shape (rows,)
        Number of rows of the stream that each stands for.
    """
    K, masses = state.n_clusters, state.masses
    n_draws = min(DRAWS, DRAWN_CELLS // state.n_statistics)
    counts = np.maximum(np.ceil(n_draws * masses / masses.sum()), 1.0).astype(np.int64)
    slots = np.repeat(np.arange(K), counts)
    rows = model.likelihood.sample(state.rows(slots), np.random.default_rng(0))
    batch, step = model.likelihood.encode(rows), max(1, SCORED_CELLS // (K + 1))
    lengths, found = [np.zeros(1, np.int64)], []
    for start in range(0, slots.size, step):
        part = batch.part(start, start + step)
        scores = log_joint(model, state, part, kernel_for(model, part))[:, :-1]
        kept = scores >= scores.max(axis=1, keepdims=True) + np.log(LEAST_SHARE)
        scores = np.where(kept, scores, -np.inf)
        shares = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        lengths.append(kept.sum(axis=1))
        found.append((np.nonzero(kept)[1], shares[kept]))
    sites = SiteBuffer()
    of_slots, of_shares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    sites.arrays = Sites(np.cumsum(np.concatenate(lengths)), of_slots, of_shares)
    sites.reach(slots.size)
    return sites, (masses / counts)[slots]


def alike(model: Model, state: MixtureState, kernel_for: KernelFor) -> Integers:
    """Return groups of clusters that the model would rather have as one.

    Parameters
    ----------
    model, state, kernel_for
        As in `drawn_sites`; the posterior is not changed.

    Returns
    -------
    groups : ndarray of shape (K,)
        By slot; numbered from the heaviest.
    """
    sites, weights = drawn_sites(model, state, kernel_for)
    heirs = state.ids.copy()
    for event in merge_all(model, state.copy(), sites, EVEN_ODDS, weights):
        loser, winner = event.parents
        heirs[heirs == loser] = winner
    return by_mass(heirs, state.masses)
