"""Families of columns, their rows, and the oracle's spelling of each, which many tests share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import naive_cells as naive
from bnpstream.likelihoods import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    DirichletMultinomial,
    Gaussian,
    Poisson,
    Product,
    SphericalGaussian,
)

D = 3
MEAN = [0.5, -1.0, 2.0]
COVARIANCE = np.array([[1.0, 0.3, -0.2], [0.3, 0.8, 0.1], [-0.2, 0.1, 1.5]])
VARIANCE = [0.7, 1.3, 0.4]
LEVELS = [["a", "b", "c"], ["x", "y"], [1, 2, 3, 4]]
ENGINES = ["reference", "compiled"]


class Family(NamedTuple):
    """A family, rows of it, and what the oracle says of a row given weighted rows of cells."""

    likelihood: Any
    draw: Callable[[np.random.Generator, np.ndarray], Any]
    """(rng, cluster of every row) -> rows."""
    oracle: Callable[..., float] | None = None

    @property
    def takes_missing(self) -> bool:
        return self.likelihood.takes_missing


def real(rng, z):
    centers = np.random.default_rng(60).normal(0, 3, (8, D))
    return centers[z] + rng.normal(size=(z.size, D))


def counts(rng, z):
    rates = np.random.default_rng(61).gamma(1.5, 3, (8, D))
    return rng.poisson(rates[z]).astype(float)


def truths(rng, z):
    shares = np.random.default_rng(62).beta(0.6, 0.6, (8, D))
    return (rng.random((z.size, D)) < shares[z]).astype(float)


def labels(rng, z):
    """Return labels, now and then one that is not among the levels."""
    source = np.random.default_rng(63)
    rows = np.empty((z.size, D), dtype=object)
    for j, known in enumerate(LEVELS):
        names = [*known, "other"]
        shares = source.dirichlet(np.full(len(names), 0.5), 8)
        rows[:, j] = [names[rng.choice(len(names), p=shares[k])] for k in z]
    return rows


def mixed(rng, z):
    parts = [real(rng, z), real(rng, z)[:, :2], counts(rng, z), truths(rng, z), labels(rng, z)]
    words = np.random.default_rng(64).dirichlet(np.full(4, 0.5), 8)
    drawn = np.array([rng.multinomial(6, words[k]) for k in z])
    return np.hstack([np.asarray(part, dtype=object) for part in (*parts, drawn)])


SHAPE, STRENGTH = 1.7, 2.5
RATES, SHARES = [2.0, 0.7, 5.0], [0.3, 0.6, 0.9]
_normal = {"mean": MEAN, "mean_strength": 0.3}
_halves = [(STRENGTH * (1 - m), STRENGTH * m) for m in SHARES]
FULL = Gaussian(**_normal, degrees=6.5, covariance=COVARIANCE)
DIAGONAL = DiagonalGaussian(**_normal, degrees=4.5, variance=VARIANCE)
SPHERICAL = SphericalGaussian(**_normal, degrees=4.5, variance=0.9)
POISSON = Poisson(mean=RATES, shape=SHAPE)
BERNOULLI = Bernoulli(mean=SHARES, strength=STRENGTH)
CATEGORICAL = Categorical(levels=LEVELS, alpha=0.6)
ROUND = SphericalGaussian(mean=MEAN[:2], mean_strength=0.01, degrees=3.0, variance=0.9)
MIXED = Product(
    [
        ("real", DIAGONAL, slice(0, 3)),
        ("round", ROUND, [3, 4]),
        ("counts", POISSON, [5, 6, 7]),
        ("truths", BERNOULLI, [8, 9, 10]),
        ("labels", CATEGORICAL, [11, 12, 13]),
        ("words", DirichletMultinomial(0.4), [14, 15, 16, 17]),
    ]
)

FAMILIES = {
    "gaussian": Family(
        FULL,
        real,
        lambda x, rows, w: naive.log_full(x, rows, w, MEAN, 0.3, 6.5, (6.5 - D - 1) * COVARIANCE),
    ),
    "diagonal": Family(
        DIAGONAL,
        real,
        lambda x, rows, w: naive.log_diagonal(
            x, rows, w, MEAN, 0.3, 2.25, [1.25 * v for v in VARIANCE]
        ),
    ),
    "spherical": Family(
        SPHERICAL,
        real,
        lambda x, rows, w: naive.log_spherical(x, rows, w, MEAN, 0.3, 2.25, 1.25 * 0.9),
    ),
    "poisson": Family(
        POISSON,
        counts,
        lambda x, rows, w: naive.log_poisson(x, rows, w, SHAPE, [SHAPE / r for r in RATES]),
    ),
    "bernoulli": Family(
        BERNOULLI, truths, lambda x, rows, w: naive.log_levels(x, rows, w, _halves)
    ),
    "categorical": Family(
        CATEGORICAL,
        labels,
        lambda x, rows, w: naive.log_levels(
            x, rows, w, [[0.6] * (len(known) + 1) for known in LEVELS]
        ),
    ),
    "mixed": Family(MIXED.informed(np.zeros((1, 18))), mixed),
}
FULL_ROWS = ("gaussian",)
"""Families that need every cell; so do the words of "mixed", its last four columns."""


def rows_of(name, n, number, missing=0.0, clusters=3):
    """Return n rows of a family from a few clusters, a share of their cells removed."""
    rng = np.random.default_rng((65, number))
    rows = FAMILIES[name].draw(rng, rng.integers(0, clusters, n))
    gone = rng.random(rows.shape) < missing
    if missing:
        gone[1], gone[3] = True, False  # one row without any cell, one with all
    if name == "mixed":
        gone[:, 14:] = False
    if name not in FULL_ROWS:
        rows[gone] = None if rows.dtype == object else np.nan
    return rows
