"""Rows of cells: blocks of columns, each of one family (twins: ``bnpstream.likelihoods``).

A row is a few numbers, one a column; NaN is a missing cell, which is integrated out. Columns are
grouped into blocks of one family each, independent given the cluster, so that one loop serves
every family and any product of them. Statistics are pairs of doubles
(``kernels.statistics.pairs``): the high parts of a cluster's row come first, then the low ones.

`Derived` holds what a score needs of a cluster: means, inverse factors, constants. It is made anew
from the statistics of a cluster whenever these change, so it can be rebuilt to the last bit and no
error grows. It lies cluster by cluster in every row: loops over clusters read it in order.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.jit.decorators import inlined, inner
from bnpstream.kernels.special import log_gamma_ratio
from bnpstream.kernels.statistics.pairs import deviation, quotient

LOG_PI = math.log(math.pi)
KIND, CELL, CELLS, STATISTIC, DERIVED, PARAMETER = 0, 1, 2, 3, 4, 5
FULL, DIAGONAL, SPHERICAL, POISSON, BERNOULLI, CATEGORICAL, MULTINOMIAL = range(7)


class Columns(NamedTuple):
    """Parameters of the families of ``bnpstream.likelihoods`` that have columns."""

    blocks: Integers
    """(blocks, 6): kind, first cell, cells, and where statistics, derived numbers and parameters
    begin. A categorical block has one cell; what CELLS says there is its levels."""
    parameters: Floats
    n_statistics: int
    """Pairs of a cluster."""
    n_derived: int


class Cells(NamedTuple):
    """A batch of rows."""

    values: Floats
    """(n, columns): NaN where a cell is missing; a categorical cell is the level's number."""
    complete: NDArray[np.bool_]
    """(n,): whether no cell is missing."""
    log_base: Floats
    """(n,): log h(x) of every row."""
    weights: Floats
    """(n,): how many rows a row counts for."""


class Derived(NamedTuple):
    """What scores need, made from the statistics; free slots hold the prior's."""

    values: Floats
    """(n_derived, capacity + 8): the eight keep rows from falling into the same cache lines."""
    prior: Floats
    """(n_derived,): of an empty cluster."""
    uneven: NDArray[np.bool_]
    """(capacity,): whether some cells of a cluster were missing more often than others."""
    made: Floats
    """(n_derived,): working space."""


@inlined
def pair(row: Any, s: int, pairs: int) -> tuple[float, float]:
    """Return statistic s of a cluster's row."""
    return row[s], row[s + pairs]


@inner
def derive_normal(p: Any, cells: int, row: Any, s: int, pairs: int, out: Any) -> bool:
    """Normal-gamma columns: parameters m (cells), kappa, a, b (cells).

    Derived: posterior means, weights kappa'/(2 b' (kappa' + 1)), a' + 1/2, constants; the sum of
    the constants last. Return whether counts differ.
    """
    kappa, a, total, uneven = p[cells], p[cells + 1], 0.0, False
    for j in range(cells):
        n, sums = pair(row, s + j, pairs), pair(row, s + cells + j, pairs)
        squares, m = pair(row, s + 2 * cells + j, pairs), p[j]
        scatter, mean = 0.0, m
        if n[0] > 0.0:
            centre = quotient(sums, n)
            mean, scatter = centre[0], max(deviation(squares, centre, sums), 0.0)
        strength, shape = kappa + n[0], a + 0.5 * n[0]
        apart = kappa * n[0] / strength * (mean - m) * (mean - m)
        rate = p[cells + 2 + j] + 0.5 * (scatter + apart)
        out[j] = m + n[0] / strength * (mean - m)
        out[cells + j] = strength / (2.0 * rate * (strength + 1.0))
        out[2 * cells + j] = shape + 0.5
        constant = log_gamma_ratio(shape, 0.5) + 0.5 * (math.log(out[cells + j]) - LOG_PI)
        out[3 * cells + j] = constant
        total += constant
        uneven = uneven or n[0] != row[s]
    out[4 * cells] = total
    return uneven


@inner
def derive_spherical(p: Any, cells: int, row: Any, s: int, pairs: int, out: Any) -> None:
    """Columns with one variance: parameters m (cells), kappa, a, b.

    Derived: posterior means, weights kappa'/(2 b' (kappa' + 1)), their half logarithms; a' last.
    """
    kappa, shape, rate = p[cells], p[cells + 1], p[cells + 2]
    for j in range(cells):
        n, sums = pair(row, s + j, pairs), pair(row, s + cells + j, pairs)
        squares, m, mean = pair(row, s + 2 * cells + j, pairs), p[j], p[j]
        if n[0] > 0.0:
            centre = quotient(sums, n)
            mean = centre[0]
            rate += 0.5 * max(deviation(squares, centre, sums), 0.0)
        strength = kappa + n[0]
        rate += 0.5 * kappa * n[0] / strength * (mean - m) * (mean - m)
        shape += 0.5 * n[0]
        out[j] = m + n[0] / strength * (mean - m)
        out[cells + j] = strength / (strength + 1.0)
    for j in range(cells):
        out[cells + j] /= 2.0 * rate
        out[2 * cells + j] = 0.5 * (math.log(out[cells + j]) - LOG_PI)
    out[3 * cells] = shape


