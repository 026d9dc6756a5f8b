"""Bounds from the levels, and keeping the levels up to date (see ``kernels.words.levels``)."""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.arrays import Floats, Scratch, SparseRows
from bnpstream.kernels.jit.decorators import entry, inlined, inner
from bnpstream.kernels.special import LOG_2, log_rising
from bnpstream.kernels.statistics.table import N_COLUMNS, Table, entry_of, locate
from bnpstream.kernels.words.levels import (
    LANES,
    LARGEST_LEVEL,
    LONGEST,
    PARTS,
    Screen,
    level_of,
    sum_levels,
)
from bnpstream.kernels.words.tables import damping

ROUNDING_PART = 1e-12
"""Of a length: more than what rounding can take away from a bound."""
SHORT, SIXTH = 0.0625, 1.0 / 6.0
"""Up to this part of a cluster's length a row's is little; the third term of the cost's series."""


@inner
def fill_bounds(
    screen: Screen,
    sums: Any,
    base: float,
    shortest: float,
    least: float,
    n: float,
    bounds: Floats,
    width: int,
) -> None:
    """Fill `bounds` with upper bounds of log mass + log predictive of a row of n tokens.

    The length costs sum_{j < n} log(x + j), x = A + S_k. The logarithm is concave, so with
    y = x + 1/2 and m = n - 1 that is at least

        log x + integral from 0 to m of log(y + t) dt
            = log x + m log y + (y + m) log(1 + m/y) - m,

    and a diagonal Pade approximant of log(1 + z) is never above it. No logarithm is taken. All but
    log x is no less than `least`, what it is for an empty cluster; that is closer where n is large
    beside x. Where n is small beside x, which is `shortest` or more, the series of the integral,
    m log y + m (z/2 - z^2/6 + z^3/12 - ...), z = m/y, does without a division: its terms alternate
    and fall, so that after an even number of them it is below its limit.
    """
    heads, log_y, y, inverse = (
        screen.heads,
        screen.log_lengths,
        screen.lengths,
        screen.inverse_lengths,
    )
    scale, m = LOG_2 / (PARTS * screen.resolution), n - 1.0
    if m < SHORT * shortest:
        for k in range(width):
            z = m * inverse[k]
            gain = scale * np.float64(np.int64(sums[k]))
            bounds[k] = base + heads[k] + gain - m * (log_y[k] + z * (0.5 - z * SIXTH))
        return
    for k in range(width):
        z = m * inverse[k]
        above = z * (60.0 + z * (60.0 + z * 11.0))
        below = 60.0 + z * (90.0 + z * (36.0 + z * 3.0))
        cost = max(m * log_y[k] + (y[k] + m) * (above / below) - m, least)
        gain = scale * np.float64(np.int64(sums[k]))
        bounds[k] = base + heads[k] + gain - cost + ROUNDING_PART * (y[k] + m)


@inlined
def is_screened(screen: Screen, rows: SparseRows, i: int) -> bool:
    """Return whether there is a screen, and row i is neither empty nor too long for it."""
    if screen.levels.shape[0] == 0:  # then rows are any statistics, and may have no entries
        return False
    return 0.0 < rows.values[rows.indptr[i + 1] - 1] < LONGEST


@inlined
def bound(screen: Screen, rows: SparseRows, i: int, K: int, base: float, scratch: Scratch) -> None:
    """Fill scratch.bounds[:K] with upper bounds of log scores.

    `base` is the log predictive of row i in an empty cluster, less the log total of the weights.
    """
    width, length = (K + LANES) // LANES * LANES, rows.values[rows.indptr[i + 1] - 1]
    offset = sum_levels(screen, rows, i, width, scratch.at, scratch.sums)
    x = damping(screen.total, screen.burstiness) * screen.total
    least = log_rising(x + 1.0, length - 1.0)
    base += math.log(x) + least - offset * LOG_2 / (PARTS * screen.resolution)
    fill_bounds(screen, scratch.sums, base, x, least, length, scratch.bounds, width)
    if screen.burstiness > 0.0:
        n_words = rows.indptr[i + 1] - rows.indptr[i] - 1.0
        for k in range(width):
            scratch.bounds[k] += n_words * screen.log_dampings[k]


