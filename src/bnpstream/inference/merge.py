"""Merges clusters that the model itself would rather have as one."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods import plus
from bnpstream.mixture import (
    Event,
    MixtureState,
    Model,
    SiteBuffer,
    log_marginals,
    log_prior_weights,
)
from bnpstream.mixture.state import log_vacancy_of

EVEN_ODDS = 0.0
"""Log odds above which the model would rather have one cluster than two."""
SCORED_CELLS = 4_000_000
"""Most (pair, statistic) cells held at a time: 32 MB."""
PAIRS_HELD = 2**16
"""Most pairs of a row's clusters held at a time, so that their values stay in the processor's
cache."""
NEARLY = 0.01
"""Margin of error, in nats, of approximate odds, which are accurate to a thousandth."""


class Pairs(NamedTuple):
    """Pairs of clusters that share rows."""

    slots: Integers
    """(2, P), the smaller slot first."""
    entropy: Floats
    """(P,): entropy of the rows' choice between the two, lost in a merge."""
    log_vacancy: Floats
    """(P,): log vacancy of the joint cluster."""


def merge_all(
    model: Model,
    state: MixtureState,
    sites: SiteBuffer,
    threshold: float,
    fading: Floats | None = None,
    apart: Iterable[Iterable[int]] = (),
) -> list[Event]:
    """Merge, best pair first, until no pair's log odds exceed the threshold.

    Parameters
    ----------
    model, state
        The posterior; changed in place.
    sites : SiteBuffer
        Responsibilities of recent rows: a pair is a candidate if it shares one of them. They
        follow the merges.
    threshold : float
        Log odds that a merge must exceed.
    fading : ndarray of shape (rows,), optional
        Weight of each row after forgetting.
    apart : iterable of pairs of int, optional
        Ids of clusters that stay apart, because a split has just made them.

    Returns
    -------
    events : list of Event
        One per merge: the heavier cluster survives.
    """
    events: list[Event] = []
    kept_apart = [set(pair) for pair in apart]
    while True:
        pairs = shared_pairs(state, sites, fading)
        odds = log_odds(model, state, pairs, threshold)
        ids, masses = state.ids[pairs.slots], state.masses[pairs.slots]
        taken: set[int] = set()
        for p in np.argsort(-odds, kind="stable"):
            if not odds[p] > threshold:
                break
            pair = set(ids[:, p].tolist())
            if pair in kept_apart:
                continue
            if taken.isdisjoint(pair):  # odds of changed clusters are computed again
                taken.update(pair)
                winner, loser = ids[:, p] if masses[0, p] >= masses[1, p] else ids[::-1, p]
                events.append(join_into(state, [sites], winner, loser, pairs.log_vacancy[p]))
        if not taken:
            return events