@inner
def factor(packed: Any, D: int) -> float:
    """Turn a packed positive definite matrix into the inverse of its Cholesky factor.

    Return the sum of the logarithms of the factor's diagonal.
    """
    log_diagonal = 0.0
    for i in range(D):
        row_i = i * (i + 1) // 2
        for j in range(i + 1):
            row_j = j * (j + 1) // 2
            total = packed[row_i + j]
            for c in range(j):
                total -= packed[row_i + c] * packed[row_j + c]
            if i == j:
                packed[row_i + i] = math.sqrt(total)
                log_diagonal += math.log(packed[row_i + i])
            else:
                packed[row_i + j] = total / packed[row_j + j]
    for i in range(D):  # row i of the inverse from the rows above it
        row_i = i * (i + 1) // 2
        inverse = 1.0 / packed[row_i + i]
        for j in range(i):
            total = 0.0
            for c in range(j, i):
                total += packed[row_i + c] * packed[c * (c + 1) // 2 + j]
            packed[row_i + j] = -total * inverse
        packed[row_i + i] = inverse
    return log_diagonal


@inner
def derive_full(p: Any, D: int, row: Any, s: int, pairs: int, out: Any) -> None:
    """Columns with a full covariance: parameters kappa, nu, m (D), Psi (packed).

    Derived: posterior mean, inverse Cholesky factor of Psi' (kappa' + 1)/kappa', half of
    nu' + 1, constant.
    """
    n, kappa = pair(row, s, pairs), p[0]
    strength, degrees = kappa + n[0], p[1] + n[0] - D + 1.0
    scale, apart = (strength + 1.0) / strength, kappa * n[0] / strength
    matrix, prior, at = out[D:], p[2 + D :], 0
    for i in range(D):
        m, centre = p[2 + i], (p[2 + i], 0.0)
        if n[0] > 0.0:
            centre = quotient(pair(row, s + 1 + i, pairs), n)
        out[i] = centre[0] - m
        for j in range(i + 1):
            scatter = apart * out[i] * out[j]
            if n[0] > 0.0:
                squares, sums = pair(row, s + 1 + D + at, pairs), pair(row, s + 1 + j, pairs)
                scatter += deviation(squares, centre, sums)
            matrix[at] = scale * (prior[at] + scatter)
            at += 1
    for i in range(D):
        out[i] = p[2 + i] + n[0] / strength * out[i]
    log_diagonal = factor(matrix, D)
    end = D + D * (D + 1) // 2
    out[end] = 0.5 * (degrees + D)
    out[end + 1] = log_gamma_ratio(0.5 * degrees, 0.5 * D) - 0.5 * D * LOG_PI - log_diagonal


@inner
def derive_counts(kind: int, p: Any, cells: int, row: Any, s: int, out: Any) -> None:
    """Poisson, Bernoulli, categorical and multinomial columns: parameters and derived numbers.

    Poisson: a (cells), b (cells); a' = a + S, a' log(b'/(b' + 1)), -log(b' + 1).
    Bernoulli: a (cells), b (cells); log of the probabilities of one and of zero.
    Categorical: alpha (levels); logarithms of the levels' probabilities.
    Multinomial: alpha (cells), A; alpha + S, A + S..
    """
    if kind == POISSON:
        for j in range(cells):
            shape, rate = p[j] + row[s + cells + j], p[cells + j] + row[s + j]
            out[j], out[2 * cells + j] = shape, -math.log1p(rate)
            out[cells + j] = -shape * math.log1p(1.0 / rate)
    elif kind == BERNOULLI:
        for j in range(cells):
            n, ones = row[s + j], row[s + cells + j]
            total = p[j] + p[cells + j] + n
            out[j] = math.log((p[j] + ones) / total)
            out[cells + j] = math.log((p[cells + j] + max(n - ones, 0.0)) / total)
    elif kind == CATEGORICAL:
        total = 0.0
        for j in range(cells):
            total += p[j] + row[s + j]
        for j in range(cells):
            out[j] = math.log((p[j] + row[s + j]) / total)
    else:
        for j in range(cells + 1):
            out[j] = p[j] + row[s + j]


@inner
def derive(columns: Columns, row: Any, out: Any) -> bool:
    """Fill `out` (n_derived,) from a cluster's row; return whether cells differ in their counts."""
    uneven, pairs = False, columns.n_statistics
    for b in range(columns.blocks.shape[0]):
        block = columns.blocks[b]
        kind, cells, s = block[KIND], block[CELLS], block[STATISTIC]
        p, made = columns.parameters[block[PARAMETER] :], out[block[DERIVED] :]
        if kind == FULL:
            derive_full(p, cells, row, s, pairs, made)
        elif kind == DIAGONAL:
            uneven = derive_normal(p, cells, row, s, pairs, made) or uneven
        elif kind == SPHERICAL:
            derive_spherical(p, cells, row, s, pairs, made)
        else:
            derive_counts(kind, p, cells, row, s, made)
    return uneven
