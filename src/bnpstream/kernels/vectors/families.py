"""Families of vectors with a latent scale per row (twins: ``bnpstream.likelihoods``).

A cluster is a row of statistics: N_g, how many of its rows have scale g, and V, the sum of their
vectors times the scale. Scores need of it eta = base + V: its squared length, its product with the
row, and a precision that is linear in N.
"""

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.jit.decorators import inner
from bnpstream.kernels.jit.dispatch import specialize
from bnpstream.kernels.vectors.bessel import (
    LANES,
    LEAST_ORDER,
    fill_tails,
    log_c_fall,
    mean_length,
)

LOG_2PI = math.log(2.0 * math.pi)
SCALES = 8
"""G: scales that a row may have."""
WORK = SCALES + 2 * LANES
"""Numbers that `fill_pairs` works with."""


class Directions(NamedTuple):
    """Von Mises-Fisher rows: x ~ vMF(theta, kappa_g), theta ~ vMF(base)."""

    base: Floats
    """(D,): lambda_0 m_0."""
    centre: Floats
    """(D,): what is subtracted from rows: nothing."""
    grid: Floats
    """(G,): kappa_g."""
    constants: Floats
    """(G,): log pi_g + log c(kappa_g)."""
    precision: float
    """0: lengths alone count."""
    order: float
    """D/2 - 1."""
    lean: float = 0.0
    """Of bounds."""
    least: float = 0.0
    """Of bounds: smaller products are taken for this one."""


class Scales(NamedTuple):
    """Gaussian rows: x ~ N(mu, I / lambda_g), mu ~ N(centre, I / precision)."""

    base: Floats
    """(D,): zero."""
    centre: Floats
    grid: Floats
    """(G,): lambda_g."""
    constants: Floats
    """(G,): log pi_g."""
    precision: float
    columns: float
    """D."""
    lean: float = 0.5
    """Of bounds."""
    least: float = -np.inf
    """Of bounds: smaller products are taken for this one."""


@singledispatch
def fill_pairs(
    family: Any, squares: float, precision: float, dot: float, square: float, out: Any
) -> None:
    """Fill out[g] with log p(x, g | cluster); out has room for `WORK` numbers.

    Given |eta|^2 and precision of the cluster, eta . x, and |x|^2.
    """
    raise TypeError(f"no compiled scores for parameters of type {type(family).__name__}")


@specialize(fill_pairs, Directions)
def _of_directions(family, squares, precision, dot, square, out):  # type: ignore[no-untyped-def]
    """Take `log_c_fall` of all scales at a time, to the same bits."""
    top = family.order
    if top < LEAST_ORDER:
        for g in range(SCALES):
            kappa = family.grid[g]
            fall = log_c_fall(top, squares, kappa * (kappa * square + 2.0 * dot))
            out[g] = family.constants[g] + fall
        return
    s, roots, tails = np.sqrt(top * top + squares), out[SCALES:-LANES], out[-LANES:]
    for g in range(SCALES):
        kappa = family.grid[g]
        more = kappa * (kappa * square + 2.0 * dot)
        roots[g] = np.sqrt(top * top + max(squares + more, 0.0))
        out[g] = more / (s + roots[g])
    for g in range(SCALES, LANES):
        roots[g] = s
    fill_tails(top, roots, tails)
    for g in range(SCALES):
        longer = out[g]
        found = longer - top * np.log1p(longer / (top + s)) - 0.5 * np.log1p(longer / s)
        out[g] = family.constants[g] + (found + tails[g] - tails[SCALES])


@specialize(fill_pairs, Scales)
def _of_scales(family, squares, precision, dot, square, out):  # type: ignore[no-untyped-def]
    apart = max(square - (2.0 * dot - squares / precision) / precision, 0.0)
    for g in range(SCALES):
        variance = 1.0 / precision + 1.0 / family.grid[g]
        log_density = family.columns * (LOG_2PI + math.log(variance)) + apart / variance
        out[g] = family.constants[g] - 0.5 * log_density


