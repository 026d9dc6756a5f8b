"""The rule of a normalized random measure known by its intensity (twin: ``priors.numerical``).

With r_m(u) = u kappa_{m+1}(u) / kappa_m(u) and p_k the probability that cluster k is occupied, the
mode of v = log u is the root of

    g(v) = n - a u kappa_1(u) - sum_k p_k r_{S_k/p_k}(u),

and the weights are r_{S_k}(u) and a u kappa_1(u). In a row of the table
(``kernels.measures.ratios``) every r is a polynomial in v. So a cluster is two lists of
coefficients, which change only with its mass or the row: they are remembered, of two neighbouring
rows, since a root may wander between them.
The sum over clusters is one list, on which Newton's method costs nothing.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bnpstream.kernels.arrays import (
    LOG_AUXILIARY,
    N_CLUSTERS,
    TOTAL_MASS,
    Clusters,
    Floats,
    Integers,
)
from bnpstream.kernels.jit.decorators import inner
from bnpstream.kernels.jit.dispatch import specialize
from bnpstream.kernels.measures.ratios import (
    BELOW,
    DEGREE,
    Ratios,
    arrival_in,
    cell_of,
    ratio_in,
    value_at,
)
from bnpstream.kernels.measures.rules import (
    LONGEST_STEP,
    NEWTON_STEPS,
    NO_ROOT,
    Rule,
    make_space,
    newton_step,
    rule_of,
    weights_of,
)


class NumericalParameters(NamedTuple):
    """Parameters of ``bnpstream.priors.NumericalMeasure``."""

    tables: Ratios
    concentration: float
    plain_count: bool


class MeasureSpace(NamedTuple):
    """What is remembered of the clusters, of an even and of an odd row of the table."""

    rows: Integers
    """(2,): which rows."""
    masses: Floats
    """(2, capacity): S_k that the coefficients are for; nan for none."""
    log_vacancy: Floats
    """(2, capacity): likewise."""
    in_total: Floats
    """(2, capacity, DEGREE + 1): coefficients of p_k r_{S_k/p_k}."""
    in_weight: Floats
    """(2, capacity, DEGREE + 1): coefficients of r_{S_k}."""
    total: Floats
    """(DEGREE + 1,): the sum of `in_total`."""
    weights: Floats
    """(capacity,)."""


@specialize(make_space, NumericalParameters)
def _make_space(prior, capacity):  # type: ignore[no-untyped-def]
    return MeasureSpace(
        np.full(2, -1),
        np.full((2, capacity), np.nan),
        np.full((2, capacity), np.nan),
        np.empty((2, capacity, DEGREE + 1)),
        np.empty((2, capacity, DEGREE + 1)),
        np.empty(DEGREE + 1),
        np.zeros(capacity),
    )


@inner
def remember(prior: NumericalParameters, clusters: Clusters, space: Any, j: int, k: int) -> None:
    """Make the coefficients of cluster k in row j of the table."""
    side, mass, log_vacancy = j & 1, clusters.masses[k], clusters.log_vacancy[k]
    occupancy = 1.0 if prior.plain_count else -math.expm1(log_vacancy)
    size = max(mass / occupancy, 1.0) if occupancy > 0.0 else 1.0
    ratio_in(prior.tables, j, size, occupancy, space.in_total[side, k])
    ratio_in(prior.tables, j, mass, 1.0, space.in_weight[side, k])
    space.masses[side, k], space.log_vacancy[side, k] = mass, log_vacancy


@inner
def add_up(prior: NumericalParameters, clusters: Clusters, space: Any, j: int) -> None:
    """Fill space.total with the coefficients of sum_k p_k r_{S_k/p_k} in row j of the table."""
    side, total = j & 1, space.total
    if space.rows[side] != j:
        space.rows[side] = j
        space.masses[side] = np.nan
    masses, log_vacancy, in_total = (
        space.masses[side],
        space.log_vacancy[side],
        space.in_total[side],
    )
    total[:] = 0.0
    for k in range(clusters.counters[N_CLUSTERS]):
        if masses[k] != clusters.masses[k] or log_vacancy[k] != clusters.log_vacancy[k]:
            remember(prior, clusters, space, j, k)
        for d in range(DEGREE + 1):
            total[d] += in_total[k, d]


@inner
def find_root(prior: NumericalParameters, clusters: Clusters, space: Any) -> float:
    """Return the root of g, as ``priors.auxiliary.find_mode`` does; space is that of its row."""
    tables, n, v = prior.tables, clusters.totals[TOTAL_MASS], clusters.totals[LOG_AUXILIARY]
    if not math.isfinite(v):
        v = tables.lowest + BELOW
    low, high, longest, row = -np.inf, np.inf, LONGEST_STEP, -1
    for taken in range(NEWTON_STEPS):
        j = cell_of(tables, v)
        if j != row:
            add_up(prior, clusters, space, j)
            row = j
        old, old_slope = value_at(tables, j, space.total, v, 0.0)
        new, new_slope = value_at(tables, j, arrival_in(tables, j), v, tables.intensity.discount)
        g = n - prior.concentration * new - old
        slope = -prior.concentration * new_slope - old_slope
        found, v, low, high, longest = newton_step(g, slope, v, low, high, longest, taken)
        if found:
            return v
    raise FloatingPointError(NO_ROOT)


@specialize(rule_of, NumericalParameters)
def _rule_of(prior, clusters, space):  # type: ignore[no-untyped-def]
    """Fill the weights; where one is above its mass, scale all: only their ratios matter."""
    tables, K = prior.tables, clusters.counters[N_CLUSTERS]
    mode = find_root(prior, clusters, space)
    j = cell_of(tables, mode)
    add_up(prior, clusters, space, j)
    weights, coefficients = space.weights, space.in_weight[j & 1]
    new = (
        prior.concentration
        * value_at(tables, j, arrival_in(tables, j), mode, tables.intensity.discount)[0]
    )
    total, excess = new, 1.0
    for k in range(K):
        weights[k] = value_at(tables, j, coefficients[k], mode, 0.0)[0]
        total += weights[k]
        if weights[k] > excess * clusters.masses[k]:
            excess = weights[k] / clusters.masses[k]
    for k in range(K if excess > 1.0 else 0):
        weights[k] /= excess
    return Rule(0.0, new / excess, math.log(total / excess), mode)


@specialize(weights_of, NumericalParameters)
def _weights_of(prior, clusters, space):  # type: ignore[no-untyped-def]
    return space.weights
