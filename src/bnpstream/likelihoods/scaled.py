"""Real vectors around spherical clusters, each row with its own width."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.vectors.families import LOG_2PI, Scales
from bnpstream.likelihoods.batch import filled
from bnpstream.likelihoods.cells import as_vector, no_options, require_positive
from bnpstream.likelihoods.registry import register
from bnpstream.likelihoods.vectors import STEPS, VectorLikelihood, as_vectors


@register("scaled")
@dataclass(frozen=True, eq=False)
class ScaledGaussian(VectorLikelihood):
    """Gaussian rows, each with its own variance. For dense tables with many columns.

    x ~ N(mu, I v / (floor 2^(g/2))), g ~ pi, mu ~ N(m, I v / strength) for g = 0..7. With many
    columns, distances of the rows of one cluster from its centre vary more than a single Gaussian
    allows; this is a Gaussian with heavy tails, like Student's t.

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: prior mean of the cluster centres. Default the mean of the first rows.
    floor : float, optional
        The largest variance of rows in a cluster is v / floor. Larger values give finer, more
        numerous clusters. Default 0.7.
    shares : array-like of shape (8,), optional
        pi, initial value; learnt from the stream if `strength` is. Default uniform.
    variance : float, optional
        v: the variance of rows, averaged over columns. Default that of the first rows.
    strength : float, optional
        How close to `mean` the cluster centres are expected. Default learnt.
    """

    variance: float | None = None
    strength: float | None = None
    scale_name: ClassVar[str] = "strength"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("variance", "strength"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))

    @property
    def is_informed(self) -> bool:
        """Return whether the base measure is known."""
        return super().is_informed and self.variance is not None

    @property
    def _width(self) -> float:
        assert self.variance is not None
        return float(self.variance)

    @property
    def grid(self) -> Floats:
        """Return the precisions of rows, shape (G,)."""
        return self.floor / self._width * STEPS

    @property
    def base(self) -> Floats:
        """Return zeros, because rows are centred."""
        return np.zeros(self.n_columns)

    @property
    def centre(self) -> Floats:
        """Return m, shape (D,)."""
        return as_vector("mean", self.mean)

    @property
    def precision(self) -> float:
        """Return strength / v."""
        return float(self.strength or 1.0) / self._width

    def factors_of(self, values: NDArray[Any]) -> Floats:
        """Return ones."""
        return filled(len(values), 1.0)

    def informed(self, X: Any) -> Self:
        """Return this family with unset parameters estimated from some rows."""
        if self.is_informed:
            return self
        values = as_vectors(X).astype(np.float64)
        mean = values.mean(axis=0) if self.mean is None else self.centre
        spread = float(((values - mean) ** 2).mean())
        variance = (spread if spread > 0.0 else 1.0) if self.variance is None else self.variance
        strength = 1.0 if self.strength is None else self.strength
        return replace(self, mean=mean, variance=variance, strength=strength)

    def pairs_of(
        self, squares: Floats, precisions: Floats, products: Floats, square: float
    ) -> Floats:
        """Return log pi_g + log N(x | eta / precision, I (1/precision + 1/lambda_g))."""
        apart = square - (2.0 * products - squares / precisions) / precisions
        variance = 1.0 / precisions + 1.0 / self.grid
        D = self.n_columns
        density = D * (LOG_2PI + np.log(variance)) + np.maximum(apart, 0.0) / variance
        return self.log_shares - 0.5 * density

    def log_lengths(self, squares: Floats, precisions: Floats) -> Floats:
        """Return |eta|^2 / (2 precision) - D/2 log(precision) less that of an empty cluster."""
        D = self.n_columns
        found: Floats = 0.5 * (squares / precisions - D * np.log(precisions / self.precision))
        return found

    def log_counts(self) -> Floats:
        """Return log pi_g + D/2 log(lambda_g / 2 pi)."""
        return self.log_shares + 0.5 * self.n_columns * (np.log(self.grid) - LOG_2PI)

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return the posterior mean of mu, shape (K, D)."""
        eta, precisions = self._parts(statistics)
        return self.centre + eta / precisions[:, None]

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Floats:
        """Draw one row from the posterior predictive of each cluster."""
        no_options(self, options)
        means, precisions = self.posterior_mean(statistics), self._parts(statistics)[1]
        g = rng.choice(STEPS.size, size=len(means), p=np.exp(self.log_shares))
        spread = np.sqrt(1.0 / precisions + 1.0 / self.grid[g])
        return means + spread[:, None] * rng.standard_normal(means.shape)

    def kernel_parameters(self, n_statistics: int) -> Scales:
        """Return the parameters of the compiled score."""
        D = float(self.n_columns)
        return Scales(self.base, self.centre, self.grid, self.log_shares, self.precision, D)
