"""The Laplace exponent of a Levy intensity that is given as a function.

phi(u) = int (1 - e^{-us}) rho(s) ds, by the trapezoid rule in t = log s. For complex u the path of
s is rotated by half the angle of u, away from it, so that neither e^{-us} nor rho oscillates.
There may be hundreds of thousands of arguments (``priors.expectation``), so phi is expanded in
powers of log u about points a quarter apart, of which a few hundred are ever needed.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.measures.moments import PIECE, Intensity
from bnpstream.priors.base import Floats
from bnpstream.priors.intensity import LogIntensity, log_values

Complex = NDArray[np.complex128]

SPACING = 0.125
"""Distance of the nodes. A strip of half-width pi/4 or more is left about a rotated path: the error
of the trapezoid rule is exp(-pi^2 / (2 SPACING)), 7e-18."""
NATS = 40.0
"""Terms this far below the largest are left out."""
GRID = 0.25
"""Distance of the points of expansion. Singularities are pi/2 away or more (for an NGGP, log u =
log tau +- i pi), so terms fall like (GRID / sqrt 2 / (pi/2))^j."""
TERMS = 14
MIDDLE = 3000
"""MIDDLE * GRID is beyond the logarithm of any double."""


def stirling_numbers(n: int) -> Floats:
    """Return S(i, j) for i, j < n: (x d/dx)^i e^x = e^x sum_j S(i, j) x^j."""
    numbers = np.zeros((n, n))
    numbers[0, 0] = 1.0
    for i in range(1, n):
        numbers[i, 1:] = numbers[i - 1, :-1] + np.arange(1, n) * numbers[i - 1, 1:]
    return numbers


FACTORIALS = np.cumprod([1.0, *range(1, TERMS)])
DERIVATIVES = stirling_numbers(TERMS) / FACTORIALS[:, None]


class LaplaceExponent:
    """phi of one intensity.

    Parameters
    ----------
    log_intensity : callable
        s -> log rho(s).
    rho : Intensity
        Where it ends, and its behaviour at 0.
    """

    def __init__(self, log_intensity: LogIntensity, rho: Intensity) -> None:
        self._log_intensity = log_intensity
        self._rho = rho
        self._row_of = np.full((2 * MIDDLE + 1, 8), -1)
        self._expansions = np.empty((0, TERMS), np.complex128)

    def __call__(self, u: NDArray[Any]) -> Complex:
        """Return phi(u), for u with a positive real part."""
        angle = np.angle(u)
        v = np.log(np.abs(u)) + 1j * np.abs(angle)
        across, up = (np.rint(part / GRID).astype(int) for part in (v.real, v.imag))
        missing = self._row_of[across + MIDDLE, up] < 0
        if missing.any():
            self._expand(np.unique(np.stack([across[missing], up[missing]], axis=-1), axis=0))
        terms = self._expansions[self._row_of[across + MIDDLE, up]]
        away = v - GRID * (across + 1j * up)
        phi: Complex = terms[..., -1]
        for term in range(TERMS - 2, -1, -1):
            phi = phi * away + terms[..., term]
        return np.where(angle < 0.0, np.conj(phi), phi)

    def _expand(self, points: NDArray[np.int_]) -> None:
        """Expand phi about the points GRID (a + i b)."""
        made = len(self._expansions) + np.arange(len(points))
        expansions = [self._expansion(int(a), int(b)) for a, b in points]
        self._expansions = np.concatenate([self._expansions, expansions])
        self._row_of[points[:, 0] + MIDDLE, points[:, 1]] = made

    def _nodes(self, log_size: float, turn: float) -> tuple[Floats, Any, complex]:
        """Return nodes, log(s rho(s)) there, and the log of everything below, divided by u.

        Parameters
        ----------
        log_size : float
            log |u|.
        turn : float
            Angle by which the path is rotated: s = e^{t - i turn}.
        """
        rho = self._rho
        tail = min(rho.first, -log_size - 37.0)
        t = np.arange(tail, rho.first + PIECE * rho.pieces.shape[0], SPACING)
        path: Any = t - 1j * turn if turn else t
        h = rho.log_scale - rho.discount * path
        known = t >= rho.first
        h[known] = log_values(self._log_intensity, path[known])
        counts = h.real > (h.real + np.minimum(log_size + t, 0.0)).max() - NATS
        end = int(np.nonzero(counts)[0][-1]) + 1
        # Below the tail 1 - e^{-us} is us and rho a power: a geometric series.
        rate = 1.0 - rho.discount
        log_rest = rho.log_scale + rate * (path[0] - SPACING) + math.log(SPACING)
        return t[:end], h[:end], complex(log_rest - math.log(-math.expm1(-rate * SPACING)))

    def _expansion(self, a: int, b: int) -> Complex:
        """Return the first terms of phi in powers of log u about GRID (a + i b)."""
        v, turn = GRID * (a + 1j * b), 0.5 * GRID * b
        t, h, log_rest = self._nodes(v.real, turn)
        us = np.exp(np.minimum(v.real + t, 6.5) + 1j * (v.imag - turn))  # e^-(e^6.5) is zero
        weights = SPACING * np.exp(h)
        powers = (-us)[:, None] ** np.arange(TERMS)
        terms: Any = -DERIVATIVES @ ((weights * np.exp(-us)) @ powers)
        terms[0] = -np.expm1(-us) @ weights
        expansion: Complex = terms + np.exp(v + log_rest) / FACTORIALS
        return expansion
