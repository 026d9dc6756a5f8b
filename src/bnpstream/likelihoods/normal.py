"""What the Gaussians share: the base measure of a cluster's mean."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from bnpstream.likelihoods.base_measures import FirstRows
from bnpstream.likelihoods.batch import Floats
from bnpstream.likelihoods.cells import (
    ColumnLikelihood,
    as_vector,
    require_positive,
)

LOG_PI = float(np.log(np.pi))
STRENGTH_IF_GIVEN = 0.01
"""kappa of a base measure with mean and scale of its own: a weak one."""


def counted(n: Floats) -> Floats:
    """Return n with ones for zeros, to divide sums by that are zero then."""
    return np.where(n > 0.0, n, 1.0)


@dataclass(frozen=True, eq=False)
class Normal(ColumnLikelihood):
    """What the Gaussians share: a base measure for the mean, left open until rows are seen."""

    mean: ArrayLike | None = None
    mean_strength: float | None = None
    degrees: float | None = None

    def __post_init__(self) -> None:
        if self.mean_strength is not None:
            require_positive("mean_strength", self.mean_strength)
        if self.mean is not None:
            as_vector("mean", self.mean)

    @cached_property
    def n_columns(self) -> int:
        """Return D."""
        self.require_informed()
        return as_vector("mean", self.mean).size

    def _rescaled_strength(self, factor: float) -> float:
        """Return kappa for which clusters with `factor` times the variance spread as far as now."""
        return min(factor * self._strength, max(self._strength, 1.0))

    @property
    def _strength(self) -> float:
        """Return kappa."""
        return STRENGTH_IF_GIVEN if self.mean_strength is None else float(self.mean_strength)

    def _strength_from(self, rows: FirstRows, variance: Any) -> float:
        """Return kappa, from the first rows if it is open."""
        if self.mean_strength is not None:
            return self.mean_strength
        return rows.mean_strength(as_vector("variance", variance, rows.mean.size))


def log_gamma_ratio(x: Floats, d: float) -> Floats:
    """Return log Gamma(x + d) - log Gamma(x)."""
    ratio: Floats = gammaln(x + d) - gammaln(x)
    return ratio
