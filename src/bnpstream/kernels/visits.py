"""Visiting rows in order, compiled (twin: ``bnpstream.inference.visits``).

One loop serves every algorithm: a first visit is a step of ADF-NRM (Algorithm 1), a later one a
step of EP-NRM (Algorithm 2), which takes the row's last contribution out first.
"""

import math
from typing import Any

from numba import njit

from bnpstream.kernels.adf import (
    LARGEST_BELOW_ONE,
    absorb,
    log_joint,
    make_scratch_compiled,
    respond,
)
from bnpstream.kernels.arrays import (
    BIRTH,
    DEATH,
    GONE,
    LOG_AUXILIARY,
    LOG_EVIDENCE,
    N_CLUSTERS,
    N_OBSERVATIONS,
    TOTAL_MASS,
    Clusters,
    Events,
    Floats,
    Options,
    Sites,
    SparseRows,
    Trace,
)
from bnpstream.kernels.likelihoods import take_out_sparse_row


@njit(cache=True)
def take_out(clusters: Clusters, rows: SparseRows, i: int, sites: Sites, dead_mass: float) -> int:
    """Subtract site i from the posterior: what is left is the cavity.

    Return the slot of the row's heaviest cluster that is left with mass `dead_mass` or less, or
    GONE: without this row it has no prior weight, or would be dropped.
    """
    home, most = GONE, 0.0
    for j in range(sites.indptr[i], sites.indptr[i + 1]):
        k, share = sites.slots[j], sites.shares[j]
        if k == GONE:
            continue
        take_out_sparse_row(clusters, rows, i, k, share)
        clusters.masses[k] = max(clusters.masses[k] - share, 0.0)
        vacancy = clusters.log_vacancy[k] - math.log1p(-min(share, LARGEST_BELOW_ONE))
        clusters.log_vacancy[k] = min(vacancy, 0.0)
        clusters.totals[TOTAL_MASS] -= share
        if clusters.masses[k] <= dead_mass and share > most:
            home, most = k, share
    return home


@njit(cache=True)
def put_down(sites: Sites, i: int, slots: int, q: Floats) -> None:
    """Write the non-zero responsibilities as site i, after those of the rows before."""
    end = sites.indptr[i]
    for k in range(slots):
        if q[k] > 0.0:
            sites.slots[end] = k
            sites.shares[end] = q[k]
            end += 1
    sites.indptr[i + 1] = end


@njit(cache=True)
def change_of(sites: Sites, i: int, q: Floats) -> float:
    """Return half the summed absolute change from site i to responsibilities q."""
    total = 1.0
    for j in range(sites.indptr[i], sites.indptr[i + 1]):
        k, share = sites.slots[j], sites.shares[j]
        total += share if k == GONE else abs(q[k] - share) - q[k]
    return 0.5 * total


@njit(cache=True)
def log_event(events: Events, clusters: Clusters, kind: int, k: int) -> None:
    """Append one event of the cluster in slot k."""
    at = events.filled[0]
    events.kinds[at] = kind
    events.ids[at] = clusters.ids[k]
    events.times[at] = clusters.counters[N_OBSERVATIONS]
    events.masses[at] = clusters.masses[k]
    events.filled[0] = at + 1


@njit(cache=True)
def relabel(sites: Sites, first: int, last: int, dropped: int, moved: int) -> None:
    """Follow a drop in sites first..last-1: its entries are GONE, the moved slot has its place."""
    for j in range(sites.indptr[first], sites.indptr[last]):
        if sites.slots[j] == dropped:
            sites.slots[j] = GONE
        elif sites.slots[j] == moved:
            sites.slots[j] = dropped


@njit(cache=True)
def drop(clusters: Clusters, k: int) -> int:
    """Remove the cluster in slot k, putting the last one in its place; return that one's slot."""
    last = clusters.counters[N_CLUSTERS] - 1
    clusters.totals[TOTAL_MASS] -= clusters.masses[k]
    clusters.statistics[k] = clusters.statistics[last]
    clusters.masses[k] = clusters.masses[last]
    clusters.log_vacancy[k] = clusters.log_vacancy[last]
    clusters.ids[k] = clusters.ids[last]
    clusters.statistics[last] = 0.0
    clusters.masses[last] = 0.0
    clusters.log_vacancy[last] = 0.0
    clusters.ids[last] = 0
    clusters.counters[N_CLUSTERS] = last
    return last


@njit(cache=True)
def drop_light(
    clusters: Clusters, old: Sites, new: Sites, i: int, n: int, least: float, events: Events
) -> None:
    """Drop the clusters of old site i whose mass is now below `least`."""
    for j in range(old.indptr[i], old.indptr[i + 1]):
        k = old.slots[j]
        if k != GONE and clusters.masses[k] < least:
            log_event(events, clusters, DEATH, k)
            moved = drop(clusters, k)
            relabel(old, i, n, k, moved)
            relabel(new, 0, i + 1, k, moved)


@njit(cache=True)
def visit(
    prior: Any,
    likelihood: Any,
    clusters: Clusters,
    rows: SparseRows,
    old: Sites,
    new: Sites,
    start: int,
    stop: int,
    options: Options,
    trace: Trace,
    events: Events,
) -> int:
    """Visit rows start..stop-1, or fewer if room runs out; return the next row.

    A row may open a cluster, and slot K must stay free for the next new one; it may write K + 1
    entries of its site and as many events.
    """
    capacity = clusters.masses.size
    scratch = make_scratch_compiled(capacity)
    q = scratch.responsibilities
    for i in range(start, stop):
        slots = clusters.counters[N_CLUSTERS] + 1
        if (
            slots == capacity
            or new.indptr[i] + slots > new.slots.size
            or events.filled[0] + slots + 1 > events.kinds.size
        ):
            return i
        first = old.indptr[i] == old.indptr[i + 1]
        home = take_out(clusters, rows, i, old, options.dead_mass)
        log_auxiliary = log_joint(prior, likelihood, clusters, rows, i, scratch)
        log_evidence, opens = respond(slots, options, scratch)
        if opens and home != GONE:  # a singleton reborn keeps its slot and id
            q[home] += q[slots - 1]
            q[slots - 1] = 0.0
            opens = False
        trace.change[i] = change_of(old, i, q)
        likeliest = absorb(clusters, rows, i, opens, q)
        log_evidence += rows.log_base[i]
        clusters.totals[LOG_AUXILIARY] = log_auxiliary
        if first:
            clusters.counters[N_OBSERVATIONS] += 1
            clusters.totals[LOG_EVIDENCE] += log_evidence
        if opens:
            log_event(events, clusters, BIRTH, slots - 1)
        put_down(new, i, clusters.counters[N_CLUSTERS], q)
        trace.log_evidence[i] = log_evidence
        trace.ids[i] = clusters.ids[likeliest]
        drop_light(clusters, old, new, i, rows.log_base.size, options.least_mass, events)
        trace.n_clusters[i] = clusters.counters[N_CLUSTERS]
    return stop
