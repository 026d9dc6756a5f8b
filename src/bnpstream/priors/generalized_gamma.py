"""The normalized generalized gamma process (NGGP) and its well-known special cases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, expit, gammaln

from bnpstream.kernels.measures.rules import (
    GENERALIZED_GAMMA,
    GIVEN,
    LARGE_TERMS,
    DiscountParameters,
    enclosed_mode,
)
from bnpstream.priors.auxiliary import find_mode
from bnpstream.priors.base import (
    TINY_DISCOUNT,
    Floats,
    check_discount,
    check_observations,
    check_positive,
    conditional_sizes,
    discounted_log_weights,
)
from bnpstream.priors.normalized import Complex, NormalizedRandomMeasure
from bnpstream.priors.pitman_yor import PitmanYor
from bnpstream.priors.registry import name, register

LARGEST_RATE = 440.0
"""exp(-440) is the smallest tilt whose square is a double."""


@register
@dataclass(frozen=True, repr=False)
class GeneralizedGamma(NormalizedRandomMeasure):
    """Normalized generalized gamma process, rho(s) = a/Gamma(1-sigma) s^(-sigma-1) e^(-tau s).

    phi(u) = (a/sigma) ((u+tau)^sigma - tau^sigma),
    kappa_m(u) = a Gamma(m-sigma)/Gamma(1-sigma) (u+tau)^(sigma-m).

    Only a tau^sigma matters: (a, tau) and (a c^-sigma, c tau) are the same prior.

    Parameters
    ----------
    concentration : float
        a > 0; larger values give more clusters.
    discount : float
        sigma in [0, 1). The number of clusters grows like n^sigma (like log n at 0).
    tilt : float
        tau >= 0; not both sigma = 0 and tau = 0.
    auxiliary : {"mode", "quadrature"}
        See `NormalizedRandomMeasure`.
    cluster_count : {"expected", "plain"}
        See `Prior`.
    learn : tuple of str
        See `Prior.learning`.

    Examples
    --------
    >>> from bnpstream import GeneralizedGamma
    >>> prior = GeneralizedGamma(concentration=1.0, discount=0.5, tilt=1.0)
    >>> prior.predictive_rule([3.0, 1.0]).round(3)
    array([0.466, 0.093, 0.441])
    """

    concentration: float
    discount: float
    tilt: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("concentration (a)", self.concentration)
        check_discount(self.discount)
        if not (np.isfinite(self.tilt) and self.tilt >= 0.0):
            raise ValueError(f"tilt (tau) must be a finite number >= 0, got {self.tilt!r}")
        if self.discount == 0.0 and self.tilt == 0.0:
            raise ValueError("discount (sigma) and tilt (tau) cannot both be 0; give one of them")

    @property
    def smallest_mass(self) -> float:
        """Return sigma: existing weights are max(S_k - sigma, 0)."""
        return self.discount

    def laplace_exponent(self, u: Floats | Complex) -> Any:
        """Return phi(u)."""
        a, sigma, tau = self.concentration, self.discount, self.tilt
        if sigma == 0.0:
            return a * np.log1p(u / tau)
        if tau == 0.0:
            return a / sigma * u**sigma
        # expm1 keeps phi(u) exact for small u/tau and small sigma.
        return a / sigma * tau**sigma * np.expm1(sigma * np.log1p(u / tau))

    def log_tilted_moment(self, m: Floats, u: Floats) -> Floats:
        """Return log kappa_m(u); +inf for m <= sigma, where the integral diverges."""
        m = np.asarray(m, dtype=np.float64)
        sigma = self.discount
        log_gammas = np.where(
            m > sigma, gammaln(np.maximum(m - sigma, 1e-300)) - gammaln(1.0 - sigma), np.inf
        )
        result: Floats = (
            np.log(self.concentration) + log_gammas + (sigma - m) * np.log(u + self.tilt)
        )
        return result

    def log_auxiliary_joint(self, v: Floats, masses: Floats, occupancy: Floats, n: float) -> Floats:
        """Return n v + (sigma K - n) log(u+tau) - phi(u) and the terms without u."""
        a, sigma, tau = self.concentration, self.discount, self.tilt
        sizes = conditional_sizes(masses, occupancy)
        gammas = gammaln(sizes - sigma) - gammaln(1.0 - sigma)
        constant = occupancy @ (np.log(a) + gammas)
        joint: Floats
        if tau > 0.0 and max(n, a * tau**sigma) > LARGE_TERMS:
            # With log(u/(u+tau)) and log(1 + u/tau) nothing cancels.
            gap = v - np.log(tau)
            grown = np.logaddexp(0.0, gap)
            joint = sigma * occupancy.sum() * (np.log(tau) + grown) - n * np.logaddexp(0.0, -gap)
            phi = a / sigma * tau**sigma * np.expm1(sigma * grown) if sigma > 0.0 else a * grown
            joint += constant - phi
            return joint
        log_shifted = self._shares(v)[2]
        power = sigma * occupancy.sum() - n
        joint = n * v + power * log_shifted - self._exponent(log_shifted) + constant
        return joint

    def _exponent(self, log_shifted: Floats) -> Floats:
        """Return phi from log(u + tau)."""
        a, sigma, tau = self.concentration, self.discount, self.tilt
        if sigma == 0.0:
            return a * (log_shifted - float(np.log(tau)))
        if tau == 0.0:
            return a / sigma * np.exp(sigma * log_shifted)
        # expm1: for small sigma the two powers are nearly equal.
        exponent: Floats = a / sigma * tau**sigma * np.expm1(sigma * (log_shifted - np.log(tau)))
        return exponent

    def log_seated(
        self, masses: Floats, occupancy: Floats, count: float, auxiliary: float
    ) -> Floats:
        """Return p log kappa_{S/p}(u) of each cluster, from log u (see `Prior.log_seated`)."""
        sizes, sigma = conditional_sizes(masses, occupancy), self.discount
        log_gammas: Floats = gammaln(sizes - sigma) - gammaln(1.0 - sigma)
        log_moments = float(np.log(self.concentration)) + log_gammas
        log_shifted = self._shares(np.array([auxiliary]))[2]
        return occupancy * (log_moments + (sigma - sizes) * log_shifted)

    def _shares(self, v: Floats) -> tuple[Floats, Floats, Floats]:
        """Return s = u/(u+tau), 1 - s and log(u+tau) at v = log u."""
        if self.tilt == 0.0:
            return np.ones_like(v), np.zeros_like(v), v
        gap = v - np.log(self.tilt)
        return expit(gap), expit(-gap), np.logaddexp(v, np.log(self.tilt))

    def auxiliary_score(
        self, v: float, masses: Floats, occupancy: Floats, n: float
    ) -> tuple[float, float]:
        """Return g = n (1-s) + sigma K s - a s (u+tau)^sigma and its derivative."""
        sigma, count = self.discount, float(occupancy.sum())
        s, t, log_shifted = self._shares(np.float64(v))  # type: ignore[arg-type]
        rate = self.concentration * np.exp(sigma * log_shifted)
        g = n * t + sigma * count * s - rate * s
        slope = s * t * (sigma * count - n - rate) - sigma * rate * s * s
        return float(g), float(slope)

    def _mode(self, masses: Floats, occupancy: Floats, n: float, start: float) -> float:
        a, sigma, tau = self.concentration, self.discount, self.tilt
        if sigma == 0.0:
            return float(np.log(n * tau / a))
        if tau == 0.0:
            return float(np.log(sigma * occupancy.sum() / a) / sigma)
        first = start if np.isfinite(start) else float(np.log(tau))
        return find_mode(
            lambda v: self.auxiliary_score(v, masses, occupancy, n),
            first,
            enclosed_mode(a, sigma, tau, n, float(occupancy.sum())),
        )

    def log_weights(
        self, masses: Floats, log_vacancy: Floats, n: float, auxiliary: float
    ) -> Floats:
        """Return the normalised log prior weights: max(S_k - sigma, 0) and a (u+tau)^sigma."""
        if self.discount == 0.0:
            new = self.concentration
        elif self.auxiliary == "quadrature":
            v, weights = self._nodes(masses, self.occupancy(log_vacancy), n, auxiliary)
            old_rate, new_rate = self._rates(v, weights)
            new = new_rate / old_rate
        else:
            log_shifted = self._shares(np.array([auxiliary]))[2]
            new = float(self.concentration * np.exp(self.discount * log_shifted[0]))
        return discounted_log_weights(masses, self.discount, new)

    def _rates(self, v: Floats, weights: Floats) -> tuple[float, float]:
        """Return E[s] and a E[s (u+tau)^sigma]: per S_k - sigma, and for the new cluster."""
        s, _, log_shifted = self._shares(v)
        growth = np.exp(self.discount * log_shifted)
        return float(weights @ s), float(self.concentration * (weights @ (s * growth)))

    def predictive_rule(self, counts: Floats) -> Floats:
        """Return the exact predictive probabilities, which depend only on n, K and n_k."""
        counts = np.asarray(counts, dtype=np.float64)
        if self.discount == 0.0:
            weights: Floats = np.append(counts, self.concentration)
            return weights / float(weights.sum())
        if self.tilt == 0.0:
            return PitmanYor(0.0, self.discount).predictive_rule(counts)
        old_rate, new_rate = self._rates(*self._exact_nodes(counts))
        return np.append((counts - self.discount) * old_rate, new_rate) / float(counts.sum())

    def log_eppf(self, counts: Floats) -> float:
        """Return the log probability of one partition; in closed form for sigma = 0 or tau = 0."""
        counts = np.asarray(counts, dtype=np.float64)
        if self.discount > 0.0 and self.tilt == 0.0:
            return PitmanYor(0.0, self.discount).log_eppf(counts)
        if self.discount > 0.0:
            return super().log_eppf(counts)
        a = self.concentration
        tables = counts.size * np.log(a) + gammaln(counts).sum()
        return float(tables + gammaln(a) - gammaln(a + counts.sum()))

    def log_partition(self, masses: Floats, log_vacancy: Floats, n: float) -> float:
        """Return `log_eppf` of soft counts; in closed form for sigma = 0."""
        if self.discount > 0.0:
            return super().log_partition(masses, log_vacancy, n)
        a, occupancy = self.concentration, self.occupancy(log_vacancy)
        tables = occupancy @ (np.log(a) + gammaln(conditional_sizes(masses, occupancy)))
        return float(tables + gammaln(a) - gammaln(a + n))

    def expected_clusters(self, n: int) -> float:
        """Return E[K_n]; in closed form for sigma = 0 and for tau = 0."""
        check_observations(n)
        a = self.concentration
        if self.discount < TINY_DISCOUNT:
            return float(a * (digamma(a + n) - digamma(a)))
        if self.tilt == 0.0:
            return PitmanYor(0.0, self.discount).expected_clusters(n)
        # In units of u with phi(1) = 1 everything stays in the range of a double.
        rate = np.log1p(self.discount / (a * self.tilt**self.discount)) / self.discount
        if rate > LARGEST_RATE:
            raise ValueError(
                f"the total mass of {self!r} is outside the range of a double; "
                "take a larger discount or concentration"
            )
        log_unit = float(np.log(self.tilt) + rate + np.log(-np.expm1(-rate)))
        scaled = GeneralizedGamma(
            float(a * np.exp(self.discount * log_unit)),
            self.discount,
            float(np.exp(np.log(self.tilt) - log_unit)),
        )
        return NormalizedRandomMeasure.expected_clusters(scaled, n)

    def kernel_parameters(self) -> DiscountParameters:
        """Return the parameters of the compiled rule."""
        return DiscountParameters(
            GENERALIZED_GAMMA,
            float(self.concentration),
            float(self.discount),
            float(self.tilt),
            self.auxiliary == "quadrature",
            self.cluster_count == "plain",
        )

    def auxiliary_log_density(self, counts: Floats) -> Callable[[float], float] | None:
        """Return the log density of log U given whole counts; None for sigma = 0, without U."""
        return None if self.discount == 0.0 else super().auxiliary_log_density(counts)

    def kernel_parameters_given(self, auxiliary: float) -> DiscountParameters:
        """Return the parameters of the compiled rule given log U: new is a (u+tau)^sigma."""
        growth = 1.0
        if self.discount > 0.0:
            growth = float(np.exp(self.discount * self._shares(np.array([auxiliary]))[2][0]))
        return DiscountParameters(GIVEN, float(self.concentration * growth), float(self.discount))


def dirichlet_process(concentration: float = 1.0) -> GeneralizedGamma:
    """Return the Dirichlet process: sigma = 0, any tau.

    Examples
    --------
    >>> from bnpstream import dirichlet_process
    >>> dirichlet_process(1.0).predictive_rule([2.0, 1.0])
    array([0.5 , 0.25, 0.25])
    """
    return GeneralizedGamma(concentration, discount=0.0)


def normalized_inverse_gaussian(concentration: float = 1.0, tilt: float = 1.0) -> GeneralizedGamma:
    """Return the normalized inverse Gaussian process ("IG" in the paper): sigma = 1/2."""
    return GeneralizedGamma(concentration, discount=0.5, tilt=tilt)


def normalized_stable(discount: float) -> GeneralizedGamma:
    """Return the normalized stable process: tau = 0; predicts as Pitman-Yor(0, sigma)."""
    if discount == 0.0:
        raise ValueError("normalized_stable needs a discount in (0, 1), got 0.0")
    return GeneralizedGamma(1.0, discount, tilt=0.0)


name(dirichlet_process().learning(), "dp", "concentration")
name(normalized_inverse_gaussian().learning(), "nig", "concentration", "tilt")
name(GeneralizedGamma(1.0, 0.5).learning("concentration", "discount"), "ngg")
name(normalized_stable(0.5).learning("discount"), "stable", "discount")
