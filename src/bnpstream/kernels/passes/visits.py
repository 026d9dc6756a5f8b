"""Visiting rows in order, compiled (twin: ``bnpstream.inference.visits``).

One loop serves every algorithm: a first visit is a step of ADF-NRM (Algorithm 1), a later one a
step of EP-NRM (Algorithm 2), which takes the row's last contribution out first.
"""

from typing import Any

from bnpstream.kernels.arrays import (
    BIRTH,
    DEATH,
    GONE,
    IS_OUT,
    LOG_AUXILIARY,
    LOG_EVIDENCE,
    MORE_LINES,
    N_CLUSTERS,
    N_OBSERVATIONS,
    NEXT_ID,
    NEXT_ROW,
    NO_LIMIT,
    TOTAL_MASS,
    Clusters,
    Events,
    Floats,
    Integers,
    Options,
    Trace,
)
from bnpstream.kernels.jit.decorators import entry, inlined, inner
from bnpstream.kernels.measures.rules import make_space, weights_of
from bnpstream.kernels.passes.contributions import absorb, change_of, take_out
from bnpstream.kernels.passes.kinds import make_scratch, move_cluster, score
from bnpstream.kernels.passes.steps import fits, make_fit, respond, weigh
from bnpstream.kernels.statistics.table import n_entries


@inner
def home_of(clusters: Clusters, i: int, sites: Any, dead_mass: float) -> int:
    """Return the slot of the row's heaviest cluster with a mass of `dead_mass` or less, or GONE.

    Without this row, which is taken out, it has no prior weight, or would be dropped.
    """
    home, most = GONE, 0.0
    for j in range(sites.indptr[i], sites.indptr[i + 1]):
        k, share = sites.slots[j], sites.shares[j]
        if k != GONE and clusters.masses[k] <= dead_mass and share > most:
            home, most = k, share
    return home


@inner
def give_home(home: int, kept: int, scratch: Any) -> int:
    """Give the new cluster's share, the last, to the slot `home`; return how many are left."""
    slots, shares = scratch.slots, scratch.shares
    c = 0
    while c < kept - 1 and slots[c] < home:
        c += 1
    if slots[c] == home:
        shares[c] += shares[kept - 1]
        return kept - 1
    new = shares[kept - 1]
    for d in range(kept - 1, c, -1):
        slots[d], shares[d] = slots[d - 1], shares[d - 1]
    slots[c], shares[c] = home, new
    return kept


@inlined
def largest(values: Any, n: int) -> int:
    """Return where the first n values are largest, as numpy.argmax does."""
    best = 0
    for c in range(1, n):
        if values[c] > values[best]:
            best = c
    return best


@inlined
def put_down(sites: Any, i: int, kept: int, scratch: Any) -> None:
    """Write the responsibilities as site i, after those of the rows before."""
    end = sites.indptr[i]
    for c in range(kept):
        sites.slots[end + c] = scratch.slots[c]
        sites.shares[end + c] = scratch.shares[c]
    sites.indptr[i + 1] = end + kept


@inlined
def log_event(events: Events, clusters: Clusters, kind: int, k: int) -> None:
    """Append one event of the cluster in slot k."""
    at = events.filled[0]
    events.kinds[at] = kind
    events.ids[at] = clusters.ids[k]
    events.times[at] = clusters.counters[N_OBSERVATIONS]
    events.masses[at] = clusters.masses[k]
    events.filled[0] = at + 1


@inner
def relabel(sites: Any, first: int, last: int, dropped: int, moved: int) -> None:
    """Follow a drop in sites first..last-1: its entries are GONE, the moved slot has its place."""
    for j in range(sites.indptr[first], sites.indptr[last]):
        if sites.slots[j] == dropped:
            sites.slots[j] = GONE
        elif sites.slots[j] == moved:
            sites.slots[j] = dropped


@inner
def drop(clusters: Clusters, cache: Any, k: int) -> int:
    """Remove the cluster in slot k, putting the last one in its place; return that one's slot."""
    last = clusters.counters[N_CLUSTERS] - 1
    clusters.totals[TOTAL_MASS] -= clusters.masses[k]
    move_cluster(cache, clusters, k, last)
    clusters.log_vacancy[k] = clusters.log_vacancy[last]
    clusters.ids[k] = clusters.ids[last]
    clusters.masses[last] = 0.0
    clusters.log_vacancy[last] = 0.0
    clusters.ids[last] = 0
    clusters.counters[N_CLUSTERS] = last
    return last


@entry
def drop_cluster(clusters: Clusters, cache: Any, k: int) -> int:
    """Remove a cluster as `drop` does, for those who are not compiled."""
    return drop(clusters, cache, k)


