"""A cheap upper bound on every cluster's score, so that few need the exact one.

A cluster whose score is below the best one's by more than the cut is dropped anyway. The screen
finds out which by reading two bytes a (word, cluster) in place of eight, adding whole numbers, and
taking no logarithm: it is never too low, so what it rules out is out, and results do not depend on
it. It holds nothing that could not be made again from the clusters.

Bound. Let b = alpha_w + S_kw. A document that holds word w once gains log(b / alpha_w) over an
empty cluster. `levels` holds that logarithm, in units of 1/resolution octave, rounded up. For a
word that occurs x times the other x - 1 tokens gain

    g(level) = sum_{0 < j < x} log((b + j) / (alpha_w + j)),

a convex function of the level whose slope rises from almost 0 to x - 1. Its chords with slopes 1/8,
3/8, 5/8, 7/8 and 1 times x - 1 lie above it and no more than some hundredths of a nat a token away:

    8 g <= (x - 1) (q + 2 max(q, k1) + 2 max(q, k2) + 2 max(q, k3) + max(q, k4) - offset),

where the knots k are where one chord meets the next. The length of the document costs
log Gamma(A + S + N) / Gamma(A + S): see `fill_bounds`. The prior weight is at most the mass.

Words may share a row of levels, which then holds the largest: still an upper bound.

Bursty documents see g_k b of a cluster, g = `damping`, and g_0 alpha_w of an empty one. Of every
word the first token gains log(g_k / g_0) besides, exactly. For the others the level is lower by the
cluster's `shifts`, log2(g_0 / g_k) rounded down, and the knots are those of g_0 alpha_w.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats, SparseRows
from bnpstream.kernels.jit.decorators import entry, inlined, inner

LARGEST_LEVEL = 8191
"""Eight levels are added in 16 bits."""
CHORDS = 4
PARTS = 8
"""Slopes are multiples of this part of the steepest."""
GRID = 16
"""Knots are multiples of this level."""
COUNTS = 32
"""Up to here every count has knots of its own; above, counts of an eighth of an octave share the
smallest's, whose tokens gain most."""
LONGEST = (1 << 32) // (PARTS * (LARGEST_LEVEL + 1))
"""Words of a document that 32 bits can sum up."""
MANTISSA_STEPS = 256
LANES = 32
"""Sweeps over clusters are a multiple of this wide, so that no scalar remainder is left."""


class Screen(NamedTuple):
    """What is kept to bound scores; `levels` has no rows where there is no screen."""

    levels: NDArray[np.uint16]
    """(rows, capacity): ceil(resolution log2(1 + S/alpha)), word-major."""
    rows: NDArray[np.uint32]
    """(V,): the row of every word; the last row belongs to none and stays zero."""
    shared: NDArray[np.bool_]
    """(rows,): whether several words have the row."""
    heads: Floats
    """(capacity,): log S_k - log(A + S_k.), -inf for free slots."""
    lengths: Floats
    """(capacity,): y = A + S_k. + 1/2."""
    log_lengths: Floats
    """(capacity,): log y."""
    inverse_lengths: Floats
    """(capacity,): 1/y."""
    knots: NDArray[np.int64]
    """(classes of alpha, classes of count, CHORDS + 1): the knots, and their weighted sum."""
    classes: NDArray[np.int32]
    """(V,): class of every word's alpha."""
    inverse_alpha: Floats
    """(V,): 1/alpha_w."""
    steps: NDArray[np.uint16]
    """(MANTISSA_STEPS,): level of a mantissa, rounded up."""
    resolution: int
    """Levels an octave."""
    total: float
    """A = sum_w alpha_w."""
    burstiness: float
    """1/s of bursty documents, 0 for multinomial ones."""
    log_dampings: Floats
    """(capacity,): log(g_k / g_0)."""
    shifts: NDArray[np.uint16]
    """(capacity,): resolution log2(g_0 / g_k), rounded down."""


@entry
def level_of(ratio: float, resolution: int, steps: Any) -> Any:
    """Return resolution log2(1 + ratio), rounded up from the bits of a double."""
    bits = np.float64(1.0 + ratio).view(np.uint64)
    octave = np.int64(bits >> np.uint64(52)) - 1023
    step = steps[(bits >> np.uint64(44)) & np.uint64(MANTISSA_STEPS - 1)]
    level = min(octave * resolution + np.int64(step), LARGEST_LEVEL)
    return level if ratio > 0.0 else 0


@entry
def count_class(count: float) -> Any:
    """Return the class of a count: itself, or which eighth of which octave."""
    if count < COUNTS:
        return np.int64(count)
    bits = np.float64(count).view(np.uint64)
    return COUNTS + np.int64(bits >> np.uint64(49)) - ((1023 + 5) << 3)


