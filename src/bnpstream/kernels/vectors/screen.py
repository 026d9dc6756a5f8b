"""Which clusters may score high: bounds by tangents, products of a block of rows in float32.

Statistics are linear. Within a block of rows, eta_k . x_i is what it was when the block began, one
matrix product for all rows, and what rows j < i of the block have added since: amounts times
x_j . x_i, from the rows' own products. That is right to the rounding of float32, which the bounds
allow for. Bounds rise with eta . x, so at first a cluster has that of the level above its product,
and its lines are looked at only if that is not enough. Clusters that a bound cannot rule out are
scored in float64 from the statistics, so results do not depend on the block. The product is a loop
of its own and not a library's: blocks are small, and threads that wait for each other on a busy
machine take a thousand times as long.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import N_CLUSTERS, Clusters, Floats, Integers
from bnpstream.kernels.jit.decorators import inner, lanes
from bnpstream.kernels.special import place_of_largest
from bnpstream.kernels.statistics.table import Table
from bnpstream.kernels.vectors.families import (
    LEVELS,
    SCALES,
    TANGENTS,
    fill_tangents,
    level_of,
    still_bound,
)

BLOCK = 128
"""Rows of a block, at most."""
NEAR = 2**15
"""Numbers of float32 that stay near the processor: of clusters that rows are multiplied with."""
TILE = 4
"""Rows that are multiplied at a time."""
FEWEST = 8
"""Clusters from which on they are screened."""
LOGGED = 4096
"""Changes of clusters that are kept."""
LINES = SCALES * TANGENTS
LEADING = 5
"""The line by which the cluster to be scored first is chosen: of a scale that is not rare."""
LOG_SCALES = math.log(SCALES)
"""A sum over scales is at most so far above its largest term."""
MARGIN = 0.01
"""Nats that bounds are given for the expansion that they are made by, and for rounding."""
SINGLE = 2.0**-23
"""Rounding of float32: twice that of one operation."""
MOST_SINGLE = 1e38
NEVER_MADE = -1.0
N_LOGGED, GENERATION = 0, 1
FIRST, LAST, MADE_IN, MADE_AT, SEEN, N_BEFORE, STOP = 0, 1, 2, 3, 4, 5, 6


class Vectors(NamedTuple):
    """A batch of rows."""

    values: NDArray[Any]
    """(n, D): float32 or float64, as they were given."""
    factors: Floats
    """(n,): what a row is multiplied by."""
    log_base: Floats
    """(n,): log h(x) of every row."""
    weights: Floats
    """(n,): how many rows a row counts for."""


class Lengths(NamedTuple):
    """What scores and bounds need of clusters, made from the statistics.

    Free slots hold the prior's.
    """

    squares: Floats
    """(capacity,): |eta|^2."""
    radii: Floats
    """(capacity,): |eta|."""
    precisions: Floats
    """(capacity,)."""
    log_masses: Floats
    """(capacity,)."""
    constants: Floats
    """(lines, capacity): of the tangents, two a scale."""
    slopes: Floats
    """(lines, capacity)."""
    levels: Floats
    """(levels, capacity): of products, ascending."""
    heights: Floats
    """(levels, capacity): what the lines are not above up to there."""
    leading: Floats
    """(2, capacity): constant and slope of the line by which the first cluster is chosen."""
    made: Floats
    """(capacity,): |eta|^2 that lines and levels were made for, or `NEVER_MADE`."""
    prior: Floats
    """(2,): |eta|^2 and precision of an empty cluster."""
    line: Floats
    """(2, lines): working space."""
    changed: Integers
    """(LOGGED, 2): slot and row of the last changes of clusters."""
    amounts: Floats
    """(LOGGED,): what the row was multiplied by."""
    logged: Integers
    """(2,): changes kept, and a number that is another when they cannot be told by these."""


class VectorScratch(NamedTuple):
    """Working space of one pass."""

    entries: Floats
    """(WORK + D + G + 3,): working space of `fill_pairs`, the row, and what is remembered of the
    cluster that was scored first (see `remember`)."""
    slots: Integers
    """(capacity,): the candidates, ascending."""
    log_scores: Floats
    """(capacity,): of the candidates."""
    shares: Floats
    """(capacity,): responsibilities of the candidates."""
    bounds: Floats
    """(capacity,): upper bounds of the log scores."""
    products: Floats
    """(capacity,): eta . x."""
    drifts: Floats
    """(capacity,): how much clusters may have moved since the block began."""
    block: Integers
    """(7,): rows of the block, the log and the clusters when it began, and the last row at all."""
    vectors: NDArray[np.float32]
    """(BLOCK, D): its rows."""
    etas: NDArray[np.float32]
    """(BLOCK, D): as many clusters."""
    before: NDArray[np.float32]
    """(BLOCK, capacity + 2): eta . x of all rows when the block began."""
    among: NDArray[np.float32]
    """(BLOCK, BLOCK): products of rows."""


@inner
def product(one: Any, other: Any) -> float:
    """Return the inner product, in eight sums that do not wait for each other."""
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = one.size // 8 * 8
    for j in range(0, whole, 8):
        a += one[j] * other[j]
        b += one[j + 1] * other[j + 1]
        c += one[j + 2] * other[j + 2]
        d += one[j + 3] * other[j + 3]
        e += one[j + 4] * other[j + 4]
        f += one[j + 5] * other[j + 5]
        g += one[j + 6] * other[j + 6]
        h += one[j + 7] * other[j + 7]
    for j in range(whole, one.size):
        a += one[j] * other[j]
    return ((a + e) + (b + f)) + ((c + g) + (d + h))


@inner
def fill_row(family: Any, rows: Vectors, i: int, x: Any) -> None:
    """Fill x with row i, times its factor, less the centre."""
    factor = rows.factors[i]
    for j in range(x.size):
        x[j] = factor * rows.values[i, j] - family.centre[j]


@inner
def product_with(table: Table, k: int, x: Any) -> float:
    """Return V . x of cluster k."""
    start = table.starts[k] + SCALES
    return product(table.values[start : start + x.size], x)


@inner
def square_of(family: Any, table: Table, k: int) -> float:
    """Return |base + V|^2 of cluster k, in four sums that do not wait for each other."""
    start, base = table.starts[k] + SCALES, family.base
    sums = table.values[start : start + base.size]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = sums.size // 4 * 4
    for j in range(0, whole, 4):
        a += (base[j] + sums[j]) * (base[j] + sums[j])
        b += (base[j + 1] + sums[j + 1]) * (base[j + 1] + sums[j + 1])
        c += (base[j + 2] + sums[j + 2]) * (base[j + 2] + sums[j + 2])
        d += (base[j + 3] + sums[j + 3]) * (base[j + 3] + sums[j + 3])
    for j in range(whole, sums.size):
        a += (base[j] + sums[j]) * (base[j] + sums[j])
    return (a + b) + (c + d)


@inner
def precision_of(family: Any, table: Table, k: int) -> float:
    """Return the precision of cluster k."""
    start, total = table.starts[k], family.precision
    for g in range(SCALES):
        total += family.grid[g] * table.values[start + g]
    return total


@inner
def update(lengths: Lengths, family: Any, table: Table, masses: Floats, k: int) -> None:
    """Find what scores and bounds need of cluster k from its statistics."""
    squares = square_of(family, table, k)
    precision = precision_of(family, table, k)
    mass, line = masses[k], lengths.line
    lengths.squares[k], lengths.precisions[k] = squares, precision
    lengths.radii[k] = math.sqrt(squares)
    lengths.log_masses[k] = math.log(mass) if mass > 0.0 else -np.inf
    if not still_bound(family, lengths.made[k], squares):
        lengths.made[k] = squares
        fill_tangents(family, squares, precision, line[0], line[1])
        for v in range(LINES):
            lengths.constants[v, k] = line[0, v]
            lengths.slopes[v, k] = line[1, v]
        for t in range(LEVELS):
            level = level_of(family, squares, precision, t)
            lengths.levels[t, k] = level
            lengths.heights[t, k] = height(lengths, k, level)
    shorter = math.sqrt(lengths.made[k] / squares) if squares > 0.0 else 1.0
    lengths.leading[0, k] = lengths.constants[LEADING, k]
    lengths.leading[1, k] = lengths.slopes[LEADING, k] * shorter


@inner
def height(lengths: Lengths, k: int, y: float) -> float:
    """Return what log p(x, g | cluster k) is not above for any g, y being the product."""
    top = -np.inf
    for v in range(0, LINES, TANGENTS):
        one = lengths.constants[v, k] + lengths.slopes[v, k] * y
        other = lengths.constants[v + 1, k] + lengths.slopes[v + 1, k] * y
        top = max(top, min(one, other))
    return top


@inner
def note(lengths: Lengths, family: Any, i: int, k: int, q: float, line: Any) -> None:
    """Log that q times a line of row i was added to cluster k."""
    mean = 0.0
    for g in range(SCALES):
        mean += line[g] * family.grid[g]
    if lengths.logged[N_LOGGED] == LOGGED:
        forget(lengths)
    at = lengths.logged[N_LOGGED]
    lengths.changed[at, 0], lengths.changed[at, 1] = k, i
    lengths.amounts[at] = q * mean
    lengths.logged[N_LOGGED] = at + 1


@inner
def forget(lengths: Lengths) -> None:
    """Have the next row begin a block: what happened is not in the log."""
    lengths.logged[N_LOGGED] = 0
    lengths.logged[GENERATION] += 1


@lanes
def multiply(some: Any, n_some: int, vectors: Any, n: int, out: Any) -> None:
    """Fill out[c, b] with some[c] . vectors[b]; a few more than asked for, as tiles are whole."""
    for c in range(0, n_some, 4):
        one, two, three, four = some[c], some[c + 1], some[c + 2], some[c + 3]
        for b in range(0, n, 2):
            x, y = vectors[b], vectors[b + 1]
            p = q = r = s = t = u = v = w = np.float32(0.0)
            for j in range(x.size):
                p += one[j] * x[j]
                q += one[j] * y[j]
                r += two[j] * x[j]
                s += two[j] * y[j]
                t += three[j] * x[j]
                u += three[j] * y[j]
                v += four[j] * x[j]
                w += four[j] * y[j]
            out[c, b], out[c, b + 1], out[c + 1, b], out[c + 1, b + 1] = p, q, r, s
            out[c + 2, b], out[c + 2, b + 1], out[c + 3, b], out[c + 3, b + 1] = t, u, v, w


@inner
def begin_block(
    lengths: Lengths, family: Any, clusters: Clusters, rows: Vectors, i: int, scratch: Any
) -> None:
    """Multiply the rows from i on with all clusters, and with each other."""
    K, block = clusters.counters[N_CLUSTERS], scratch.block
    D = rows.values.shape[1]
    n = min(BLOCK, block[STOP] - i)
    block[FIRST], block[LAST], block[N_BEFORE] = i, i + n, K
    block[MADE_IN] = lengths.logged[GENERATION]
    block[MADE_AT] = block[SEEN] = lengths.logged[N_LOGGED]
    vectors, etas, base = scratch.vectors, scratch.etas, family.base
    for k in range(scratch.drifts.size):
        scratch.drifts[k] = 0.0
    for b in range(n):
        fill_row(family, rows, i + b, vectors[b])
    for b in range(0, n, TILE):  # only products with rows that come later are asked for
        multiply(vectors[b:], TILE, vectors[b:], n - b, scratch.among[b:, b:])
    size = max(TILE, min(BLOCK, NEAR // D // TILE * TILE))
    for first in range(0, K, size):
        m = min(size, K - first)
        for c in range(m):
            start, eta = clusters.table.starts[first + c] + SCALES, etas[c]
            sums = clusters.table.values[start : start + D]
            for j in range(D):
                eta[j] = base[j] + sums[j]
        multiply(vectors, n, etas, m, scratch.before[:, first:])


@inner
def multiplied(
    lengths: Lengths,
    family: Any,
    clusters: Clusters,
    rows: Vectors,
    i: int,
    square: float,
    ahead: float,
    scratch: Any,
) -> int:
    """Fill scratch.products with what eta . x - lean precision |x|^2 of row i is not above.

    Return the slot of the cluster with the largest of its leading lines.
    """
    K, block, logged = clusters.counters[N_CLUSTERS], scratch.block, lengths.logged
    if block[MADE_IN] != logged[GENERATION] or i < block[FIRST] or i >= block[LAST]:
        begin_block(lengths, family, clusters, rows, i, scratch)
    products, drifts = scratch.products, scratch.drifts
    b, n = i - block[FIRST], block[N_BEFORE]
    before = scratch.before[b]
    for k in range(n):
        products[k] = before[k]
    for k in range(n, K):
        products[k] = ahead
    for e in range(block[MADE_AT], logged[N_LOGGED]):
        k, row, amount = lengths.changed[e, 0], lengths.changed[e, 1], lengths.amounts[e]
        products[k] += amount * scratch.among[row - block[FIRST], b]
    for e in range(block[SEEN], logged[N_LOGGED]):
        k, row = lengths.changed[e, 0], lengths.changed[e, 1] - block[FIRST]
        drifts[k] += 2.0 * abs(lengths.amounts[e]) * math.sqrt(1.01 * scratch.among[row, row])
    block[SEEN] = logged[N_LOGGED]
    rounding = SINGLE * (rows.values.shape[1] + 16) * math.sqrt(square)
    leaning, least, bounds = family.lean * square, family.least, scratch.bounds
    constants, slopes = lengths.leading[0], lengths.leading[1]
    for k in range(K):
        y = products[k] + rounding * (lengths.radii[k] + drifts[k])
        y -= leaning * lengths.precisions[k]
        y = y if abs(y) < MOST_SINGLE else np.inf  # beyond float32: whatever it is, it is scored
        y = y if y > least else least
        products[k] = y
        bounds[k] = constants[k] + slopes[k] * y + lengths.log_masses[k]
    return place_of_largest(bounds, K)


@inner
def bound(lengths: Lengths, K: int, scratch: Any) -> None:
    """Fill scratch.bounds with what the log scores are not above, going by levels of products."""
    bounds, products = scratch.bounds, scratch.products
    levels, heights, more = lengths.levels, lengths.heights, lengths.log_masses
    for k in range(K):
        top = heights[1, k] if products[k] <= levels[1, k] else np.inf
        top = heights[0, k] if products[k] <= levels[0, k] else top
        bounds[k] = top + more[k]