def shared_pairs(state: MixtureState, sites: SiteBuffer, fading: Floats | None = None) -> Pairs:
    """Return all pairs of clusters with a row in common."""
    K, matrix = state.n_clusters, sites.matrix(state.n_clusters)
    shares, vacancy, sizes = matrix.data, log_vacancy_of(matrix.data), np.diff(matrix.indptr)
    left = None if fading is None else np.repeat(fading, sizes)
    few = (sizes * (sizes - 1) // 2).sum() < K * K
    if few:
        parts = [_keys(matrix, *pair) for pair in _pairs_of_entries(matrix)]
        keys = np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
    else:
        keys = np.arange(K * K)
    there = np.zeros(keys.size, bool)
    entropy, correction = np.zeros(keys.size), np.zeros(keys.size)
    for one, other in _pairs_of_entries(matrix):
        place = _keys(matrix, one, other)
        if few:
            place = np.searchsorted(keys, place)
        q, r = shares[one], shares[other]
        both = q + r
        choice = -q * np.log(q / both) - r * np.log(r / both)
        overlap = log_vacancy_of(both) - vacancy[one] - vacancy[other]
        if left is not None:
            choice, overlap = left[one] * choice, left[one] * overlap
        there[place] = True
        np.add.at(entropy, place, choice)
        np.add.at(correction, place, overlap)
    pairs = np.stack(np.divmod(keys[there], K))
    log_vacancy = state.log_vacancy[pairs].sum(axis=0) + correction[there]
    return Pairs(pairs, entropy[there], log_vacancy)


def _pairs_of_entries(matrix: csr_array) -> Iterator[tuple[Integers, Integers]]:
    """Yield the positions of both entries of pairs within rows, about `PAIRS_HELD` at a time."""
    sizes, held, n_held = np.diff(matrix.indptr), [], 0
    for width in range(2, int(sizes.max(initial=0)) + 1):
        starts = matrix.indptr[:-1][sizes == width].astype(np.int64)[:, None]
        first, second = np.triu_indices(width, 1)
        step = max(1, PAIRS_HELD // first.size)
        for start in range(0, len(starts), step):
            part = starts[start : start + step]
            held.append(((part + first).ravel(), (part + second).ravel()))
            n_held += held[-1][0].size
            if n_held >= PAIRS_HELD:
                yield _together(held)
                held, n_held = [], 0
    if held:
        yield _together(held)


def _together(parts: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    one, other = zip(*parts, strict=True)
    return np.concatenate(one), np.concatenate(other)


def _keys(matrix: csr_array, one: Integers, other: Integers) -> Integers:
    """Return a number for the slots of each pair, the smaller one first."""
    i, j = matrix.indices[one].astype(np.int64), matrix.indices[other].astype(np.int64)
    return np.minimum(i, j) * matrix.shape[1] + np.maximum(i, j)


def log_odds(model: Model, state: MixtureState, pairs: Pairs, above: float = -np.inf) -> Floats:
    """Return the model's log odds of one cluster against two, for each pair.

    log m(i+j) - log m(i) - log m(j), the prior's term, and the entropy of the shared rows'
    assignments, which a merge gives up. Odds that certainly do not exceed `above` may be
    -inf: most pairs are ruled out by `Likelihood.nearly_odds`.
    """
    if pairs.slots.size == 0:
        return np.empty(0)
    auxiliary = log_prior_weights(model.prior, state)[1]
    occupancy = model.prior.occupancy(state.log_vacancy)
    joint = model.prior.occupancy(pairs.log_vacancy)
    prior = model.prior.log_merge_odds(
        state.masses[pairs.slots],
        occupancy[pairs.slots],
        joint,
        float(occupancy.sum()),
        auxiliary,
    )
    chosen, nearly = np.arange(prior.size), None
    if above > -np.inf:
        rows = state.sparse_rows(np.arange(state.n_clusters))
        nearly = model.likelihood.nearly_odds(rows, pairs.slots)
    if nearly is not None:
        chosen = np.flatnonzero(nearly + prior - pairs.entropy > above - NEARLY)
    slots, odds = pairs.slots[:, chosen], np.full(prior.size, -np.inf)
    used, places = np.unique(slots, return_inverse=True)
    alone = log_marginals(model, state, used)[places.reshape(slots.shape)]
    apart: Floats = alone.sum(axis=0) + pairs.entropy[chosen]
    odds[chosen] = _log_marginals_together(model, state, slots) + prior[chosen] - apart
    return odds


def _log_marginals_together(model: Model, state: MixtureState, slots: Integers) -> Floats:
    """Return log m(i+j) of each pair."""
    likelihood, together = model.likelihood, np.empty(slots.shape[1])
    sparse: Any = state.sparse_rows(np.arange(state.n_clusters)) if state.is_wide else None
    longest = state.n_statistics if sparse is None else int(np.diff(sparse.indptr).max())
    block = max(1, SCORED_CELLS // longest)
    for start in range(0, together.size, block):
        part, (i, j) = slice(start, start + block), slots[:, start : start + block]
        if sparse is not None:
            together[part] = likelihood.log_marginal_sparse(sparse[i] + sparse[j])
        else:
            summed = plus(state.rows(i), np.ones(i.size), state.rows(j), paired=state.paired)
            together[part] = likelihood.log_marginal(summed)
    return together


def join_into(
    state: MixtureState,
    sites: Iterable[SiteBuffer],
    winner_id: int,
    loser_id: int,
    log_vacancy: float | None = None,
) -> Event:
    """Merge one cluster into another, both by id, and their shares of the rows.

    `log_vacancy` is that of the joint cluster; by default as for clusters without common rows.
    """
    winner, loser = (int(np.flatnonzero(state.ids == id)[0]) for id in (winner_id, loser_id))
    mass = float(state.masses[loser])
    if log_vacancy is None:
        log_vacancy = float(state.log_vacancy[[winner, loser]].sum())
    sites = list(sites)
    for buffer in sites:
        buffer.merge(loser, winner)
    moved = state.merge(loser, winner, log_vacancy)
    for buffer in sites:
        buffer.relabel(loser, moved)
    return Event("merge", int(loser_id), int(winner_id), state.n_observations, mass)
