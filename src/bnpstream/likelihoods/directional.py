"""Directions: vectors of unit length, embeddings for example."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.vectors.bessel import log_c, log_c_fall, mean_length
from bnpstream.kernels.vectors.families import SCALES, Directions
from bnpstream.kernels.vectors.rows import fill_norms
from bnpstream.likelihoods.cells import as_vector, no_options, require_positive
from bnpstream.likelihoods.errors import RowError
from bnpstream.likelihoods.registry import register
from bnpstream.likelihoods.vectors import STEPS, VectorLikelihood, as_vectors

UNIT = 1e-3
"""Rows whose length is within this of one are of unit length: float16 leaves more digits."""
MOST_ALIGNED = 0.95
"""Longest mean that centroids are expected to have: rows all alike leave room for others."""


def norms_of(values: NDArray[Any]) -> Floats:
    """Return the lengths of rows."""
    norms = np.empty(len(values))
    fill_norms(values, norms)
    return norms


def are_unit(norms: Floats) -> bool:
    """Return whether all rows are of unit length, to what float16 can tell."""
    return bool((np.abs(norms - 1.0) < UNIT).all())


@register("directional")
@dataclass(frozen=True, eq=False)
class Directional(VectorLikelihood):
    """Directions, such as embeddings: von Mises-Fisher rows, each with its own concentration.

    x ~ vMF(theta, kappa_g), g ~ pi, theta ~ vMF(m, lambda), with kappa_g = floor D 2^(g/2) for
    g = 0..7. Rows of one topic lie at different distances from its centroid, so one concentration
    for all would break topics up; here every row has its own, inferred with its cluster.

    Parameters
    ----------
    mean : array-like of shape (D,), optional
        m: expected direction of the clusters. Default the mean direction of the first rows.
    floor : float, optional
        The smallest concentration of rows, divided by D. Larger values give finer, more numerous
        clusters. Default 0.7.
    shares : array-like of shape (8,), optional
        pi, initial value; learnt from the stream if `concentration` is. Default uniform.
    concentration : float, optional
        lambda: how close to `mean` clusters are expected; 0 is anywhere. Default learnt.
    normalize : bool, optional
        Whether to accept rows of any nonzero length and use their direction. Default False: rows
        that are not of unit length are refused.
    """

    concentration: float | None = None
    normalize: bool = False
    scale_name: ClassVar[str] = "concentration"
    keeps_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mean is not None and not np.linalg.norm(as_vector("mean", self.mean)) > 0.0:
            raise ValueError("mean must not be zero: it is a direction")
        if self.concentration is not None and self.concentration != 0.0:
            require_positive("concentration", self.concentration)

    @property
    def _order(self) -> float:
        return 0.5 * self.n_columns - 1.0

    @property
    def grid(self) -> Floats:
        """Return kappa_g, shape (G,)."""
        grid: Floats = self.floor * self.n_columns * STEPS
        return grid

    @property
    def base(self) -> Floats:
        """Return lambda m, shape (D,)."""
        mean = as_vector("mean", self.mean)
        base: Floats = float(self.concentration or 0.0) / np.linalg.norm(mean) * mean
        return base

    @property
    def centre(self) -> Floats:
        """Return zeros."""
        return np.zeros(self.n_columns)

    def cosines(self, means: Floats, batch: Any) -> Floats:
        """Return the cosine of every row with each of some directions, (K, D) -> (n, K)."""
        found: Floats = batch.factors[:, None] * (batch.values.astype(np.float64) @ means.T)
        return np.clip(found, -1.0, 1.0)

    def row_means(self, statistics: Floats) -> Floats:
        """Return the directions of V, without the prior, as long as the mean of A(kappa_g)."""
        counts, sums, kappa = statistics[:, :SCALES], statistics[:, SCALES:], self.grid
        wanted = counts @ (kappa * mean_length(self._order, kappa**2)) / counts.sum(axis=1)
        lengths = np.linalg.norm(sums, axis=1)
        means: Floats = (wanted / np.where(lengths > 0.0, lengths, 1.0))[:, None] * sums
        return means

    def factors_of(self, values: NDArray[Any]) -> Floats:
        """Return one over the lengths of rows; ValueError names one that has no direction."""
        norms = norms_of(values)
        bad = ~(norms > 0.0) if self.normalize else ~(np.abs(norms - 1.0) < UNIT)
        if bad.any():
            row = int(np.argmax(bad))
            raise RowError(
                row,
                "all numbers are zero: a direction has a length; leave the row out"
                if norms[row] == 0.0
                else f"the length is {norms[row]:.6g}: directions have length 1; "
                "Directional(normalize=True) takes rows of any length",
            )
        return 1.0 / norms

    def informed(self, X: Any) -> Self:
        """Return this family with what is open taken from some rows.

        lambda is that under which rows have the mean that they have: with R its length, that of
        the mean of rows is A(lambda) A_0, A_0 being the mean of A(kappa_g). R^2 of n rows is too
        large by about 1/n, which is taken off.
        """
        if self.is_informed:
            return self
        values = as_vectors(X)
        total = (self.factors_of(values)[:, None] * values.astype(np.float64)).sum(axis=0)
        n, length = len(values), float(np.linalg.norm(total))
        direction = total / length if length > 0.0 else np.eye(1, total.size)[0]
        mean = direction if self.mean is None else as_vector("mean", self.mean)
        known = replace(self, mean=mean, concentration=0.0)
        if not self.scale_is_open:
            return replace(known, concentration=self.concentration)
        R = np.sqrt(max(length**2 - n, 0.0) / max(n * (n - 1), 1))
        kappa, shares = known.grid, np.exp(known.log_shares)
        within = float(shares @ (kappa * mean_length(known._order, kappa**2)))
        return replace(known, concentration=concentration_of(known._order, R / within))

    def pairs_of(
        self, squares: Floats, precisions: Floats, products: Floats, square: float
    ) -> Floats:
        """Return log pi_g + log c(kappa_g) + log c(|eta|) - log c(|eta + kappa_g x|)."""
        more = self.grid * (self.grid * square + 2.0 * products)
        pairs: Floats = self.log_counts() + log_c_fall(self._order, squares + 0.0 * more, more)
        return pairs

    def log_lengths(self, squares: Floats, precisions: Floats) -> Floats:
        """Return log c(lambda) - log c(|eta|)."""
        prior = np.full(np.shape(squares), self.base @ self.base)
        found: Floats = log_c_fall(self._order, prior, squares - prior)
        return found

    def log_counts(self) -> Floats:
        """Return log pi_g + log c(kappa_g)."""
        counts: Floats = self.log_shares + log_c(self._order, self.grid**2)
        return counts

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return centroids of unit length, shape (K, D); zeros where nothing is known."""
        eta = self._parts(statistics)[0]
        lengths = np.linalg.norm(eta, axis=1, keepdims=True)
        return eta / np.where(lengths > 0.0, lengths, 1.0)

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Floats:
        """Draw one row from the posterior predictive of every cluster."""
        no_options(self, options)
        eta = self._parts(statistics)[0]
        centroids = draw_directions(
            self.posterior_mean(statistics), np.linalg.norm(eta, axis=1), rng
        )
        g = rng.choice(STEPS.size, size=len(eta), p=np.exp(self.log_shares))
        return draw_directions(centroids, self.grid[g], rng)

    def kernel_parameters(self, n_statistics: int) -> Directions:
        """Return the parameters of the compiled score."""
        return self._parameters

    @cached_property
    def _parameters(self) -> Directions:
        return Directions(
            self.base, self.centre, self.grid, self.log_counts(), self.precision, self._order
        )


