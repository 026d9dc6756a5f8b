"""The interface of priors over partitions."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Floats = NDArray[np.float64]

LOG_CONCENTRATION_RANGE = (-9.0, 14.0)
"""Range in which `with_expected_clusters` searches: concentrations from about 1e-4 to 1e6."""
TINY_DISCOUNT = 1e-9
"""A smaller discount changes an expected number of clusters by less than rounding does."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Prior(ABC):
    """A prior over partitions with a predictive rule for soft counts.

    Parameters
    ----------
    cluster_count : {"expected", "plain"}
        How the number of clusters enters the rule: E[K'] = sum_k 1 - prod_i (1 - q_ik), the
        exact recursion, or plain K, the paper's cheap alternative.
    learn : tuple of str
        Parameters that streaming estimators learn (see `learning`).
    """

    cluster_count: Literal["expected", "plain"] = "expected"
    learn: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parameters = self._parameters()
        for name in self.learn:
            if name not in parameters:
                has = " and ".join(parameters) or "none"
                raise ValueError(f"{type(self).__name__} cannot learn {name!r}; it can learn {has}")
        if self.cluster_count not in ("expected", "plain"):
            raise ValueError(
                f'cluster_count must be "expected" or "plain", got {self.cluster_count!r}'
            )

    @property
    @abstractmethod
    def smallest_mass(self) -> float:
        """Mass up to which a cluster has zero prior weight (sigma); a lower opening threshold
        would open clusters that are dead at birth.
        """  # noqa: D205

    @abstractmethod
    def log_weights(
        self, masses: Floats, log_vacancy: Floats, n: float, auxiliary: float
    ) -> Floats:
        """Return the normalised log prior weights of K clusters and a new one, Eq. (23).

        Parameters
        ----------
        masses : ndarray of shape (K,)
            S_k, the summed responsibilities.
        log_vacancy : ndarray of shape (K,)
            sum_i log(1 - q_ik), the log probability that a cluster is empty.
        n : float
            Number of observations behind the masses.
        auxiliary : float
            log U from `solve_auxiliary`; ignored by priors without an auxiliary variable.

        Returns
        -------
        log_weights : ndarray of shape (K + 1,)
            The last entry is the new cluster's.
        """

    def solve_auxiliary(self, masses: Floats, log_vacancy: Floats, n: float, start: float) -> float:
        """Return the mode of log U given the posterior, warm-started; `start` if there is no U.

        Parameters
        ----------
        masses, log_vacancy, n
            As in `log_weights`.
        start : float
            The last root, or nan.
        """
        return start

    @abstractmethod
    def log_merge_odds(
        self, masses: Floats, occupancy: Floats, joint: Floats, count: float, auxiliary: float
    ) -> Floats:
        """Return the prior log odds of one joint cluster against two, for pairs of clusters.

        Parameters
        ----------
        masses, occupancy : ndarray of shape (2, P)
            S and p (the probability of being occupied) of the two clusters of each pair.
        joint : ndarray of shape (P,)
            p of the joint cluster.
        count : float
            E[K'], the number of clusters before the merge.
        auxiliary : float
            log U.

        Returns
        -------
        log_odds : ndarray of shape (P,)
            For whole counts, a ratio of partition probabilities given U.
        """

    def log_seated(
        self, masses: Floats, occupancy: Floats, count: float, auxiliary: float
    ) -> Floats:
        """Return the term of each cluster in `log_merge_odds`.

        The log odds of a pair are the term of the joint cluster minus those of the two.

        Parameters
        ----------
        masses, occupancy : ndarray of shape (P,)
            S and p of clusters.
        count, auxiliary
            As in `log_merge_odds`.

        Returns
        -------
        terms : ndarray of shape (P,)
            By default from `log_merge_odds` of pairs that are not occupied, whose own terms are
            zero.
        """
        nobody = np.zeros((2, masses.size))
        pairs = np.stack([masses, nobody[1]])
        return self.log_merge_odds(pairs, nobody, occupancy, count, auxiliary)

    @abstractmethod
    def predictive_rule(self, counts: Floats) -> Floats:
        """Return the exact probabilities of joining each cluster and of opening a new one.

        Parameters
        ----------
        counts : ndarray of shape (K,)
            Whole cluster sizes.

        Returns
        -------
        probabilities : ndarray of shape (K + 1,)
            Each a ratio of two partition probabilities; they sum to one without normalising.
        """

    def log_partition(self, masses: Floats, log_vacancy: Floats, n: float) -> float:
        """Return the prior log probability of the clusters of a posterior.

        This is the log EPPF of soft counts, up to terms that no parameter changes; `learning`
        maximises it.

        Parameters
        ----------
        masses, log_vacancy, n
            As in `log_weights`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define the probability of soft clusters, so nothing "
            "can be learnt: give it a method log_partition(masses, log_vacancy, n)"
        )

    @abstractmethod
    def log_eppf(self, counts: Floats) -> float:
        """Return the log probability of one partition with these cluster sizes (EPPF)."""

    @abstractmethod
    def expected_clusters(self, n: int) -> float:
        """Return the prior mean of the number of clusters among n observations."""

    @abstractmethod
    def kernel_parameters(self) -> Any:
        """Return the NamedTuple that selects the compiled rule, or None if there is none."""

    def given_auxiliary(self) -> Self:
        """Return this prior with the rule for whole counts given U, as Gibbs sampling needs it."""
        change: Any = {"cluster_count": "plain"}
        return dataclasses.replace(self, **change)

    def kernel_parameters_given(self, auxiliary: float) -> Any:
        """Return the NamedTuple that selects the compiled rule given log U, or None."""
        return self.given_auxiliary().kernel_parameters()

    def auxiliary_log_density(self, counts: Floats) -> Callable[[float], float] | None:
        """Return the log density of log U given whole counts, or None if there is no U."""
        return None

    def with_expected_clusters(self, n_clusters: float, n: int) -> Self:
        """Return this prior with the concentration for which n rows have `n_clusters` on average.

        Parameters
        ----------
        n_clusters : float
            Clusters wanted on average.
        n : int
            Number of observations.

        Examples
        --------
        >>> from bnpstream import dirichlet_process
        >>> prior = dirichlet_process(1.0).with_expected_clusters(50, n=10_000)
        >>> round(prior.expected_clusters(10_000), 6), round(prior.concentration, 3)
        (50.0, 6.782)
        """

        def excess(log_concentration: float) -> float:
            prior = self._with_concentration(math.exp(log_concentration))
            return prior.expected_clusters(n) - n_clusters

        low, high = self._log_concentration_range()
        fewest, most = excess(low), excess(high)
        if not fewest < 0.0 < most:
            raise ValueError(
                f"no concentration from {math.exp(low):.1g} to {math.exp(high):.1g} makes {self!r} "
                f"expect {n_clusters} clusters among {n} observations: it expects "
                f"{n_clusters + fewest:.4g} to {n_clusters + most:.4g}; a smaller discount allows "
                "fewer clusters, a larger one more"
            )
        return self._with_concentration(math.exp(brentq(excess, low, high, xtol=1e-9)))

    def learning(self, *names: str) -> Self:
        """Return this prior with parameters to be learnt; their current values are first guesses.

        A streaming estimator replaces them at n = P, 2P, 4P, ... rows (``bnpstream.search``).

        Parameters
        ----------
        *names : str
            "concentration", "discount"; by default the concentration. A tilt cannot be learnt: only
            a tau^sigma matters, so learning a is learning tau.

        Examples
        --------
        >>> from bnpstream import normalized_inverse_gaussian
        >>> normalized_inverse_gaussian().learning()
        GeneralizedGamma(concentration=1.0, discount=0.5, tilt=1.0, learn=('concentration',))
        """
        change: Any = {"learn": names or ("concentration",)}
        return dataclasses.replace(self, **change)

    def _parameters(self) -> list[str]:
        """Return the parameters that can be learnt."""
        fields = {field.name for field in dataclasses.fields(self)}
        return [name for name in ("concentration", "discount") if name in fields]

    def _log_concentration_range(self) -> tuple[float, float]:
        return LOG_CONCENTRATION_RANGE

    def _with_concentration(self, concentration: float) -> Self:
        if "concentration" not in self._parameters():
            raise ValueError(f"{type(self).__name__} has no concentration")
        change: Any = {"concentration": concentration}
        return dataclasses.replace(self, **change)

    def sample_partition(self, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw a partition of n observations from the prior, by its exact predictive rule.

        Parameters
        ----------
        n : int
            Number of observations.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        labels : ndarray of shape (n,)
            Cluster of each observation, numbered in order of appearance.
        """
        labels = np.zeros(n, dtype=np.intp)
        counts = np.zeros(n)
        n_clusters = 0
        for i, uniform in enumerate(rng.random(n)):
            if n_clusters > 0:
                edges = np.cumsum(self.predictive_rule(counts[:n_clusters]))
                labels[i] = np.searchsorted(edges[:-1], uniform * edges[-1], side="right")
            counts[labels[i]] += 1
            n_clusters = max(n_clusters, labels[i] + 1)
        return labels

    def __repr__(self) -> str:
        shown = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in sorted(dataclasses.fields(self), key=lambda field: bool(field.kw_only))
            if not field.kw_only or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def occupancy(self, log_vacancy: Floats) -> Floats:
        """Return p_k, the probability that cluster k is occupied; ones for plain K."""
        if self.cluster_count == "plain":
            return np.ones_like(log_vacancy)
        return -np.expm1(log_vacancy)