@inner
def add_eight(sums: Any, levels: Any, at: Any, j: int, width: int) -> None:
    """Add the levels of eight words: one load and store of the sums for eight rows."""
    r0, r1, r2, r3 = levels[at[j]], levels[at[j + 1]], levels[at[j + 2]], levels[at[j + 3]]
    r4, r5, r6, r7 = levels[at[j + 4]], levels[at[j + 5]], levels[at[j + 6]], levels[at[j + 7]]
    for k in range(width):
        left = np.uint16(np.uint16(r0[k] + r1[k]) + np.uint16(r2[k] + r3[k]))
        right = np.uint16(np.uint16(r4[k] + r5[k]) + np.uint16(r6[k] + r7[k]))
        sums[k] += np.uint32(np.uint16(left + right)) << np.uint32(3)


@inlined
def chords(q: Any, k1: Any, k2: Any, k3: Any, k4: Any) -> Any:
    """Return q + 2 max(q, k1) + 2 max(q, k2) + 2 max(q, k3) + max(q, k4) in 16 bits."""
    middle = np.uint16(np.uint16(max(q, k1) + max(q, k2)) + max(q, k3))
    return np.uint16(np.uint16(middle + middle) + np.uint16(q + max(q, k4)))


@inner
def add_chords(
    sums: Any, p: Any, a: Any, more_p: Any, q: Any, b: Any, more_q: Any, width: int
) -> None:
    """Add the bounds of further tokens of two words, levels p and q, knots a and b."""
    a1, a2, a3, a4 = np.uint16(a[0]), np.uint16(a[1]), np.uint16(a[2]), np.uint16(a[3])
    b1, b2, b3, b4 = np.uint16(b[0]), np.uint16(b[1]), np.uint16(b[2]), np.uint16(b[3])
    for k in range(width):
        left = np.uint32(chords(p[k], a1, a2, a3, a4))
        right = np.uint32(chords(q[k], b1, b2, b3, b4))
        sums[k] += np.uint32(np.uint32(more_p * left) + np.uint32(more_q * right))


@inner
def add_shifted_chords(
    sums: Any, shifts: Any, p: Any, a: Any, more_p: Any, q: Any, b: Any, more_q: Any, width: int
) -> None:
    """Add the bounds of further tokens of two words whose levels are lower by shifts."""
    a1, a2, a3, a4 = np.uint16(a[0]), np.uint16(a[1]), np.uint16(a[2]), np.uint16(a[3])
    b1, b2, b3, b4 = np.uint16(b[0]), np.uint16(b[1]), np.uint16(b[2]), np.uint16(b[3])
    for k in range(width):
        lower = shifts[k]
        left = np.uint32(chords(np.uint16(max(p[k], lower) - lower), a1, a2, a3, a4))
        right = np.uint32(chords(np.uint16(max(q[k], lower) - lower), b1, b2, b3, b4))
        sums[k] += np.uint32(np.uint32(more_p * left) + np.uint32(more_q * right))


@inlined
def sum_levels(screen: Screen, rows: SparseRows, i: int, width: int, at: Any, sums: Any) -> int:
    """Fill sums[:width] with the bound of row i's gain; return what must be subtracted.

    Both are in units of 1/(PARTS resolution) octave.
    """
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    length, nothing = last - first, screen.levels.shape[0] - 1
    for j in range(length):
        at[j] = screen.rows[rows.indices[first + j]]
    for j in range(length, length + 7):
        at[j] = nothing
    sums[:width] = np.uint32(0)
    for j in range(0, length, 8):
        add_eight(sums, screen.levels, at, j, width)
    offset, start, stop = 0, rows.repeat_ptr[i], rows.repeat_ptr[i + 1]
    for r in range(start, stop, 2):
        j = rows.repeats[r]
        more = np.int64(rows.values[j]) - 1
        knots = screen.knots[screen.classes[rows.indices[j]], count_class(rows.values[j])]
        offset += more * knots[CHORDS]
        other, twin, also = np.int64(nothing), knots, np.int64(0)
        if r + 1 < stop:
            j2 = rows.repeats[r + 1]
            other, also = np.int64(at[j2 - first]), np.int64(rows.values[j2]) - 1
            twin = screen.knots[screen.classes[rows.indices[j2]], count_class(rows.values[j2])]
            offset += also * twin[CHORDS]
        one = screen.levels[at[j - first]]
        two = screen.levels[other]
        if screen.burstiness > 0.0:
            add_shifted_chords(
                sums,
                screen.shifts,
                one,
                knots,
                np.uint32(more),
                two,
                twin,
                np.uint32(also),
                width,
            )
        else:
            add_chords(sums, one, knots, np.uint32(more), two, twin, np.uint32(also), width)
    return offset
