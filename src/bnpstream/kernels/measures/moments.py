"""Tilted moments of a Levy intensity that is known by its values only, by quadrature.

With t = log s, v = log u and h(t) = log(s rho(s)),

    kappa_m(u) = int e^{E(t)} dt,    E(t) = m t - e^{v+t} + h(t),

an integral over the whole axis of a function that falls off at both ends, for which the trapezoid
rule converges geometrically. h is kept as polynomials, a piece an interval of t. Below the first
it is log_scale - discount t, so that the sum over all nodes down there is a geometric series.
"""

import math
from typing import NamedTuple

import numpy as np

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.jit.decorators import entry, inlined, inner

PIECE = 0.0625
"""Length of an interval of t on which log(s rho(s)) is one polynomial of degree PIECE_DEGREE."""
PIECE_DEGREE = 7
SPACING = 0.2
"""Of nodes: the error of the trapezoid rule, |Gamma(m + 2 pi i / spacing)| / Gamma(m) for a power
of s, is below 1e-13 at the smaller of this and half a standard deviation."""
SCAN = 1.0
"""Step of the search for the largest E. It is then found by bisection."""
LINEAR = 18.4
"""Where us is below e^-18.4 = 1e-8, e^{-us} is 1 - us."""
NATS = 40.0
"""What lies farther below the peak is left out."""


def chebyshev_nodes(degree: int) -> Floats:
    """Return the degree + 1 nodes on (-1, 1)."""
    nodes: Floats = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    return nodes


class Intensity(NamedTuple):
    """A Levy intensity."""

    discount: float
    """sigma: rho(s) ~ e^log_scale s^(-1-sigma) as s -> 0."""
    log_scale: float
    first: float
    """t where the first piece begins."""
    pieces: Floats
    """(P, PIECE_DEGREE + 1): coefficients of h in powers of the place in a piece, from -1 to 1.
    Beyond the last piece rho is zero."""


@inlined
def log_density(rho: Intensity, t: float) -> float:
    """Return h(t) = log(s rho(s))."""
    place = (t - rho.first) / PIECE
    if place < 0.0:
        return rho.log_scale - rho.discount * t
    if place >= rho.pieces.shape[0]:
        return -np.inf
    piece = np.int64(place)
    x, value = 2.0 * (place - piece) - 1.0, 0.0
    for d in range(PIECE_DEGREE, -1, -1):
        value = value * x + rho.pieces[piece, d]
    return value


@inner
def slope_at(rho: Intensity, m: float, v: float, t: float) -> float:
    """Return E'(t) = m - us + h'(t)."""
    place = (t - rho.first) / PIECE
    if place < 0.0:
        return m - rho.discount - math.exp(v + t)
    if place >= rho.pieces.shape[0]:
        return -np.inf
    piece = np.int64(place)
    x, value = 2.0 * (place - piece) - 1.0, 0.0
    for d in range(PIECE_DEGREE, 0, -1):
        value = value * x + d * rho.pieces[piece, d]
    return m - math.exp(v + t) + value * 2.0 / PIECE


@inner
def peak_of(rho: Intensity, m: float, v: float, tail: float) -> float:
    """Return t where E is largest: of points SCAN apart the best, then a root of E' beside it."""
    end = rho.first + PIECE * rho.pieces.shape[0]
    end = max(min(end, math.log(m + 1.0) - v + 8.0), tail + 2.0 * SCAN)
    best, most, steps = tail, -np.inf, int((end - tail) / SCAN) + 1
    for i in range(steps):
        t = tail + i * SCAN
        value = m * t - math.exp(v + t) + log_density(rho, t)
        if value > most:
            best, most = t, value
    low, high = best - SCAN, best + SCAN
    near = 0.05 / math.sqrt(m + 1.0)
    while high - low > near:
        middle = 0.5 * (low + high)
        if slope_at(rho, m, v, middle) > 0.0:
            low = middle
        else:
            high = middle
    return low


@inner
def moment(rho: Intensity, m: float, v: float) -> tuple[float, float]:
    """Return log kappa_m(u) and r_m(u) = u kappa_{m+1}(u) / kappa_m(u), for m > discount."""
    tail = min(rho.first, -v - LINEAR)
    peak = peak_of(rho, m, v, tail)
    us, top, near = math.exp(v + peak), log_density(rho, peak), 1e-3
    bend = slope_at(rho, m, v, peak - near) - slope_at(rho, m, v, peak + near)
    bend = max(bend / (2.0 * near), us) if math.isfinite(bend) else us
    spacing = min(SPACING, 0.5 / math.sqrt(bend))
    mass, mean = 0.0, 0.0
    for direction in (-1, 1):
        i = 0 if direction == 1 else -1
        while True:
            away = i * spacing
            t, grown = peak + away, math.expm1(away)
            value = m * away - us * grown + (log_density(rho, t) - top)
            if value < -NATS:
                break
            weight = math.exp(value)
            if t < tail:  # the sum over this node and all below: two geometric series
                rate = m - rho.discount
                small = us * (1.0 + grown)
                mass += weight * (1.0 + small) / -math.expm1(-rate * spacing)
                mass -= weight * small / -math.expm1(-(rate + 1.0) * spacing)
                mean += weight * (1.0 + grown) / -math.expm1(-(rate + 1.0) * spacing)
                break
            mass += weight
            mean += weight * (1.0 + grown)
            i += direction
    log_moment = math.log(spacing * mass) + m * peak - us + top
    return log_moment, us * mean / mass


@entry
def log_moments(rho: Intensity, sizes: Floats, v: Floats, out: Floats) -> None:
    """Fill out[i] with log kappa at sizes[i] and v[i], +inf up to the discount."""
    for i in range(sizes.size):
        out[i] = np.inf
        if sizes[i] > rho.discount:
            out[i] = moment(rho, sizes[i], v[i])[0]