def concentration_of(order: float, length: float) -> float:
    """Return r for which the mean of vMF(m, r) has this length, `MOST_ALIGNED` at most."""
    wanted = min(length, MOST_ALIGNED)
    if wanted <= 0.0:
        return 0.0

    def excess(r: float) -> float:
        return float(r * mean_length(order, r * r) - wanted)

    most = 1.0
    while excess(most) < 0.0:
        most *= 2.0
    return float(brentq(excess, 0.0, most))


def draw_directions(means: Floats, concentrations: Floats, rng: np.random.Generator) -> Floats:
    """Draw one row of vMF for each of some directions (Wood 1994, by rejection).

    Parameters
    ----------
    means : ndarray of shape (n, D)
        Of unit length; what a row of zeros says does not matter, its concentration is 0.
    concentrations : ndarray of shape (n,)
        Not below 0.
    rng : Generator
        Source of randomness.
    """
    n, D = means.shape
    kappa, last = concentrations, D - 1.0
    b = last / (2.0 * kappa + np.sqrt(4.0 * kappa**2 + last**2))
    x0 = (1.0 - b) / (1.0 + b)
    bound = kappa * x0 + last * np.log1p(-(x0**2))
    cosine, waiting = np.empty(n), np.arange(n)
    while waiting.size:
        z = rng.beta(0.5 * last, 0.5 * last, size=waiting.size)
        b_, k, x = b[waiting], kappa[waiting], x0[waiting]
        w = (1.0 - (1.0 + b_) * z) / (1.0 - (1.0 - b_) * z)
        taken = k * w + last * np.log1p(-x * w) - bound[waiting] >= np.log(
            rng.uniform(size=waiting.size)
        )
        cosine[waiting[taken]] = w[taken]
        waiting = waiting[~taken]
    across = rng.standard_normal((n, D))
    across -= (across * means).sum(axis=1, keepdims=True) * means
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    drawn = cosine[:, None] * means + np.sqrt(1.0 - cosine**2)[:, None] * across
    unit: Floats = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit
