"""Units of words settled in topics, for compiled loops: the inner steps of `inference.topics`."""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.jit.decorators import entry
from bnpstream.kernels.special import log_gamma_ratio

NOTHING = 1e-9
"""What rounding leaves of a table that is gone."""
STILL = 1000
"""Sweeps end when no more than one unit in so many moved."""


@entry
def settle_units(
    indptr: Any,
    indices: Any,
    tables: Any,
    base: Any,
    order: Any,
    fresh: float,
    n_sweeps: int,
    topics: Any,
    sums: Any,
    totals: Any,
    sizes: Any,
) -> None:
    """Move units to the topic with the best score, one after the other, for some sweeps.

    The score of a unit with tables t in topic j, the unit itself taken out, is

        log(size_j + fresh) + sum_w t_w log((base_w + T_jw) / (A + T_j.)),   A = sum_w base_w.

    Parameters
    ----------
    indptr, indices, tables : ndarray
        Units, a sparse row of tables each.
    base : ndarray of shape (V,)
        The base measure of topics.
    order : ndarray of shape (n,)
        The order in which units are looked at.
    fresh : float
        Mass of a topic that has no unit.
    n_sweeps : int
        Sweeps at most.
    topics : ndarray of shape (n,)
        The topic of every unit; changed.
    sums, totals, sizes : ndarray of shape (V, J), (J,), (J,)
        T, its totals over words, and the number of units of every topic; changed.
    """
    n, (V, J) = order.size, sums.shape
    A = base.sum()
    logs, scores = np.empty((V, J), np.float32), np.empty(J, np.float32)
    log_totals, log_sizes = np.log(A + totals), np.log(sizes + fresh)
    for w in range(V):
        for j in range(J):
            logs[w, j] = math.log(base[w] + sums[w, j])
    for _ in range(n_sweeps):
        n_moved = 0
        for i in order:
            start, stop, home = indptr[i], indptr[i + 1], topics[i]
            length = 0.0
            for at in range(start, stop):
                length += tables[at]
            for j in range(J):
                scores[j] = log_sizes[j] - length * log_totals[j]
            at_home = math.log(max(sizes[home] - 1.0, 0.0) + fresh)
            at_home -= length * math.log(A + max(totals[home] - length, 0.0))
            for at in range(start, stop):
                w, t = indices[at], tables[at]
                single = np.float32(t)
                for j in range(J):
                    scores[j] += single * logs[w, j]
                at_home += t * math.log(base[w] + max(sums[w, home] - t, 0.0))
            scores[home] = at_home
            best: Any = np.argmax(scores)
            if best == home:
                continue
            n_moved += 1
            topics[i] = best
            for at in range(start, stop):
                w, t = indices[at], tables[at]
                sums[w, home] = max(sums[w, home] - t, 0.0)
                sums[w, best] += t
                logs[w, home] = math.log(base[w] + sums[w, home])
                logs[w, best] = math.log(base[w] + sums[w, best])
            totals[home] = max(totals[home] - length, 0.0)
            totals[best] += length
            sizes[home] -= 1.0
            sizes[best] += 1.0
            for j in (home, best):
                log_totals[j] = math.log(A + totals[j])
                log_sizes[j] = math.log(sizes[j] + fresh)
        if n_moved <= n // STILL:
            break


@entry
def topic_evidence(sums: Any, totals: Any, base: Any, scale: float) -> float:
    """Return sum_j log B(scale base + T_j) - log B(scale base): the marginal of all tables.

    Parameters
    ----------
    sums, totals : ndarray of shape (V, J), (J,)
        T, and its totals over words.
    base : ndarray of shape (V,)
        The base measure.
    scale : float
        What it is multiplied by.
    """
    V, J = sums.shape
    A, found = scale * base.sum(), 0.0
    for j in range(J):
        if totals[j] > 0.0:
            found -= log_gamma_ratio(A, totals[j])
    for w in range(V):
        for j in range(J):
            if sums[w, j] > NOTHING:
                found += log_gamma_ratio(scale * base[w], sums[w, j])
    return found
