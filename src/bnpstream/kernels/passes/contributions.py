"""What a row adds to its clusters: t(x), or what depends on the cluster, compiled.

Twin: ``mixture.contributions``. Which of the two it is, the class of the sites says: `Sites` hold
responsibilities, and the rows hold t(x); `LatentSites` hold what was added too.
"""

import math
from functools import singledispatch
from typing import Any

from bnpstream.kernels.arrays import GONE, TOTAL_MASS, Clusters, LatentSites, Sites
from bnpstream.kernels.jit.decorators import inlined, inner
from bnpstream.kernels.jit.dispatch import specialize
from bnpstream.kernels.passes.kinds import (
    add_line,
    add_row,
    n_columns,
    take_out_line,
    take_out_row,
)
from bnpstream.kernels.passes.steps import LARGEST_BELOW_ONE


@singledispatch
def contribution_of(
    likelihood: Any, table: Any, rows: Any, i: int, k: int, entries: Any, line: Any
) -> None:
    """Fill `line` with what row i adds to cluster k, which it is not in (`Likelihood.latent`).

    There is a number for every column of the row, for a responsibility and a weight of one;
    `entries` is working space.
    """
    raise TypeError(f"no compiled contributions for parameters of type {type(likelihood).__name__}")


@singledispatch
def absorb(
    sites: Any,
    likelihood: Any,
    clusters: Clusters,
    cache: Any,
    rows: Any,
    i: int,
    kept: int,
    scratch: Any,
) -> int:
    """Add row i with its responsibilities to the posterior, Eq. (18); return 0.

    Where what it adds could not be kept, nothing happens, and the numbers wanted are returned.
    """
    raise TypeError(f"no sites of type {type(sites).__name__}")


@singledispatch
def take_out(
    sites: Any,
    likelihood: Any,
    clusters: Clusters,
    cache: Any,
    rows: Any,
    i: int,
    entries: Any,
) -> None:
    """Subtract site i from the posterior: what is left is the cavity."""
    raise TypeError(f"no sites of type {type(sites).__name__}")


@singledispatch
def change_of(old: Any, new: Any, rows: Any, i: int) -> float:
    """Return how much has moved from old site i to the new one, between 0 and 1."""
    raise TypeError(f"no sites of type {type(old).__name__}")


@specialize(absorb, Sites, inline=True)
def _absorb(  # type: ignore[no-untyped-def]
    sites, likelihood, clusters, cache, rows, i, kept, scratch
):
    slots, shares, weight = scratch.slots, scratch.shares, rows.weights[i]
    for c in range(kept):
        k, q = slots[c], shares[c]
        add_row(cache, likelihood, clusters, rows, i, k, weight * q, scratch.entries)
        clusters.log_vacancy[k] += weight * log_vacancy_of(q)
    clusters.totals[TOTAL_MASS] += weight
    return 0


@specialize(take_out, Sites)
def _take_out(sites, likelihood, clusters, cache, rows, i, entries):  # type: ignore[no-untyped-def]
    weight = rows.weights[i]
    for j in range(sites.indptr[i], sites.indptr[i + 1]):
        k, share = sites.slots[j], sites.shares[j]
        if k != GONE:
            take_out_row(cache, likelihood, clusters, rows, i, k, weight * share, entries)
            vacancy = clusters.log_vacancy[k] - weight * log_vacancy_of(share)
            clusters.log_vacancy[k] = min(vacancy, 0.0)
            clusters.totals[TOTAL_MASS] -= weight * share


@inlined
def log_vacancy_of(q: float) -> float:
    """Return log(1 - q), finite at q = 1 so that it can be subtracted again."""
    return math.log1p(-min(q, LARGEST_BELOW_ONE))


@specialize(change_of, Sites)
def _change_of(old, new, rows, i):  # type: ignore[no-untyped-def]
    return change_of_shares(old, new, i)


@inner
def change_of_shares(old: Any, new: Any, i: int) -> float:
    """Return half the summed absolute change of row i's responsibilities."""
    total = 1.0
    for j in range(old.indptr[i], old.indptr[i + 1]):
        share, now = old.shares[j], 0.0
        for c in range(new.indptr[i], new.indptr[i + 1]):
            if new.slots[c] == old.slots[j]:
                now = new.shares[c]
        total += abs(now - share) - now
    return 0.5 * total


