"""A Levy intensity given as a function: validation, interpolation, and phi."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from bnpstream.kernels.measures.moments import (
    PIECE,
    PIECE_DEGREE,
    Intensity,
    chebyshev_nodes,
    log_moments,
)
from bnpstream.kernels.measures.ratios import Ratios, empty_tables
from bnpstream.priors.base import Floats

LogIntensity = Callable[[Any], Any]

FARTHEST = 300.0
"""Largest |log s| at which an intensity is evaluated: s^-2 is still a double there."""
STRAIGHT = 1e-12
"""An intensity this close to a power of s, relatively, is taken to be one."""
NEGLIGIBLE = -37.0


def log_values(log_intensity: LogIntensity, t: Any) -> Any:
    """Return h(t) = log(s rho(s)) at t = log s, real or complex."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):  # rho is zero far out
        values = np.asarray(log_intensity(np.exp(t)))
    if values.shape != t.shape:
        raise ValueError(
            f"log_intensity must give a number for each s of an array; for {t.shape} it gives "
            f"{values.shape}; write it with NumPy's functions"
        )
    return values + t


def power_at_zero(log_intensity: LogIntensity) -> tuple[float, float, float]:
    """Return sigma, c and t: below t, log(s rho(s)) is c - sigma t."""
    edges = PIECE * np.arange(round(-FARTHEST / PIECE), 1)
    h = log_values(log_intensity, edges)
    if not np.isfinite(h[: edges.size // 2]).all():
        raise ValueError(
            f"log_intensity must be finite for small s, it is {h[0] - edges[0]} at "
            f"s = {math.exp(edges[0]):.1g}; take logarithms term by term"
        )
    step = round(10.0 / PIECE)
    sigma, nearer = (h[i] - h[i + step] for i in (0, 2 * step))
    sigma, nearer = sigma / 10.0, nearer / 10.0
    if abs(sigma - nearer) > 1e-9:
        raise ValueError(
            "log_intensity must go like -(1 + sigma) log s as s goes to 0; at "
            f"s = {math.exp(edges[0]):.1g} sigma is {sigma:.6g}, at "
            f"s = {math.exp(edges[2 * step]):.1g} it is {nearer:.6g}; make rho a pure "
            "power of s near 0"
        )
    sigma = float(np.round(sigma, 12)) + 0.0
    if not 0.0 <= sigma < 1.0:
        raise ValueError(
            "log_intensity must go like -(1 + sigma) log s as s goes to 0 with sigma in [0, 1), "
            f"got sigma = {sigma:.6g}: "
            + ("there would be finitely many atoms" if sigma < 0 else "their sum would be infinite")
        )
    log_scale = float(np.median(h[:step] + sigma * edges[:step]))
    bent = np.abs(h + sigma * edges - log_scale) > STRAIGHT
    end = int(np.argmax(bent)) if bent.any() else edges.size
    return sigma, log_scale, float(edges[max(end - 2, 0)])  # a piece earlier: corners show


def fit_pieces(log_intensity: LogIntensity, first: float) -> Floats:
    """Return the coefficients of log(s rho(s)) from t = first to where rho ends."""
    nodes = chebyshev_nodes(PIECE_DEGREE)
    count = round((FARTHEST - first) / PIECE)
    t = first + PIECE * (np.arange(count)[:, None] + 0.5 + 0.5 * nodes)
    h = log_values(log_intensity, t)
    if np.isnan(h).any() or (h == np.inf).any():
        s = float(np.exp(t[np.isnan(h) | (h == np.inf)][0]))
        raise ValueError(
            f"log_intensity must be a number or -inf for every s > 0, but is not at s = {s:.6g}"
        )
    if h[-1].max() > h.max() + NEGLIGIBLE:
        raise ValueError(
            "log_intensity must fall off faster than -1.13 log s as s grows, or the total mass is "
            f"infinite; at s = {math.exp(FARTHEST):.1g} it is {h[-1, 0] - t[-1, 0]:.6g}; add a "
            "tilt -tau s"
        )
    ended = ~np.isfinite(h).all(axis=1)
    if ended.any():
        h = h[: int(np.argmax(ended))]
    pieces: Floats = h @ np.linalg.inv(np.vander(nodes, increasing=True)).T
    check_smooth(pieces, first)
    return pieces


def check_smooth(pieces: Floats, first: float) -> None:
    """Raise ValueError where neighbouring pieces differ in value or slope."""
    powers = np.arange(PIECE_DEGREE + 1)
    relevant = pieces[1:, 0] > pieces[:, 0].max() + NEGLIGIBLE
    for factors, tolerance in ((np.ones_like(powers), 1e-9), (powers, 1e-6)):
        signs = (-1.0) ** (powers + factors[0] + 1)
        ends, starts = (pieces * factors).sum(axis=1), (pieces * factors) @ signs
        apart = np.abs(ends[:-1] - starts[1:]) > tolerance * (1.0 + np.abs(starts[1:]))
        if (apart & relevant).any():
            s = math.exp(first + PIECE * (int(np.argmax(apart & relevant)) + 1))
            raise ValueError(
                f"log_intensity must be smooth in log s, but is not near s = {s:.6g}: there is a "
                "jump, a corner, or a change within less than a tenth of log s"
            )


@lru_cache(maxsize=32)
def tables_of(log_intensity: LogIntensity, thread: int) -> Ratios:
    """Return the tables of an intensity, one set per thread; cells are filled in place."""
    sigma, log_scale, first = power_at_zero(log_intensity)
    rho = Intensity(sigma, log_scale, first, fit_pieces(log_intensity, first))
    return empty_tables(rho, center_of(rho))


def center_of(rho: Intensity) -> float:
    """Return log u at which rho itself falls off as strongly as e^{-us}.

    For an NGGP that is log tau. If rho falls off like a power, it is where u kappa_1(u) is one.
    """

    def log_kappa(m: float, v: float) -> float:
        out = np.empty(1)
        log_moments(rho, np.array([m]), np.array([v]), out)
        return float(out[0])

    def excess(v: float) -> float:
        return v + log_kappa(2.0, v) - log_kappa(1.0, v) - math.log(0.5 * (1.0 - rho.discount))

    def arrivals(v: float) -> float:
        return v + log_kappa(1.0, v)

    lowest, highest = -0.8 * FARTHEST, 0.8 * FARTHEST
    for sought in (excess, arrivals):
        if sought(lowest) < 0.0 < sought(highest):
            return float(brentq(sought, lowest, highest, xtol=1e-3))
    raise ValueError(
        "log_intensity lives on a scale of s outside 1e-100 to 1e100; multiply s by a constant"
    )
