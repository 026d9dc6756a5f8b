"""Shared by the Gaussians: the base measure of a cluster's mean."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods.base_measures import FirstRows, first_rows
from bnpstream.likelihoods.cells import as_cells, as_vector, require_positive
from bnpstream.likelihoods.centred import Centred

LOG_PI = float(np.log(np.pi))
STRENGTH_IF_GIVEN = 0.01
"""kappa if mean and scale are given: weak."""


def counted(n: Floats) -> Floats:
    """Return n with zeros replaced by ones, for dividing sums that are then zero."""
    return np.where(n > 0.0, n, 1.0)


@dataclass(frozen=True, eq=False)
class Normal(Centred):
    """Shared by the Gaussians: a base measure for the mean, left open until rows are seen.

    The scale is the variance or covariance expected within a cluster.
    """

    mean_strength: float | None = None
    degrees: float | None = None

    def __post_init__(self) -> None:
        if self.mean_strength is not None:
            require_positive("mean_strength", self.mean_strength)
        if self.mean is not None:
            as_vector("mean", self.mean)

    @property
    def is_informed(self) -> bool:
        """Return whether mean and scale are known."""
        return self.mean is not None and not self.scale_is_open

    @abstractmethod
    def _scale_from(self, rows: FirstRows) -> ArrayLike:
        """Return the scale estimated from the first rows."""

    def informed(self, X: Any) -> Self:
        """Return this family with unset parameters estimated from some rows."""
        if self.is_informed:
            return self
        rows = first_rows(as_cells(X))
        scale = self._scale_from(rows) if self.scale_is_open else getattr(self, self.scale_name)
        strength = self.mean_strength
        if strength is None:
            variance = np.diagonal(scale) if np.ndim(scale) == 2 else scale
            strength = rows.mean_strength(as_vector("variance", variance, rows.mean.size))
        mean = rows.mean if self.mean is None else self.mean
        return self._replaced(scale, mean=mean, mean_strength=strength)

    def rescaled(self, factor: float) -> Self:
        """Return this family with the scale within a cluster times a factor.

        The spread of the means stays the same.
        """
        scale = factor * np.asarray(getattr(self, self.scale_name), dtype=np.float64)
        strength = min(factor * self._strength, max(self._strength, 1.0))
        return self._replaced(scale, mean_strength=strength)

    @property
    def _strength(self) -> float:
        """Return kappa."""
        return STRENGTH_IF_GIVEN if self.mean_strength is None else float(self.mean_strength)


def log_gamma_ratio(x: Floats, d: float) -> Floats:
    """Return log Gamma(x + d) - log Gamma(x)."""
    return gammaln(x + d) - gammaln(x)
