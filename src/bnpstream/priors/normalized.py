"""Normalized random measures, from the Laplace exponent and tilted moments."""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from bnpstream.priors.auxiliary import find_mode, trapezoid_nodes
from bnpstream.priors.base import (
    Floats,
    Prior,
    check_observations,
    conditional_sizes,
    log_normalized,
    odds_of_seated,
)
from bnpstream.priors.expectation import expected_laplace_exponent
from bnpstream.priors.partitions import set_partitions

Complex = NDArray[np.complex128]

FEW_ROWS = 3
"""Up to this many rows, partitions are summed one by one."""


@dataclass(frozen=True, kw_only=True, repr=False)
class NormalizedRandomMeasure(Prior):
    """A normalized homogeneous completely random measure: n_k ~ EPPF(rho).

    With Levy intensity rho(s), phi(u) = int (1 - e^{-us}) rho(s) ds and
    kappa_m(u) = int s^m e^{-us} rho(s) ds,

        p(n_1..n_K) = 1/Gamma(n) int_0^inf u^(n-1) e^{-phi(u)} prod_k kappa_{n_k}(u) du.

    A subclass gives `laplace_exponent`, `log_tilted_moment` and `smallest_mass`; everything else is
    derived here and may be overridden if a closed form exists.

    Parameters
    ----------
    auxiliary : {"mode", "quadrature"}
        The rule for U: a point mass at the mode of log U (the paper), or the exact mean over U.
    """

    auxiliary: Literal["mode", "quadrature"] = "mode"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.auxiliary not in ("mode", "quadrature"):
            raise ValueError(f'auxiliary must be "mode" or "quadrature", got {self.auxiliary!r}')

    @abstractmethod
    def laplace_exponent(self, u: Floats | Complex) -> Any:
        """Return phi(u), for u with a positive real part (complex u: `expected_clusters`)."""

    @abstractmethod
    def log_tilted_moment(self, m: Floats, u: Floats) -> Floats:
        """Return log kappa_m(u), broadcast over m and u; +inf if the integral diverges."""

    def log_auxiliary_joint(self, v: Floats, masses: Floats, occupancy: Floats, n: float) -> Floats:
        """Return the log density of v = log U: n v - phi(u) + sum_k p_k log kappa_{S_k/p_k}(u).

        Parameters
        ----------
        v : ndarray of shape (J,)
            Points at which to evaluate.
        masses, occupancy : ndarray of shape (K,)
            S_k and p_k; whole sizes and ones for a hard partition.
        n : float
            Number of observations.
        """
        u = np.exp(v)
        moments = self.log_tilted_moment(conditional_sizes(masses, occupancy)[:, None], u)
        joint: Floats = n * v - self.laplace_exponent(u) + occupancy @ moments
        return joint

    def auxiliary_score(
        self, v: float, masses: Floats, occupancy: Floats, n: float
    ) -> tuple[float, float]:
        """Return the first two derivatives of `log_auxiliary_joint` at v.

        phi' = kappa_1 and kappa_m' = -kappa_{m+1}, so both follow from tilted moments.
        """
        u = np.exp(np.array([v]))
        sizes = np.append(conditional_sizes(masses, occupancy), 1.0)
        log_moments = [self.log_tilted_moment(sizes + j, u) for j in range(3)]
        first = u * np.exp(log_moments[1] - log_moments[0])
        second = u * u * np.exp(log_moments[2] - log_moments[0])
        new = float(u[0] * np.exp(log_moments[0][-1]))
        g = n - new - float(occupancy @ first[:-1])
        slope = -new * (1.0 - first[-1]) - occupancy @ (first + first**2 - second)[:-1]
        return g, float(slope)

    def solve_auxiliary(self, masses: Floats, log_vacancy: Floats, n: float, start: float) -> float:
        """Return the mode of log U (see `Prior.solve_auxiliary`)."""
        return self._mode(masses, self.occupancy(log_vacancy), n, start)

    def _mode(self, masses: Floats, occupancy: Floats, n: float, start: float) -> float:
        return find_mode(
            lambda v: self.auxiliary_score(v, masses, occupancy, n),
            start if np.isfinite(start) else 0.0,
        )

    def _nodes(
        self, masses: Floats, occupancy: Floats, n: float, mode: float
    ) -> tuple[Floats, Floats]:
        """Return trapezoid nodes of v and their normalised weights under the density of v."""

        def log_density(v: Floats) -> Floats:
            return self.log_auxiliary_joint(v, masses, occupancy, n)

        v = trapezoid_nodes(log_density, mode)
        log_weights = log_density(v)
        return v, np.exp(log_weights - logsumexp(log_weights))

    def _unnormalised(self, masses: Floats, v: Floats, weights: Floats) -> Floats:
        """Return E[u kappa_{S_k+1}/kappa_{S_k}] of each cluster, and E[u kappa_1] last."""
        u = np.exp(v)
        log_moments = self.log_tilted_moment(masses[:, None], u)
        next_moments = self.log_tilted_moment(masses[:, None] + 1.0, u)
        new = self.log_tilted_moment(np.ones(1), u)
        return np.append(
            np.exp(v + next_moments - log_moments) @ weights, np.exp(v + new) @ weights
        )

    def log_weights(
        self, masses: Floats, log_vacancy: Floats, n: float, auxiliary: float
    ) -> Floats:
        """Return the normalised log prior weights, Eq. (23) (see `Prior.log_weights`)."""
        if self.auxiliary == "quadrature":
            v, weights = self._nodes(masses, self.occupancy(log_vacancy), n, auxiliary)
        else:
            v, weights = np.array([auxiliary]), np.ones(1)
        return log_normalized(self._unnormalised(masses, v, weights))

    log_merge_odds = odds_of_seated
    """log kappa_{S_i+S_j} - log kappa_{S_i} - log kappa_{S_j} at u, soft as in q(U)."""

    def log_seated(
        self, masses: Floats, occupancy: Floats, count: float, auxiliary: float
    ) -> Floats:
        """Return p log kappa_{S/p}(u) of each cluster (see `Prior.log_seated`)."""
        sizes, u = conditional_sizes(masses, occupancy), np.exp(np.array([auxiliary]))
        return occupancy * self.log_tilted_moment(sizes, u)

    def _exact_nodes(self, counts: Floats) -> tuple[Floats, Floats]:
        hard = np.ones_like(counts)
        n = float(counts.sum())
        return self._nodes(counts, hard, n, self._mode(counts, hard, n, np.nan))

    def predictive_rule(self, counts: Floats) -> Floats:
        """Return the exact predictive probabilities (see `Prior.predictive_rule`)."""
        counts = np.asarray(counts, dtype=np.float64)
        v, weights = self._exact_nodes(counts)
        return self._unnormalised(counts, v, weights) / float(counts.sum())

    def log_eppf(self, counts: Floats) -> float:
        """Return the log probability of one partition, by quadrature in log u."""
        counts = np.asarray(counts, dtype=np.float64)
        return self._log_integral(counts, np.ones_like(counts), float(counts.sum()))

    def log_partition(self, masses: Floats, log_vacancy: Floats, n: float) -> float:
        """Return `log_eppf` of soft counts: p_k for each cluster (see `Prior.log_partition`)."""
        return self._log_integral(masses, self.occupancy(log_vacancy), n)

    def _log_integral(self, masses: Floats, occupancy: Floats, n: float) -> float:
        """Return the log of 1/Gamma(n) times the integral of `log_auxiliary_joint`."""
        v, _ = self._nodes(masses, occupancy, n, self._mode(masses, occupancy, n, np.nan))
        log_joint = self.log_auxiliary_joint(v, masses, occupancy, n)
        return float(logsumexp(log_joint) + np.log(v[1] - v[0]) - gammaln(n))

    def expected_clusters(self, n: int) -> float:
        """Return E[K_n] = E[phi(U_n)] (see `expected_laplace_exponent`)."""
        check_observations(n)
        if n <= FEW_ROWS:  # the contour integral converges slowly here
            sizes = [np.bincount(labels).astype(np.float64) for labels in set_partitions(n)]
            return float(sum(np.exp(self.log_eppf(counts)) * counts.size for counts in sizes))
        return expected_laplace_exponent(
            self.laplace_exponent,
            lambda u: np.exp(self.log_tilted_moment(np.ones(1), u)),
            n,
        )

    def kernel_parameters(self) -> Any:
        """Return None: the general rule has no compiled twin."""
        return None

    def given_auxiliary(self) -> Self:
        """Return this prior with the rule for a given U and plain counts."""
        change: Any = {"auxiliary": "mode"}
        return dataclasses.replace(super().given_auxiliary(), **change)

    def kernel_parameters_given(self, auxiliary: float) -> Any:
        """Return None: the general rule has no compiled twin."""
        return None

    def auxiliary_log_density(self, counts: Floats) -> Callable[[float], float] | None:
        """Return the log density of log U given whole counts."""
        hard, n = np.ones_like(counts), float(counts.sum())
        counts = counts.copy()
        return lambda v: float(self.log_auxiliary_joint(np.array([v]), counts, hard, n)[0])
