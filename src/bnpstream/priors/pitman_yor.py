"""The Pitman-Yor process."""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from bnpstream.kernels.measures.rules import PITMAN_YOR, DiscountParameters
from bnpstream.priors.base import (
    TINY_DISCOUNT,
    Floats,
    Prior,
    check_discount,
    check_observations,
    check_positive,
    conditional_sizes,
    discounted_log_weights,
    odds_of_seated,
)
from bnpstream.priors.registry import name, register


@register
@dataclass(frozen=True, repr=False)
class PitmanYor(Prior):
    """Pitman-Yor process: existing S_k - sigma, new theta + sigma E[K'].

    Parameters
    ----------
    concentration : float
        theta > -sigma.
    discount : float
        sigma in [0, 1). The number of clusters grows like n^sigma.
    cluster_count : {"expected", "plain"}
        See `Prior`.
    learn : tuple of str
        See `Prior.learning`.

    Examples
    --------
    >>> from bnpstream import PitmanYor
    >>> PitmanYor(concentration=1.0, discount=0.5).predictive_rule([2.0, 1.0])
    array([0.375, 0.125, 0.5  ])
    """

    concentration: float
    discount: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_discount(self.discount)
        check_positive("concentration (theta)", self.concentration, least=-self.discount)

    @property
    def smallest_mass(self) -> float:
        """Return sigma: existing weights are max(S_k - sigma, 0)."""
        return self.discount

    def log_weights(
        self, masses: Floats, log_vacancy: Floats, n: float, auxiliary: float
    ) -> Floats:
        """Return the normalised log prior weights (see `Prior.log_weights`)."""
        count = float(self.occupancy(log_vacancy).sum())
        return discounted_log_weights(
            masses, self.discount, self.concentration + self.discount * count
        )

    log_merge_odds = odds_of_seated

    def log_seated(
        self, masses: Floats, occupancy: Floats, count: float, auxiliary: float
    ) -> Floats:
        """Return p log((1 - sigma)_{S/p - 1}) and a factor for opening (see `Prior.log_seated`)."""
        sizes = conditional_sizes(masses, occupancy)
        filled: Floats = gammaln(sizes - self.discount) - gammaln(1.0 - self.discount)
        # E[K'] need not count two clusters fully, but there are two to merge.
        opened = float(np.log(self.concentration + self.discount * (max(count, 2.0) - 1.0)))
        return occupancy * filled + occupancy * opened

    def predictive_rule(self, counts: Floats) -> Floats:
        """Return the exact predictive probabilities (see `Prior.predictive_rule`)."""
        counts = np.asarray(counts, dtype=np.float64)
        new = self.concentration + self.discount * counts.size
        weights: Floats = np.append(counts - self.discount, new)
        return weights / float(counts.sum() + self.concentration)

    def log_eppf(self, counts: Floats) -> float:
        """Return prod_{j<K} (theta + j sigma) / (theta + 1)_{n-1} prod_k (1 - sigma)_{n_k - 1}."""
        counts = np.asarray(counts, dtype=np.float64)
        theta, sigma = self.concentration, self.discount
        opened = np.log(theta + sigma * np.arange(1, counts.size)).sum()
        seated = gammaln(theta + counts.sum()) - gammaln(theta + 1.0)
        joined = (gammaln(counts - sigma) - gammaln(1.0 - sigma)).sum()
        return float(opened - seated + joined)

    def log_partition(self, masses: Floats, log_vacancy: Floats, n: float) -> float:
        """Return `log_eppf` of soft counts: E[K'] for K, p_k for each cluster."""
        theta, sigma = self.concentration, self.discount
        occupancy = self.occupancy(log_vacancy)
        sizes, count = conditional_sizes(masses, occupancy), float(occupancy.sum())
        if sigma > TINY_DISCOUNT:
            first = theta / sigma + 1.0
            opened = (count - 1.0) * np.log(sigma) + gammaln(first + count - 1.0) - gammaln(first)
        else:
            opened = (count - 1.0) * np.log(theta)
        seated = gammaln(theta + n) - gammaln(theta + 1.0)
        joined = occupancy @ (gammaln(sizes - sigma) - gammaln(1.0 - sigma))
        return float(opened - seated + joined)

    def expected_clusters(self, n: int) -> float:
        """Return E[K_n] = sum over rows of the probability of a new cluster, in closed form."""
        check_observations(n)
        theta, sigma = self.concentration, self.discount
        if sigma < TINY_DISCOUNT:  # the limit: the difference is below what gammaln resolves
            return float(theta * (digamma(theta + n) - digamma(theta)))
        # theta/sigma ((theta+sigma)_n / (theta)_n - 1), with theta (theta)_n^-1 taken together
        # so that theta = 0 and theta < 0 need no other formula.
        log_ratio = gammaln(theta + sigma + n) - gammaln(theta + n)
        log_ratio += gammaln(theta + 1.0) - gammaln(theta + sigma + 1.0)
        return float((theta * np.expm1(log_ratio) + sigma * np.exp(log_ratio)) / sigma)

    def kernel_parameters(self) -> DiscountParameters:
        """Return the parameters of the compiled rule."""
        return DiscountParameters(
            PITMAN_YOR,
            float(self.concentration),
            float(self.discount),
            plain_count=self.cluster_count == "plain",
        )


name(PitmanYor(1.0, 0.5).learning("concentration", "discount"), "py")
