"""Log densities of one row in all clusters, family by family, added to their scores.

Arguments are the derived numbers `v` (see ``kernels.cells.columns``), where a block's begin, the
block's cells `x`, how many there are, and how many slots are scored.

Floor: every derived number is read once, a vector of clusters at a time; what is more is a
logarithm a (cluster, block), or a (cluster, cell) where cells are missing.
"""

import math
from typing import Any

import numpy as np

from bnpstream.kernels.cells.columns import CATEGORICAL, MULTINOMIAL, POISSON
from bnpstream.kernels.jit.decorators import inner
from bnpstream.kernels.special import LOG_2, log_gamma_ratio, log_rising, split


@inner
def add_full(
    v: Any, at: int, x: Any, D: int, width: int, scores: Any, summed: Any, part: Any, aparts: Any
) -> None:
    """Add the log density of Student's t with a full scale matrix: a triangle times a vector."""
    summed[:width] = 0.0
    row = at + D
    for i in range(D):
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


@inner
def add_even(
    v: Any, at: int, x: Any, cells: int, width: int, scores: Any, mantissas: Any, exponents: Any
) -> None:
    """Add the log densities of Student's t, columns of equal counts: one logarithm a cluster."""
    mantissas[:width] = 1.0
    exponents[:width] = 0
    for j in range(cells):
        mean, weight = v[at + j], v[at + cells + j]
        for k in range(width):
            apart = x[j] - mean[k]
            mantissa, exponent = split(mantissas[k] * (1.0 + apart * apart * weight[k]))
            mantissas[k] = mantissa
            exponents[k] += exponent
    half, constant = v[at + 2 * cells], v[at + 4 * cells]
    for k in range(width):
        log_product = math.log(mantissas[k]) + LOG_2 * exponents[k]
        scores[k] += constant[k] - half[k] * log_product


@inner
def add_uneven(v: Any, at: int, x: Any, cells: int, width: int, scores: Any) -> None:
    """Add the log densities of Student's t over the columns that are there."""
    for j in range(cells):
        if not math.isnan(x[j]):
            mean, weight = v[at + j], v[at + cells + j]
            half, constant = v[at + 2 * cells + j], v[at + 3 * cells + j]
            for k in range(width):
                apart = x[j] - mean[k]
                scores[k] += constant[k] - half[k] * math.log1p(apart * apart * weight[k])


@inner
def add_spherical(
    v: Any, at: int, x: Any, cells: int, width: int, scores: Any, summed: Any
) -> None:
    """Add the log density of Student's t with one variance over the columns that are there."""
    observed = 0
    summed[:width] = 0.0
    for j in range(cells):
        if not math.isnan(x[j]):
            observed += 1
            mean, weight, constant = v[at + j], v[at + cells + j], v[at + 2 * cells + j]
            for k in range(width):
                apart = x[j] - mean[k]
                summed[k] += apart * apart * weight[k]
                scores[k] += constant[k]
    shape = v[at + 3 * cells]
    if observed > 0:
        for k in range(width):
            scores[k] += log_gamma_ratio(shape[k], 0.5 * observed)
            scores[k] -= (shape[k] + 0.5 * observed) * math.log1p(summed[k])


@inner
def add_counts(kind: int, v: Any, at: int, x: Any, cells: int, width: int, scores: Any) -> None:
    """Add the log probabilities of counts over the columns that are there."""
    length = 0.0
    for j in range(1 if kind == CATEGORICAL else cells):
        value = x[j]
        if math.isnan(value):
            continue
        if kind == POISSON:
            shape, constant, slope = v[at + j], v[at + cells + j], v[at + 2 * cells + j]
            for k in range(width):
                scores[k] += log_rising(shape[k], value) + constant[k] + value * slope[k]
        elif kind == MULTINOMIAL:
            length += value
            if value > 0.0:
                base = v[at + j]
                for k in range(width):
                    scores[k] += log_rising(base[k], value)
        else:
            offset = np.int64(value) if kind == CATEGORICAL else (j if value > 0.0 else cells + j)
            log_probability = v[at + offset]
            for k in range(width):
                scores[k] += log_probability[k]
    if kind == MULTINOMIAL:
        total = v[at + cells]
        for k in range(width):
            scores[k] -= log_rising(total[k], length)
