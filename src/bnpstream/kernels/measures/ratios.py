"""Tables of what the rule of a normalized random measure needs of its tilted moments.

That is u kappa_1(u) and r_m(u) = u kappa_{m+1}(u) / kappa_m(u), the mean of us under
s^m e^{-us} rho(s). The latter is tabulated as r / (m - discount), which is smooth down to
m = discount: polynomials of degree DEGREE in v = log u and in x = log(LEAST + m - discount), a
piece a cell of WIDTH in both. What happens at sizes just below the discount is then far away in x,
unless it is within LEAST of it.

A cell is made when it is first needed. Its content depends on rho and on where it lies, on nothing
else, so it never matters when that is. Both engines read the same tables.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.jit.decorators import entry, inlined, inner
from bnpstream.kernels.measures.moments import Intensity, chebyshev_nodes, moment

DEGREE = 9
"""Of polynomials in a cell. Where the nearest singularity is d away from the real axis of v or x
the error falls like (4 d / WIDTH)^-(DEGREE + 1): 1e-17 for an NGGP (d = pi), 1e-12 at d = 1."""
WIDTH = 0.25
BELOW, ABOVE = 48.0, 80.0
"""How far the table reaches from its center, in v: u 1e-21 to 1e34 times as large."""
ROWS = round((BELOW + ABOVE) / WIDTH)
LEAST = 2.0**-10
LOG_LEAST = math.log(LEAST)
COLUMNS = 116
"""Up to m = e^22, more rows than any stream has."""

EDGE = 1.0 + 1e-9
"""Of a cell, from its middle: more by what rounding can add."""
NODES = chebyshev_nodes(DEGREE)
FIT = np.linalg.inv(np.vander(NODES, increasing=True))
"""From values at NODES to coefficients of powers."""


class Ratios(NamedTuple):
    """The tables of one intensity."""

    intensity: Intensity
    lowest: float
    """v where the tables begin."""
    ratios: Floats
    """(ROWS, COLUMNS, DEGREE + 1, DEGREE + 1): coefficients of r_m / (m - discount), x before v."""
    arrivals: Floats
    """(ROWS, DEGREE + 1): coefficients of u kappa_1(u)."""
    made: Any
    """(ROWS, COLUMNS + 1) of bool: which cells there are, of `arrivals` last."""


def empty_tables(intensity: Intensity, center: float) -> Ratios:
    """Allocate the tables, around v = center."""
    return Ratios(
        intensity,
        center - BELOW,
        np.zeros((ROWS, COLUMNS, DEGREE + 1, DEGREE + 1)),
        np.zeros((ROWS, DEGREE + 1)),
        np.zeros((ROWS, COLUMNS + 1), np.bool_),
    )


@inner
def make_cell(table: Ratios, j: int, column: int) -> None:
    """Make one cell of the table; column COLUMNS is `arrivals`."""
    values = np.empty((DEGREE + 1, DEGREE + 1))
    for b in range(DEGREE + 1):
        v = table.lowest + WIDTH * (j + 0.5 + 0.5 * NODES[b])
        if column == COLUMNS:
            values[0, b] = math.exp(v + moment(table.intensity, 1.0, v)[0])
            continue
        for a in range(DEGREE + 1):
            excess = LEAST * math.expm1(WIDTH * (column + 0.5 + 0.5 * NODES[a]))
            values[a, b] = moment(table.intensity, table.intensity.discount + excess, v)[1] / excess
    for d in range(DEGREE + 1):
        if column == COLUMNS:
            table.arrivals[j, d] = 0.0
            for b in range(DEGREE + 1):
                table.arrivals[j, d] += values[0, b] * FIT[d, b]
            continue
        for c in range(DEGREE + 1):
            total = 0.0
            for a in range(DEGREE + 1):
                for b in range(DEGREE + 1):
                    total += FIT[c, a] * values[a, b] * FIT[d, b]
            table.ratios[j, column, c, d] = total
    table.made[j, column] = True


@inlined
def cell_of(table: Ratios, v: float) -> int:
    """Return the table's row of cells for v; beyond the table, the nearest."""
    return min(max(int((v - table.lowest) / WIDTH), 0), ROWS - 1)


@inlined
def ratio_in(table: Ratios, j: int, m: float, share: float, out: Floats) -> None:
    """Fill out[:DEGREE + 1] with share times the coefficients of r_m in row j; 0 up to discount."""
    excess = m - table.intensity.discount
    if not excess > 0.0:
        out[:] = 0.0
        return
    place = (math.log(LEAST + excess) - LOG_LEAST) / WIDTH
    column = min(int(place), COLUMNS - 1)
    if not table.made[j, column]:
        make_cell(table, j, column)
    x, cell = min(2.0 * (place - column) - 1.0, 1.0), table.ratios[j, column]
    for d in range(DEGREE + 1):
        out[d] = cell[DEGREE, d]
    for c in range(DEGREE - 1, -1, -1):
        for d in range(DEGREE + 1):
            out[d] = out[d] * x + cell[c, d]
    for d in range(DEGREE + 1):
        out[d] *= share * excess


@inlined
def arrival_in(table: Ratios, j: int) -> Floats:
    """Return the coefficients of u kappa_1(u) in row j."""
    if not table.made[j, COLUMNS]:
        make_cell(table, j, COLUMNS)
    return table.arrivals[j]


@inlined
def value_at(
    table: Ratios, j: int, coefficients: Floats, v: float, power: float
) -> tuple[float, float]:
    """Return a polynomial of row j and its derivative at v.

    Beyond the table's end the function goes on like u^power, before its start like u.
    """
    x = 2.0 * (v - table.lowest) / WIDTH - 2.0 * j - 1.0
    inside = min(max(x, -EDGE), EDGE)
    value, slope = 0.0, 0.0
    for d in range(DEGREE, -1, -1):
        slope = slope * inside + value
        value = value * inside + coefficients[d]
    if x == inside:
        return value, slope * 2.0 / WIDTH
    rate = power if x > inside else 1.0
    value *= math.exp(rate * (x - inside) * 0.5 * WIDTH)
    return value, rate * value


@entry
def tabulated(table: Ratios, sizes: Floats, v: Floats, out: Floats) -> None:
    """Fill out[:, i, k] with r and dr/dv at v[i] and sizes[k]; u kappa_1 comes last of k."""
    coefficients = np.empty(DEGREE + 1)
    for i in range(v.size):
        j = cell_of(table, v[i])
        for k in range(sizes.size):
            ratio_in(table, j, sizes[k], 1.0, coefficients)
            out[0, i, k], out[1, i, k] = value_at(table, j, coefficients, v[i], 0.0)
        last = value_at(table, j, arrival_in(table, j), v[i], table.intensity.discount)
        out[0, i, sizes.size], out[1, i, sizes.size] = last