@inlined
def line_of(sites: LatentSites, rows: Any, i: int, c: int) -> tuple[int, int]:
    """Return where sites.lines has what row i has added to the c-th cluster of its site."""
    columns = n_columns(rows, i)
    start = sites.line_ptr[i] + c * columns
    return start, start + columns


@specialize(absorb, LatentSites)
def _absorb_lines(  # type: ignore[no-untyped-def]
    sites, likelihood, clusters, cache, rows, i, kept, scratch
):
    """Find what the row adds from clusters without it, add it, and keep it if it is wanted."""
    slots, shares, weight, entries = scratch.slots, scratch.shares, rows.weights[i], scratch.entries
    wanted = kept * n_columns(rows, i)
    if sites.line_ptr[i] + wanted > sites.lines.size:
        return wanted
    for c in range(kept):
        k, q, (start, stop) = slots[c], shares[c], line_of(sites, rows, i, c)
        line = sites.lines[start:stop]
        contribution_of(likelihood, clusters.table, rows, i, k, entries, line)
        add_line(cache, likelihood, clusters, rows, i, k, weight * q, line, entries)
        clusters.log_vacancy[k] += weight * log_vacancy_of(q)
    clusters.totals[TOTAL_MASS] += weight
    sites.line_ptr[i + 1] = sites.line_ptr[i] + (wanted if sites.keeps else 0)
    return 0


@specialize(take_out, LatentSites)
def _take_out_lines(  # type: ignore[no-untyped-def]
    sites, likelihood, clusters, cache, rows, i, entries
):
    weight, first = rows.weights[i], sites.indptr[i]
    for j in range(first, sites.indptr[i + 1]):
        k, share = sites.slots[j], sites.shares[j]
        start, stop = line_of(sites, rows, i, j - first)
        line = sites.lines[start:stop]
        if k != GONE:
            take_out_line(cache, likelihood, clusters, rows, i, k, weight * share, line, entries)
            vacancy = clusters.log_vacancy[k] - weight * log_vacancy_of(share)
            clusters.log_vacancy[k] = min(vacancy, 0.0)
            clusters.totals[TOTAL_MASS] -= weight * share


@specialize(change_of, LatentSites)
def _change_of_lines(old, new, rows, i):  # type: ignore[no-untyped-def]
    return max(change_of_shares(old, new, i), share_moved(old, new, rows, i))


@inner
def share_moved(old: LatentSites, new: LatentSites, rows: Any, i: int) -> float:
    """Return how much of what row i adds, before and now, has moved; 0 if it adds nothing.

    Where it adds t(x) to every cluster, that is half the summed change of its responsibilities.
    """
    total, stayed, was_there = 0.0, 0.0, False
    for j in range(old.indptr[i], old.indptr[i + 1]):
        if old.slots[j] == GONE:
            continue
        was_there = True
        start, stop = line_of(old, rows, i, j - old.indptr[i])
        gone = old.lines[start:stop]
        total += old.shares[j] * absolute_sum(gone)
        for c in range(new.indptr[i], new.indptr[i + 1]):
            if new.slots[c] == old.slots[j]:
                first, last = line_of(new, rows, i, c - new.indptr[i])
                come = new.lines[first:last]
                stayed += in_common(old.shares[j], gone, new.shares[c], come)
    for c in range(new.indptr[i], new.indptr[i + 1]):
        start, stop = line_of(new, rows, i, c - new.indptr[i])
        total += new.shares[c] * absolute_sum(new.lines[start:stop])
    return 1.0 - stayed / total if was_there and total > 0.0 else 0.0


@inner
def absolute_sum(line: Any) -> float:
    """Return the sum of absolute values."""
    total = 0.0
    for value in line:
        total += abs(value)
    return total


@inner
def in_common(share: float, line: Any, other_share: float, other: Any) -> float:
    """Return what is in both of two weighted lines, counted in either."""
    total = 0.0
    for d in range(line.size):
        one, two = share * line[d], other_share * other[d]
        total += abs(one) + abs(two) - abs(one - two)
    return total