@inlined
def lead(bounds: Floats, K: int, n: int, leaders: Any) -> float:
    """Fill leaders[:n] with the slots of the n largest of K bounds, ascending; return the least."""
    for k in range(n):
        leaders[k] = k
    weakest = 0
    for k in range(n):
        if bounds[leaders[k]] < bounds[leaders[weakest]]:
            weakest = k
    least = bounds[leaders[weakest]]
    for start in range(0, K, LANES):
        if not any_above(bounds, start, least):
            continue
        for k in range(max(start, n), min(start + LANES, K)):
            if bounds[k] > least:
                for c in range(weakest, n - 1):
                    leaders[c] = leaders[c + 1]
                leaders[n - 1], weakest = k, 0
                for c in range(1, n):
                    if bounds[leaders[c]] < bounds[leaders[weakest]]:
                        weakest = c
                least = bounds[leaders[weakest]]
    return least


@inlined
def any_above(bounds: Floats, start: int, least: float) -> bool:
    """Return whether one of the next LANES bounds is above `least`, without a branch for each."""
    found, part = False, bounds[start : start + LANES]
    for k in range(LANES):
        found |= part[k] > least
    return found


@inlined
def weigh_cluster(screen: Screen, k: int, mass: float, length: float) -> None:
    """Let the screen know the mass and the summed length of cluster k."""
    total = screen.total + length
    damped = damping(total, screen.burstiness)
    x = damped * total
    screen.heads[k] = math.log(mass / x) if mass > 0.0 else -np.inf
    screen.lengths[k] = x + 0.5
    screen.log_lengths[k] = math.log(x + 0.5)
    screen.inverse_lengths[k] = 1.0 / (x + 0.5)
    if screen.burstiness > 0.0:
        log_damping = math.log(damped / damping(screen.total, screen.burstiness))
        shift = np.int64(screen.resolution * (-log_damping / LOG_2 - ROUNDING_PART))
        screen.log_dampings[k] = log_damping
        screen.shifts[k] = max(min(shift, np.int64(LARGEST_LEVEL)), np.int64(0))


@inlined
def update_levels(
    screen: Screen, rows: SparseRows, i: int, k: int, values: Floats, entries: Any
) -> None:
    """Let the screen know that cluster k now has values[entries] of row i's words.

    A row of levels that words share holds the largest, so it is never lowered.
    """
    levels, steps, slot = screen.levels, screen.steps, np.uint64(k)
    inverse_alpha, resolution = screen.inverse_alpha, screen.resolution
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    for j in range(last - first):
        word = rows.indices[first + j]
        row = screen.rows[word]
        level = level_of(values[entries[j]] * inverse_alpha[word], resolution, steps)
        before = np.int64(levels[row, slot])
        if level > before or (level < before and not screen.shared[row]):
            levels[row, slot] = level


@inner
def stored_words(table: Table, k: int) -> tuple[Any, Any]:
    """Return the words of cluster k with a count above zero, and their entries."""
    start, size, last = table.starts[k], table.sizes[k], table.shape[N_COLUMNS] - 1
    words, entries, n = np.empty(size, np.uint32), np.empty(size, np.uint64), 0
    for j in range(size):
        word = j if size == last + 1 else np.int64(table.keys[start + j])
        if 0 <= word < last and table.values[start + j] > 0.0:
            words[n], entries[n] = word, start + j
            n += 1
    return words[:n], entries[:n]


@inner
def fill_cluster(screen: Screen, table: Table, masses: Floats, k: int) -> None:
    """Raise the levels of cluster k, which are zero, to what its row says."""
    words, entries = stored_words(table, k)
    raise_words(screen, table.values, k, words, entries)
    weigh_again(screen, table, masses, k)