@inner
def drop_light(
    clusters: Clusters,
    cache: Any,
    old: Any,
    new: Any,
    i: int,
    least: float,
    events: Events,
) -> None:
    """Drop the clusters of old site i whose mass is now below `least`."""
    for j in range(old.indptr[i], old.indptr[i + 1]):
        k = old.slots[j]
        if k != GONE and clusters.masses[k] < least:
            log_event(events, clusters, DEATH, k)
            moved = drop(clusters, cache, k)
            relabel(old, i, old.indptr.size - 1, k, moved)
            relabel(new, 0, i + 1, k, moved)


@entry
def visit(
    prior: Any,
    likelihood: Any,
    clusters: Clusters,
    cache: Any,
    rows: Any,
    old: Any,
    new: Any,
    reached: Integers,
    stop: int,
    options: Options,
    trace: Trace,
    events: Events,
) -> int:
    """Visit rows from reached[NEXT_ROW] up to stop-1, or fewer if room runs out.

    Room is that of the arrays, and that of a budget. Return the entries that the table has to be
    `lengthened` by before the next row, or 0; that row may be taken out already (reached[IS_OUT]),
    and it may need so many more numbers for what it adds (reached[MORE_LINES]).
    """
    capacity = clusters.masses.size
    scratch = make_scratch(rows, reached[NEXT_ROW], stop, capacity)
    space = make_space(prior, capacity)
    weights = weights_of(prior, clusters, space)
    return visit_with(
        prior,
        likelihood,
        clusters,
        cache,
        rows,
        old,
        new,
        reached,
        stop,
        options,
        trace,
        events,
        scratch,
        space,
        weights,
    )


@inner
def visit_with(
    prior: Any,
    likelihood: Any,
    clusters: Clusters,
    cache: Any,
    rows: Any,
    old: Any,
    new: Any,
    reached: Integers,
    stop: int,
    options: Options,
    trace: Trace,
    events: Events,
    scratch: Any,
    space: Any,
    weights: Floats,
) -> int:
    """Visit rows as `visit` does; all arrays are its caller's, so that none is counted.

    A row may open a cluster, and slot K must stay free for the next new one; it may write K + 1
    entries of its site and as many events.
    """
    capacity = clusters.masses.size
    for i in range(reached[NEXT_ROW], stop):
        reached[NEXT_ROW] = i
        slots = clusters.counters[N_CLUSTERS] + 1
        if (
            slots == capacity
            or slots > options.most_clusters
            or (
                options.most_entries < NO_LIMIT
                and slots > 2
                and n_entries(clusters.table, slots - 1) > options.most_entries
            )
            or new.indptr[i] + slots > new.slots.size
            or events.filled[0] + slots + 1 > events.kinds.size
        ):
            return 0
        first, home = old.indptr[i] == old.indptr[i + 1], GONE
        if not first:
            if not reached[IS_OUT]:
                take_out(old, likelihood, clusters, cache, rows, i, scratch.entries)
                reached[IS_OUT] = 1
            home = home_of(clusters, i, old, options.dead_mass)
        rule = weigh(prior, clusters, space)
        cut, most = options.log_min_responsibility, options.most_responsibilities
        candidates = score(cache, likelihood, clusters, rows, i, weights, rule, cut, most, scratch)
        kept, log_evidence, opens, novelty = respond(candidates, options, scratch)
        if opens and home != GONE:  # a singleton reborn keeps its slot and id
            kept, opens = give_home(home, kept, scratch), False
        if not fits(clusters.table, rows, i, scratch.slots, kept):
            wanted = make_fit(clusters.table, rows, i, scratch.slots, kept)
            if wanted > 0:
                return wanted
        more = absorb(new, likelihood, clusters, cache, rows, i, kept, scratch)
        if more > 0:
            reached[MORE_LINES] = more
            return 0
        if opens:
            clusters.ids[slots - 1] = clusters.counters[NEXT_ID]
            clusters.counters[NEXT_ID] += 1
            clusters.counters[N_CLUSTERS] += 1
        likeliest = largest(scratch.shares, kept)
        log_evidence += rows.log_base[i]
        clusters.totals[LOG_AUXILIARY] = rule.log_auxiliary
        if first:
            clusters.counters[N_OBSERVATIONS] += 1
            clusters.totals[LOG_EVIDENCE] += rows.weights[i] * log_evidence
        if opens:
            log_event(events, clusters, BIRTH, slots - 1)
        put_down(new, i, kept, scratch)
        trace.log_evidence[i] = log_evidence
        trace.ids[i] = clusters.ids[scratch.slots[likeliest]]
        trace.shares[i] = scratch.shares[likeliest]
        trace.novelty[i] = novelty
        trace.change[i] = 1.0
        if not first:
            trace.change[i] = change_of(old, new, rows, i)
            drop_light(clusters, cache, old, new, i, options.least_mass, events)
        trace.n_clusters[i] = clusters.counters[N_CLUSTERS]
        reached[IS_OUT] = 0
    reached[NEXT_ROW] = stop
    return 0
