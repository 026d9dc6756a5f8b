"""Columns with a full covariance (twin: ``bnpstream.likelihoods.gaussian``)."""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.cells.columns import Work
from bnpstream.kernels.cells.moments import LOG_PI, pair, put
from bnpstream.kernels.jit.decorators import inlined, inner
from bnpstream.kernels.special import log_gamma_ratio
from bnpstream.kernels.statistics.pairs import deviation, quotient, two_product


@inlined
def add_scaled(row: Any, weight: float, other: Any, n: int) -> None:
    """Add weight times the first n numbers of another row."""
    for j in range(n):
        row[j] += weight * other[j]


@inner
def factor(packed: Any, D: int) -> float:
    """Turn a packed positive definite matrix into the inverse of its Cholesky factor.

    Return the sum of the logarithms of the factor's diagonal. The innermost loops go along rows,
    over numbers that do not wait for each other: with a hundred columns that takes a third of the
    time of adding up one number after the other. Every number is the same sum in the same order.
    """
    log_diagonal, line = 0.0, np.empty(D)
    for c in range(D):  # column c of the factor, then what it takes away from all to its right
        at = c * (c + 1) // 2 + c
        diagonal = packed[at] = math.sqrt(packed[at])
        log_diagonal += math.log(diagonal)
        for i in range(c + 1, D):
            row_i = i * (i + 1) // 2
            weight = line[i] = packed[row_i + c] = packed[row_i + c] / diagonal
            add_scaled(packed[row_i + c + 1 :], -weight, line[c + 1 :], i - c)
    for i in range(D):  # row i of the inverse from the rows above it
        row_i = i * (i + 1) // 2
        inverse = 1.0 / packed[row_i + i]
        line[:i] = 0.0
        for c in range(i):
            add_scaled(line, packed[row_i + c], packed[c * (c + 1) // 2 :], c + 1)
        for j in range(i):
            packed[row_i + j] = -line[j] * inverse
        packed[row_i + i] = inverse
    return log_diagonal


@inlined
def derive(p: Any, cells: int, row: Any, s: int, pairs: int, out: Any) -> bool:
    """Parameters kappa, nu, m (D), Psi (packed), with D = cells.

    Derived: posterior mean, inverse Cholesky factor of Psi' (kappa' + 1)/kappa', half of
    nu' + 1, constant.
    """
    D, n, kappa = cells, pair(row, s, pairs), p[0]
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
    return False


@inlined
def score(
    v: Any, at: int, x: Any, cells: int, width: int, even: bool, scores: Any, work: Work
) -> None:
    """Add the log density of Student's t with a full scale matrix: a triangle times a vector."""
    summed, part, aparts = work.summed, work.part, work.apart
    summed[:width] = 0.0
    row = at + cells
    for i in range(cells):
        apart, mean = aparts[i], v[at + i]
        for k in range(width):
            apart[k] = x[i] - mean[k]
        part[:width] = 0.0
        for j in range(i + 1):
            w, other = v[row], aparts[j]
            for k in range(width):
                part[k] += w[k] * other[k]
            row += 1
        for k in range(width):
            summed[k] += part[k] * part[k]
    half, constant = v[row], v[row + 1]
    for k in range(width):
        scores[k] += constant[k] - half[k] * math.log1p(summed[k])


@inlined
def add(row: Any, s: int, pairs: int, x: Any, cells: int, share: float) -> None:
    """Add a count, sums and products."""
    put(row, s, pairs, share, 1.0, 0.0)
    at = s + 1 + cells
    for j in range(cells):
        value = x[j]
        if not math.isnan(value):
            put(row, s + 1 + j, pairs, share, value, 0.0)
            for c in range(j + 1):
                square, rest = two_product(value, x[c])
                put(row, at + j * (j + 1) // 2 + c, pairs, share, square, rest)
