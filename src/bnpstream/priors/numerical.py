"""A normalized random measure known only by its Levy intensity."""

from dataclasses import dataclass
from functools import lru_cache
from threading import get_ident
from typing import Any

import numpy as np

from bnpstream.kernels.measures.moments import log_moments
from bnpstream.kernels.measures.numerical import NumericalParameters
from bnpstream.kernels.measures.ratios import BELOW, Ratios, tabulated
from bnpstream.priors.base import Floats, check_positive, conditional_sizes
from bnpstream.priors.intensity import LogIntensity, tables_of
from bnpstream.priors.laplace import LaplaceExponent
from bnpstream.priors.normalized import Complex, NormalizedRandomMeasure

FARTHEST_UNIT = 10.0
"""phi(u) = 1 at u = e^10 and sigma = 0, a = .1: log T reaches down to -27 / a."""


@lru_cache(maxsize=32)
def _exponent_of(log_intensity: LogIntensity, thread: int) -> LaplaceExponent:
    return LaplaceExponent(log_intensity, tables_of(log_intensity, thread).intensity)


@dataclass(frozen=True, repr=False)
class NumericalMeasure(NormalizedRandomMeasure):
    """Any normalized random measure, from its Levy intensity a rho(s) on s > 0.

    phi and kappa_m are computed by quadrature in log s. The ratios that a pass needs,
    u kappa_1(u) and u kappa_{m+1}(u) / kappa_m(u), are tabulated on demand, once for all priors
    with the same function (``bnpstream.kernels.measures.ratios``).

    Parameters
    ----------
    log_intensity : callable
        s -> log rho(s), for an array of s from 1e-130 to 1e130. rho must be smooth in log s, behave
        like a power s^(-1-sigma) with sigma in [0, 1) as s goes to 0, and fall off as s grows. -inf
        means zero. `expected_clusters` also evaluates it at complex s within 45 degrees of the
        axis, which ``np.log`` and ``np.exp`` accept.
    concentration : float
        a > 0; larger values give more clusters.
    auxiliary : {"mode", "quadrature"}
        See `NormalizedRandomMeasure`. The compiled engine has only the mode.
    cluster_count : {"expected", "plain"}
        See `Prior`.

    Examples
    --------
    The generalized Dirichlet process of Lijoi, Mena and Pruenster (2005), rho(s) = sum_{l <= 3}
    e^{-ls} / s, and the Dirichlet process that its first term alone would be:

    >>> import numpy as np
    >>> from bnpstream import NumericalMeasure, dirichlet_process
    >>> def log_intensity(s):
    ...     return -s + np.log(1 + np.exp(-s) + np.exp(-2 * s)) - np.log(s)
    >>> NumericalMeasure(log_intensity).predictive_rule([3.0, 1.0]).round(3)
    array([0.45 , 0.141, 0.409])
    >>> dirichlet_process(1.0).predictive_rule([3.0, 1.0])
    array([0.6, 0.2, 0.2])
    """

    log_intensity: LogIntensity
    concentration: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.log_intensity):
            raise TypeError(
                f"log_intensity must be a function of s, got {self.log_intensity!r}; for a "
                "generalized gamma process, use GeneralizedGamma"
            )
        check_positive("concentration (a)", self.concentration)
        self._tables()

    def _tables(self) -> Ratios:
        return tables_of(self.log_intensity, get_ident())

    @property
    def smallest_mass(self) -> float:
        """Return sigma: rho behaves like s^(-1-sigma) at 0, and kappa_m diverges for m <= sigma."""
        return self._tables().intensity.discount

    def laplace_exponent(self, u: Floats | Complex) -> Any:
        """Return phi(u), by quadrature."""
        phi = self.concentration * _exponent_of(self.log_intensity, get_ident())(np.asarray(u))
        return phi if np.iscomplexobj(u) else phi.real

    def log_tilted_moment(self, m: Floats, u: Floats) -> Floats:
        """Return log kappa_m(u), by quadrature; +inf for m <= sigma."""
        m, v = np.broadcast_arrays(np.asarray(m, float), np.log(np.asarray(u, float)))
        out = np.empty(m.shape)
        log_moments(self._tables().intensity, m.ravel(), v.ravel(), out.reshape(-1))
        out += np.log(self.concentration)
        return out

    def _log_concentration_range(self) -> tuple[float, float]:
        """Return the range in which log u with phi(u) = 1 is near the center of the tables."""
        center = self._tables().lowest + BELOW
        ends = np.exp([center + FARTHEST_UNIT, center - FARTHEST_UNIT])
        least, most = np.log(self.concentration / self.laplace_exponent(ends))
        low, high = super()._log_concentration_range()
        return max(low, float(least)), min(high, float(most))

    def _ratios(self, sizes: Floats, v: Floats) -> Floats:
        """Return u kappa_{m+1}/kappa_m and its derivative in v, from the tables, u kappa_1 last."""
        out = np.empty((2, v.size, sizes.size + 1))
        tabulated(self._tables(), np.ascontiguousarray(sizes), np.ascontiguousarray(v), out)
        out[..., -1] *= self.concentration
        return out

    def auxiliary_score(
        self, v: float, masses: Floats, occupancy: Floats, n: float
    ) -> tuple[float, float]:
        """Return n - a u kappa_1 - sum_k p_k u kappa_{m+1}/kappa_m, m = S_k/p_k; its derivative."""
        sizes = conditional_sizes(masses, occupancy)
        first, slopes = self._ratios(sizes, np.array([v]))[:, 0]
        shares = np.append(occupancy, 1.0)
        return n - float(shares @ first), -float(shares @ slopes)

    def _mode(self, masses: Floats, occupancy: Floats, n: float, start: float) -> float:
        first = start if np.isfinite(start) else self._tables().lowest + BELOW
        return super()._mode(masses, occupancy, n, first)

    def _unnormalised(self, masses: Floats, v: Floats, weights: Floats) -> Floats:
        """Return E[u kappa_{S_k+1}/kappa_{S_k}] of each cluster, and E[u kappa_1] last."""
        expected: Floats = weights @ self._ratios(masses, v)[0]
        return expected

    def _exact_nodes(self, counts: Floats) -> tuple[Floats, Floats]:
        return _nodes_of(self, tuple(counts.tolist()))

    def kernel_parameters(self) -> NumericalParameters | None:
        """Return the parameters of the compiled rule at the mode; None for the integral."""
        if self.auxiliary == "quadrature":
            return None
        return NumericalParameters(
            self._tables(), float(self.concentration), self.cluster_count == "plain"
        )


@lru_cache(maxsize=256)
def _nodes_of(measure: NumericalMeasure, counts: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return `_exact_nodes`, cached: drawing partitions needs a few sizes many times."""
    return NormalizedRandomMeasure._exact_nodes(measure, np.array(counts))
