"""Splits clusters that the model would rather have as two, using rows that are still available.

The paper's discussion suggests moves proposed by memoized local distributions: here, by the sites
of the rows of a revisit. A proposal for a cluster divides the share q of each such row into r q and
(1 - r) q:

- The first anchor is the row that its cluster, without it, explains least well compared with the
  prior; the second is the row that the first explains least well. Anchors have q > 1/2.
- Two clusters are grown from the anchors by restricted sweeps: rows are visited as usual, but no
  cluster opens. For a discount sigma that is logit r = log (S_a - sigma)+ / (S_b - sigma)+ +
  log p(x | a) / p(x | b), all without the row.
- What the cluster has from rows no longer available stays in one piece: during the sweeps with
  the second anchor, in the end with the heavier child, which keeps the id.

The gain is the negative log odds of merging the two (``inference.merge``). A child that is too
light to have a prior weight (S <= sigma) is not allowed: such a proposal is rejected.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import entr

from bnpstream.inference.odds import SURELY_OCCUPIED
from bnpstream.inference.response import Settings
from bnpstream.inference.visits import KernelFor, visit
from bnpstream.kernels.arrays import GONE, TOTAL_MASS, Floats, Integers, Sites
from bnpstream.kernels.words.levels import LANES
from bnpstream.likelihoods import Batch, Row
from bnpstream.mixture import (
    Event,
    MixtureState,
    Model,
    SiteBuffer,
    log_joint,
    log_marginals,
    log_prior_weights,
)
from bnpstream.mixture.contributions import Contributions
from bnpstream.mixture.sites import totals
from bnpstream.mixture.state import log_vacancy_of

SWEEPS = 3
"""Restricted sweeps, the first of which grows the clusters."""
ANCHOR_SHARE = 0.5
"""A cluster must have more than this share of a row used as an anchor; no other has as much."""
RESTRICTED = Settings(new_cluster_threshold=1.0, min_responsibility=0.0)
"""No responsibility exceeds one, so no cluster opens."""


class Members(NamedTuple):
    """Rows with a share in one cluster."""

    entries: Integers
    """(m,): positions of their shares in the sites."""
    shares: Floats
    """(m,): q."""
    rows: Batch
    """The m rows, with their current weights."""
    lines: list[Floats] | None
    """What each has added to the cluster, if that is not t(x) for all clusters."""

    def chosen(self, places: Integers) -> "Members":
        """Return some of them, in this order."""
        lines = None if self.lines is None else [self.lines[i] for i in places]
        return Members(self.entries[places], self.shares[places], self.rows.chosen(places), lines)

    def sites(self, slots: Integers, shares: Floats) -> SiteBuffer:
        """Return a site for each row: a share of one slot, or none if that is GONE."""
        there = slots != GONE
        found = SiteBuffer()
        ends = np.append(0, np.cumsum(there))
        found.arrays, found.n_visited = Sites(ends, slots[there], shares[there]), slots.size
        if self.lines is not None:
            found.contributions = Contributions()
            for line, present in zip(self.lines, there, strict=True):
                found.contributions.append(line[None, :] if present else line[None, :0])
        return found

    def sums(self, shares: Floats) -> tuple[Row, float, float]:
        """Return the statistics, mass and log vacancy that shares of the rows add up to."""
        places = np.where(shares > 0.0, 0, GONE)
        found, mass, log_vacancy = totals(self.sites(places, shares), self.rows, 1)
        if isinstance(found, np.ndarray):
            row = Row(slice(None), found[0], 0.0)
        else:
            by_row = csr_array(found)  # products may be stored by columns
            row = Row(by_row.indices, by_row.data, 0.0)
        return row, float(mass[0]), float(log_vacancy[0])


def split_all(
    model: Model,
    state: MixtureState,
    batch: Batch,
    sites: SiteBuffer,
    threshold: float,
    settings: Settings,
    kernel_for: KernelFor,
) -> list[Event]:
    """Split each cluster at most once, if that gains more than the threshold.

    Parameters
    ----------
    model, state
        The posterior; changed in place.
    batch, sites : Batch, SiteBuffer
        Available rows, with their current weights, and their sites, which follow.
    threshold : float
        Log odds of two clusters against one that a split must exceed.
    settings : Settings
        The cut, which also applies to parts of shares, and the budget.
    kernel_for : callable
        Batch -> KernelArguments for the compiled engine, or None for the reference.

    Returns
    -------
    events : list of Event
        One per split: the heavier child keeps the id.
    """
    auxiliary = log_prior_weights(model.prior, state)[1]  # one for the whole round
    by_cluster = _entries_by_cluster(state, sites)
    rows = np.repeat(np.arange(sites.n_visited), np.diff(sites.arrays.indptr[: len(batch) + 1]))
    events, moves = [], []
    for slot, entries in enumerate(by_cluster):
        if state.n_clusters >= settings.budget.most_clusters(state):
            break
        members = _members(batch, sites, rows, entries)
        parts = propose(model, state, slot, members, kernel_for)
        if parts is None:
            continue
        parts = np.where(parts < settings.min_responsibility, 0.0, parts)
        parts = np.where(1.0 - parts < settings.min_responsibility, 1.0, parts)
        weights = members.rows.row_weights * members.shares
        if 2.0 * (weights @ parts) > state.masses[slot]:
            parts = 1.0 - parts
        split = weigh(model, state, slot, members, parts, auxiliary)
        if split is None or not split.gain > threshold:
            continue
        mass, id = float(state.masses[slot]), int(state.ids[slot])
        new = state.split(slot, split.moved, split.masses, split.log_vacancy)
        moves.append((entries, parts, np.full(entries.size, new)))
        others = (int(state.ids[new]),)
        events.append(Event("split", id, id, state.n_observations, mass, others))
    if moves:
        sites.divide(*(np.concatenate(part) for part in zip(*moves, strict=True)))
    return events


def _entries_by_cluster(state: MixtureState, sites: SiteBuffer) -> list[Integers]:
    """Return the positions in the sites of the shares of each cluster, in order of rows."""
    slots = sites.arrays.slots[: sites.n_entries]
    order = np.argsort(slots, kind="stable")
    ends = np.searchsorted(slots[order], np.arange(state.n_clusters + 1))
    return [order[ends[k] : ends[k + 1]] for k in range(state.n_clusters)]


def _members(batch: Batch, sites: SiteBuffer, rows: Integers, entries: Integers) -> Members:
    lines = None
    if sites.contributions is not None:
        lines = [sites.lines(rows[e])[e - sites.arrays.indptr[rows[e]]] for e in entries]
    return Members(entries, sites.arrays.shares[entries], batch.chosen(rows[entries]), lines)


def propose(
    model: Model, state: MixtureState, slot: int, members: Members, kernel_for: KernelFor
) -> Floats | None:
    """Return r, the part of each share that goes to the cluster of the first anchor, or None.

    None if there are no two anchors, or if one of the two clusters does not survive.
    """
    candidates = np.flatnonzero(members.shares > ANCHOR_SHARE)
    if candidates.size < 2:
        return None
    m, q = members.shares.size, members.shares
    weighted = members._replace(rows=members.rows.weighted(members.rows.row_weights * q))
    weights = weighted.rows.row_weights
    occupied = SURELY_OCCUPIED + float(weights.sum() * log_vacancy_of(np.ones(1))[0])
    alone = _alone(state, slot)
    alone.log_vacancy[:] = occupied
    first = _worst_explained(model, alone, weighted, candidates, kernel_for)
    start = MixtureState(state.n_statistics, paired=state.paired, capacity=LANES)
    start.open()
    start.move(0, weighted.sums((np.arange(m) == first).astype(float))[0], 1.0)
    _set(start, weights[[first]], occupied)
    rest = candidates[candidates != first]
    possible = weighted.rows.chosen(rest)
    scores = log_joint(model, start, possible, kernel_for(possible))
    second = int(rest[np.argmin(scores[:, 0] - scores[:, 1])])

    # Rows that are in neither cluster yet come first, so that the anchors find company.
    is_anchor = np.isin(np.arange(m), (first, second))
    order = np.concatenate([np.flatnonzero(~is_anchor), [second, first]])
    pair, all_but = _alone(state, slot), (np.arange(m) != second).astype(float)
    pair.split(0, weighted.sums(all_but)[0], pair.masses, pair.log_vacancy)
    if m > 2:
        pair.take_out(np.array([1]), np.ones(1), weighted.sums((~is_anchor).astype(np.float64))[0])
    left = max(state.masses[slot] - weights.sum(), 0.0) + weights[second]
    _set(pair, np.array([left, weights[first]]), occupied)
    ordered = weighted.chosen(order)
    slots = np.append(np.full(m - 2, GONE), [0, 1])
    sites = ordered.sites(slots, np.ones(m))
    kernel = kernel_for(ordered.rows)
    for _ in range(SWEEPS):
        new = SiteBuffer(m)
        for _ in visit(model, pair, ordered.rows, sites, new, RESTRICTED, kernel):
            pass
        sites = new
        if pair.n_clusters < 2:
            return None
    parts = np.empty(m)
    parts[order] = sites.matrix(2).toarray()[:, 1]
    return parts


def _worst_explained(
    model: Model, alone: MixtureState, members: Members, candidates: Integers, kernel_for: KernelFor
) -> int:
    """Return the row that gains least from its cluster without it, against a new cluster."""
    m = members.shares.size
    sites, new = members.sites(np.zeros(m, np.int64), np.ones(m)), SiteBuffer(m)
    records = visit(model, alone, members.rows, sites, new, RESTRICTED, kernel_for(members.rows))
    traces = [record.rows for record in records]
    novelty = np.concatenate([trace.novelty for trace in traces])[candidates]
    log_evidence = np.concatenate([trace.log_evidence for trace in traces])[candidates]
    return int(candidates[np.lexsort((log_evidence, -novelty))[0]])


def _alone(state: MixtureState, slot: int) -> MixtureState:
    """Return a posterior of a single cluster of another."""
    alone = MixtureState(state.n_statistics, paired=state.paired, capacity=LANES)
    alone.open()
    chosen = np.array([slot])
    rows: Any = state.sparse_rows(chosen) if state.is_hashed else state.rows(chosen)
    alone.rebuild(rows, state.masses[chosen], state.log_vacancy[chosen])
    return alone


def _set(state: MixtureState, masses: Floats, log_vacancy: float) -> None:
    state.masses[:], state.log_vacancy[:] = masses, log_vacancy
    state.arrays.totals[TOTAL_MASS] = float(masses.sum())


class Split(NamedTuple):
    """A proposed split: what moves, and the gain."""

    gain: float
    """Log odds of two clusters against one."""
    moved: Row
    masses: Floats
    """(2,): of what stays and of what moves."""
    log_vacancy: Floats
    """(2,): likewise."""


def weigh(
    model: Model,
    state: MixtureState,
    slot: int,
    members: Members,
    parts: Floats,
    auxiliary: float,
) -> Split | None:
    """Return the gain of moving parts of shares to a new cluster; None if that is too light.

    log m(a) + log m(b) - log m(a + b), minus the prior's log odds of a merge, plus the entropy of
    the rows' choice between the two, sum_i w_i q_i h(r_i).
    """
    prior, q, weights = model.prior, members.shares, members.rows.row_weights
    moved, mass, vacant = members.sums(q * parts)
    masses = np.array([state.masses[slot] - mass, mass])
    if not masses.min() > prior.smallest_mass:
        return None
    freed = weights @ (log_vacancy_of(q * (1.0 - parts)) - log_vacancy_of(q))
    whole = state.log_vacancy[slot]
    log_vacancy = np.array([min(whole + freed, 0.0), vacant])
    trial = _alone(state, slot)
    trial.split(0, moved, masses, log_vacancy)
    apart = float(log_marginals(model, trial).sum())
    together = float(log_marginals(model, state, np.array([slot]))[0])
    occupancy, joint = prior.occupancy(log_vacancy), prior.occupancy(np.array([whole]))
    count = float(prior.occupancy(state.log_vacancy).sum() - joint[0] + occupancy.sum())
    of_one = prior.log_merge_odds(masses[:, None], occupancy[:, None], joint, count, auxiliary)
    choice = weights @ (q * (entr(parts) + entr(1.0 - parts)))
    return Split(apart - together - float(of_one[0]) + float(choice), moved, masses, log_vacancy)