@inner
def raise_words(screen: Screen, values: Floats, k: int, words: Any, entries: Any) -> None:
    """Raise the levels of some words of cluster k to what values[entries] say."""
    levels, rows, steps = screen.levels, screen.rows, screen.steps
    inverse_alpha, resolution = screen.inverse_alpha, screen.resolution
    for j in range(words.size):
        word = words[j]
        if word == inverse_alpha.size:  # the length, which is no word
            continue
        row = rows[word]
        level = level_of(values[entries[j]] * inverse_alpha[word], resolution, steps)
        if level > levels[row, k]:
            levels[row, k] = level


@inner
def weigh_again(screen: Screen, table: Table, masses: Floats, k: int) -> None:
    """Let the screen know the mass and the length of cluster k as they are stored."""
    length = table.values[entry_of(table, k, table.shape[N_COLUMNS] - 1)]
    weigh_cluster(screen, k, masses[k], length)


@inner
def clear_cluster(screen: Screen, table: Table, k: int) -> None:
    """Forget cluster k, whose row is still there: its slot is as it was before it had one."""
    start, size, last = table.starts[k], table.sizes[k], table.shape[N_COLUMNS] - 1
    for j in range(size):
        word = j if size == last + 1 else np.int64(table.keys[start + j])
        if 0 <= word < last:
            screen.levels[screen.rows[word], k] = 0
    screen.heads[k], screen.lengths[k] = -np.inf, 1.0
    screen.log_lengths[k], screen.inverse_lengths[k] = 0.0, 1.0
    screen.log_dampings[k], screen.shifts[k] = 0.0, 0


@entry
def fill(screen: Screen, table: Table, masses: Floats, n_clusters: int) -> None:
    """Make the levels of all clusters, which are zero."""
    for k in range(n_clusters):
        fill_cluster(screen, table, masses, k)


@entry
def lighten(screen: Screen, table: Table, masses: Floats, n_clusters: int) -> None:
    """Follow rows and masses that have become smaller; levels stay, as they are upper bounds."""
    for k in range(n_clusters):
        weigh_again(screen, table, masses, k)


@entry
def lower(screen: Screen, table: Table, masses: Floats, n_clusters: int) -> None:
    """Follow rows and masses that have become smaller, levels included.

    Dense rows may have lost words (`clear_traces`) that are not found by what they hold.
    """
    hashed = table.keys.size > 0
    if not hashed:
        screen.levels[:, :n_clusters] = 0
    for k in range(n_clusters):
        if hashed:
            clear_cluster(screen, table, k)
        fill_cluster(screen, table, masses, k)


@entry
def raise_cluster(screen: Screen, table: Table, masses: Floats, k: int, words: Any) -> None:
    """Follow a cluster of which some words have become more."""
    entries = np.empty(words.size, np.uint64)
    locate(table, k, words, 0, words.size, entries)
    raise_words(screen, table.values, k, words, entries)
    weigh_again(screen, table, masses, k)


@entry
def raise_levels(
    screen: Screen, table: Table, masses: Floats, n_clusters: int, n_kept: int, at: Any, words: Any
) -> None:
    """Follow a table in which some words of some clusters, `at`, may have become larger.

    Clusters from `n_kept` on are made anew of these.
    """
    screen.levels[:, n_kept:] = 0
    last = table.shape[N_COLUMNS] - 1
    entries, first = np.empty(last + 1, np.uint64), 0
    while first < words.size:  # words of one cluster at a time
        k, stop = at[first], first + 1
        while stop < min(words.size, first + entries.size) and at[stop] == k:
            stop += 1
        locate(table, k, words, first, stop, entries)
        raise_words(screen, table.values, k, words[first:stop], entries)
        first = stop
    for k in range(n_clusters):
        weigh_again(screen, table, masses, k)
    screen.heads[n_clusters:] = -np.inf


@entry
def spread_of_words(table: Table, n_clusters: int, out: Any) -> None:
    """Count the clusters that hold each word."""
    for k in range(n_clusters):
        for word in stored_words(table, k)[0]:
            out[word] += 1