def odds_of_seated(
    self: Prior,
    masses: Floats,
    occupancy: Floats,
    joint: Floats,
    count: float,
    auxiliary: float,
) -> Floats:
    """Return the terms of joint clusters minus those of the two (see `Prior.log_merge_odds`)."""
    apart = self.log_seated(masses, occupancy, count, auxiliary).sum(axis=0)
    together = self.log_seated(masses.sum(axis=0), joint, count, auxiliary)
    odds: Floats = together - apart
    return odds


def conditional_sizes(masses: Floats, occupancy: Floats) -> Floats:
    """Return S_k / p_k, the mass given that the cluster exists: at least one, even if p_k = 0."""
    sizes = np.ones(np.broadcast_shapes(masses.shape, occupancy.shape))
    np.divide(masses, occupancy, out=sizes, where=occupancy > 0.0)
    return np.maximum(sizes, 1.0)


def check_positive(name: str, value: float, least: float = 0.0) -> None:
    """Raise ValueError unless `value` is a finite number above `least`."""
    if not (np.isfinite(value) and value > least):
        raise ValueError(f"{name} must be a finite number > {least:g}, got {value!r}")


def check_observations(n: int) -> None:
    """Raise ValueError unless n is at least one."""
    if n < 1:
        raise ValueError(f"the number of observations must be at least 1, got {n!r}")


def check_discount(value: float) -> None:
    """Raise ValueError unless sigma is in [0, 1)."""
    if not 0.0 <= value < 1.0:
        raise ValueError(f"discount (sigma) must be in [0, 1), got {value!r}")


def discounted_log_weights(masses: Floats, discount: float, new: float) -> Floats:
    """Return normalised log weights of max(S_k - sigma, 0) and of a new weight, Eq. (23)."""
    weights = np.maximum(np.append(masses - discount, new), 0.0)
    return log_normalized(weights)


def log_normalized(weights: Floats) -> Floats:
    """Return the logarithm of weights divided by their sum; -inf for zero."""
    with np.errstate(divide="ignore"):
        log_weights: Floats = np.log(weights) - np.log(weights.sum())
    return log_weights
