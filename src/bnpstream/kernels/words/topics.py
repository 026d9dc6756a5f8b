"""Units of words settled in topics, for compiled loops: the inner steps of `inference.topics`."""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.jit.decorators import entry, inlined
from bnpstream.kernels.special import STIRLING_FROM, place_of_largest, stirling_tail

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
) -> bool:
    """Move units to the topic with the best score, one after the other, for some sweeps.

    The score of a unit with tables t in topic j, the unit itself taken out, is

        log(size_j + fresh) + sum_w t_w log((base_w + T_jw) / (A + T_j.)),   A = sum_w base_w.

    Scores are of single precision.

    Parameters
    ----------
    indptr, indices, tables : ndarray
        Units, a sparse row of tables each, of single precision.
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
    sums : ndarray of shape (V, J)
        T; changed.

    Returns
    -------
    is_still : bool
        Whether hardly any unit moved in the last sweep.
    """
    n, (V, J) = order.size, sums.shape
    A, totals, sizes = base.sum(), np.zeros(J), np.zeros(J)
    logs, scores = np.empty((V, J), np.float32), np.empty(J, np.float32)
    for w in range(V):
        nothing = math.log(np.float32(base[w]))
        for j in range(J):
            T = sums[w, j]
            logs[w, j] = nothing if T == 0.0 else math.log(np.float32(base[w] + T))
            totals[j] += T
    for i in range(n):
        sizes[topics[i]] += 1.0
    log_totals = np.log(A + totals).astype(np.float32)
    log_sizes = np.log(sizes + fresh).astype(np.float32)
    for _ in range(n_sweeps):
        n_moved = 0
        for i in order:
            start, stop, home = indptr[i], indptr[i + 1], topics[i]
            length = np.float32(0.0)
            for at in range(start, stop):
                length += tables[at]
            for j in range(J):
                scores[j] = log_sizes[j] - length * log_totals[j]
            at_home: Any = math.log(np.float32(max(sizes[home] - 1.0, 0.0) + fresh))
            at_home -= length * math.log(np.float32(A + max(totals[home] - length, 0.0)))
            for at in range(start, stop):
                w, t = indices[at], tables[at]
                for j in range(J):
                    scores[j] += t * logs[w, j]
                at_home += t * math.log(np.float32(base[w] + max(sums[w, home] - t, 0.0)))
            scores[home] = at_home
            best = place_of_largest(scores, J)
            if best == home:
                continue
            n_moved += 1
            topics[i] = best
            for at in range(start, stop):
                w, t = indices[at], tables[at]
                sums[w, home] = max(sums[w, home] - t, 0.0)
                sums[w, best] += t
                logs[w, home] = math.log(np.float32(base[w] + sums[w, home]))
                logs[w, best] = math.log(np.float32(base[w] + sums[w, best]))
            totals[home] = max(totals[home] - length, 0.0)
            totals[best] += length
            sizes[home] -= 1.0
            sizes[best] += 1.0
            for j in (home, best):
                log_totals[j] = math.log(A + totals[j])
                log_sizes[j] = math.log(sizes[j] + fresh)
        if n_moved <= n // STILL:
            return True
    return False


@inlined
def log_rise(x: float, d: float) -> float:
    """Return log Gamma(x + d) - log Gamma(x) for x > 0 and 0 <= d < 1e20, by one series.

    `log_gamma_ratio` takes a logarithm for every step of the recurrence; here one serves all.
    """
    steps = 1.0
    while x < STIRLING_FROM:
        steps *= (x + d) / x
        x += 1.0
    y = x + d
    rise = (x - 0.5) * math.log1p(d / x) + d * math.log(y) - d
    return rise + stirling_tail(y) - stirling_tail(x) - math.log(steps)


@entry
def topic_evidence(words: Any, tables: Any, totals: Any, base: Any, scale: float) -> float:
    """Return sum_j log B(scale base + T_j) - log B(scale base): the marginal of all tables.

    Parameters
    ----------
    words, tables : ndarray
        The cells of T, shape (V, J), that are not zero: their words and what is in them.
    totals : ndarray of shape (J,)
        The totals of T over words.
    base : ndarray of shape (V,)
        The base measure.
    scale : float
        What it is multiplied by.
    """
    A, found = scale * base.sum(), 0.0
    for j in range(totals.size):
        if totals[j] > 0.0:
            found -= log_rise(A, totals[j])
    for i in range(words.size):
        if tables[i] > NOTHING:
            found += log_rise(scale * base[words[i]], tables[i])
    return found