TANGENTS = 2
FEW = 3
"""Terms of Debye's expansion for bounds. At s >= 31 the slope is right to 4e-7, and so the bound to
4e-7 kappa; kappa <= 8 floor D, and s >= D/2 for more columns: below a hundredth of a nat."""
LONGER = 1.21
"""By what |eta|^2 may have grown since lines were made."""
AT = (0.15, 0.6)
"""Cosines at which scores are touched by their tangents: those of rows outside and inside."""


@singledispatch
def fill_tangents(
    family: Any, squares: float, precision: float, constants: Any, slopes: Any
) -> None:
    """Fill lines that log p(x, g | cluster) is not above, `TANGENTS` for every g.

    It is concave in eta . x - lean precision |x|^2, in which the lines are: constants + slopes y.
    """
    raise TypeError(f"no compiled scores for parameters of type {type(family).__name__}")


@singledispatch
def still_bound(family: Any, made: float, squares: float) -> bool:
    """Return whether lines that were made for another |eta|^2 bound scores closely enough."""
    raise TypeError(f"no compiled scores for parameters of type {type(family).__name__}")


@specialize(still_bound, Directions, inline=True)
def _still_bound_directions(family, made, squares):  # type: ignore[no-untyped-def]
    """Say so where clusters became longer: at a product that is not negative, scores only fall.

    With h(r^2) = -log c(r), a score is h(r^2 + m) - h(r^2) and a constant, m = kappa^2 + 2 kappa y;
    h is concave, as its slope is A(r) / (2 r), which falls with r.
    """
    return made <= squares <= LONGER * made


@specialize(still_bound, Scales, inline=True)
def _still_bound_scales(family, made, squares):  # type: ignore[no-untyped-def]
    return False


@specialize(fill_tangents, Directions)
def _touch_directions(  # type: ignore[no-untyped-def]
    family, squares, precision, constants, slopes
):
    """Touch scores: the slope in eta . x is kappa A(r') / r', and A(r) / r falls with r."""
    r = math.sqrt(squares)
    for t in range(TANGENTS):
        dot = AT[t] * r
        for g in range(SCALES):
            kappa = family.grid[g]
            more = kappa * (kappa + 2.0 * dot)
            slope = kappa * mean_length(family.order, squares + more, FEW)
            fall = log_c_fall(family.order, squares, more, FEW)
            at = TANGENTS * g + t
            constants[at] = family.constants[g] + fall - slope * dot
            slopes[at] = slope


@specialize(fill_tangents, Scales)
def _touch_scales(  # type: ignore[no-untyped-def]
    family, squares, precision, constants, slopes
):
    """Give the scores themselves, which are lines."""
    for g in range(SCALES):
        variance = 1.0 / precision + 1.0 / family.grid[g]
        log_density = family.columns * (LOG_2PI + math.log(variance))
        log_density += squares / (precision * precision * variance)
        for t in range(TANGENTS):
            at = TANGENTS * g + t
            constants[at] = family.constants[g] - 0.5 * log_density
            slopes[at] = 1.0 / (precision * variance)


LEVELS = 2
COSINES, DISTANCES = (0.25, 0.5), (2.0, 1.2)
"""Where levels are: cosines, and squared distances relative to those of the widest rows."""


@singledispatch
def level_of(family: Any, squares: float, precision: float, t: int) -> float:
    """Return what eta . x - lean precision |x|^2 is at level t of a cluster, ascending."""
    raise TypeError(f"no compiled scores for parameters of type {type(family).__name__}")


@specialize(level_of, Directions)
def _level_of_directions(family, squares, precision, t):  # type: ignore[no-untyped-def]
    return COSINES[t] * math.sqrt(squares)


@specialize(level_of, Scales)
def _level_of_scales(family, squares, precision, t):  # type: ignore[no-untyped-def]
    apart = DISTANCES[t] * family.columns * (1.0 / precision + 1.0 / family.grid[0])
    return 0.5 * (squares / precision - precision * apart)


@inner
def log_sum(pairs: Any, n: int) -> float:
    """Return log sum_g exp of the first n numbers."""
    best = pairs[0]
    for g in range(1, n):
        best = max(best, pairs[g])
    total = 0.0
    for g in range(n):
        total += math.exp(pairs[g] - best)
    return best + math.log(total)
