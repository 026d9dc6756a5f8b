"""Slow, obviously right oracles for rows of cells: exact fractions, scipy.stats, quadrature.

Sums, means and scatters of weighted rows are rational numbers, rounded once at the end. Densities
come from ``scipy.stats`` or from an integral over the parameter. Nothing here comes from the
package, and it imports nothing from it. A row is a sequence of floats; NaN is a missing cell.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy import stats
from scipy.integrate import quad

Rows = Sequence[Sequence[float]]


# --- exact sums -----------------------------------------------------------------------------------


def exact(x: float) -> Fraction:
    """Return a double as the fraction it is."""
    return Fraction(float(x))


def column_moments(
    rows: Rows, weights: Sequence[float], i: int, j: int
) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Return n, the two means and sum w (x_i - mean_i)(x_j - mean_j) over rows that have both."""
    n = a = b = ab = Fraction(0)
    for row, weight in zip(rows, weights, strict=True):
        if math.isnan(row[i]) or math.isnan(row[j]):
            continue
        w, x, y = exact(weight), exact(row[i]), exact(row[j])
        n, a, b, ab = n + w, a + w * x, b + w * y, ab + w * x * y
    if n == 0:
        return n, n, n, n
    return n, a / n, b / n, ab - a * b / n


def posterior_column(
    rows: Rows, weights: Sequence[float], j: int, m: float, kappa: float
) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Return n, the posterior mean, kappa' and the summed squares with the prior's term."""
    n, mean, _, scatter = column_moments(rows, weights, j, j)
    strength = exact(kappa) + n
    center = (exact(kappa) * exact(m) + n * mean) / strength
    apart = exact(kappa) * n / strength * (mean - exact(m)) ** 2
    return n, center, strength, scatter + apart


# --- predictives ----------------------------------------------------------------------------------


def wishart_posterior(
    rows: Rows, weights: Sequence[float], m: Sequence[float], kappa: float, Psi: np.ndarray
) -> tuple[Fraction, list[Fraction], Fraction, np.ndarray]:
    """Return n, m', kappa' and Psi' of the normal-inverse-Wishart posterior."""
    D = len(m)
    found = [posterior_column(rows, weights, j, m[j], kappa) for j in range(D)]
    n, strength = found[0][0], found[0][2]
    scale = np.empty((D, D))
    for i in range(D):
        for j in range(D):
            _, a, b, scatter = column_moments(rows, weights, i, j)
            apart = exact(kappa) * n / strength * (a - exact(m[i])) * (b - exact(m[j]))
            scale[i, j] = float(exact(Psi[i, j]) + scatter + apart)
    return n, [column[1] for column in found], strength, scale


def log_full(
    x: Sequence[float],
    rows: Rows,
    weights: Sequence[float],
    m: Sequence[float],
    kappa: float,
    nu: float,
    Psi: np.ndarray,
) -> float:
    """Return the log density of a row under a normal-inverse-Wishart posterior: Student's t."""
    n, center, strength, scale = wishart_posterior(rows, weights, m, kappa, Psi)
    D = len(m)
    df = nu + float(n) - D + 1
    apart = [float(exact(value) - c) for value, c in zip(x, center, strict=True)]
    shape = scale * float((strength + 1) / strength) / df
    return float(stats.multivariate_t.logpdf(apart, np.zeros(D), shape, df))


def log_diagonal(
    x: Sequence[float],
    rows: Rows,
    weights: Sequence[float],
    m: Sequence[float],
    kappa: float,
    a: float,
    b: Sequence[float],
) -> float:
    """Return the summed log densities of the cells that are there, each a Student's t."""
    total = 0.0
    for j, value in enumerate(x):
        if math.isnan(value):
            continue
        n, center, strength, squares = posterior_column(rows, weights, j, m[j], kappa)
        shape, rate = a + float(n) / 2, float(exact(b[j]) + squares / 2)
        scale = math.sqrt(rate / shape * float((strength + 1) / strength))
        total += stats.t.logpdf(float(exact(value) - center) / scale, 2 * shape) - math.log(scale)
    return total


def log_spherical(
    x: Sequence[float],
    rows: Rows,
    weights: Sequence[float],
    m: Sequence[float],
    kappa: float,
    a: float,
    b: float,
) -> float:
    """Return the log density of the cells that are there: one t, one variance for all columns."""
    found = [posterior_column(rows, weights, j, m[j], kappa) for j in range(len(m))]
    shape = a + float(sum(column[0] for column in found)) / 2
    rate = float(exact(b) + sum(column[3] for column in found) / 2)
    there = [j for j, value in enumerate(x) if not math.isnan(value)]
    if not there:
        return 0.0
    apart = [float(exact(x[j]) - found[j][1]) for j in there]
    scale = np.diag([rate / shape * float((found[j][2] + 1) / found[j][2]) for j in there])
    return float(stats.multivariate_t.logpdf(apart, np.zeros(len(there)), scale, 2 * shape))


def observed(rows: Rows, weights: Sequence[float], j: int) -> list[tuple[float, float]]:
    """Return weight and value of the cells of a column that are there."""
    pairs = zip(weights, (row[j] for row in rows), strict=True)
    return [(w, x) for w, x in pairs if not math.isnan(x)]


def log_poisson(
    x: Sequence[float], rows: Rows, weights: Sequence[float], a: float, b: Sequence[float]
) -> float:
    """Return the summed log probabilities of counts, each negative binomial; log x! included."""
    total = 0.0
    for j, value in enumerate(x):
        if math.isnan(value):
            continue
        seen = observed(rows, weights, j)
        shape = a + math.fsum(w * count for w, count in seen)
        rate = b[j] + math.fsum(w for w, _ in seen)
        total += stats.nbinom.logpmf(value, shape, rate / (rate + 1))
    return total


def log_levels(
    x: Sequence[float], rows: Rows, weights: Sequence[float], alpha: Sequence[Sequence[float]]
) -> float:
    """Return the summed log probabilities of levels 0, 1, ..: counts plus alpha, normalised."""
    total = 0.0
    for j, value in enumerate(x):
        if math.isnan(value):
            continue
        counts = list(alpha[j])
        for w, level in observed(rows, weights, j):
            counts[int(level)] += w
        total += math.log(counts[int(value)] / math.fsum(counts))
    return total


# --- marginal likelihoods as integrals over the parameter -----------------------------------------


def log_integral(log_integrand: Callable[[float], float], edges: Sequence[float]) -> float:
    """Return the log of the integral of exp(log_integrand) over neighbouring intervals."""
    grid = np.linspace(edges[0], edges[-1], 2001)[1:-1]
    top = max(log_integrand(x) for x in grid)
    parts = [
        quad(lambda x: math.exp(log_integrand(x) - top), *ends, epsabs=0, epsrel=1e-11, limit=200)
        for ends in pairwise(edges)
    ]
    return top + math.log(math.fsum(part[0] for part in parts))


def log_marginal_normal(columns: Rows, m: Sequence[float], kappa: float, a: float, b: float):
    """Return log p of columns that share one precision ~ Gamma(a, b), which is integrated out.

    Given it, the n cells of a column are jointly normal with covariance (I + 11'/kappa)/precision.
    """
    values = [np.asarray(column, float) for column in columns]

    def log_integrand(v: float) -> float:
        precision = math.exp(v)
        total = stats.gamma.logpdf(precision, a, scale=1 / b) + v
        for x, center in zip(values, m, strict=True):
            covariance = (np.eye(x.size) + 1 / kappa) / precision
            mean = np.full(x.size, center)
            total += stats.multivariate_normal.logpdf(x, mean, covariance) if x.size else 0.0
        return float(total)

    return log_integral(log_integrand, [-20.0, -5.0, -2.0, 0.0, 2.0, 5.0, 15.0])


def log_marginal_poisson(counts: Sequence[float], a: float, b: float) -> float:
    """Return log p of counts with one rate ~ Gamma(a, b)."""

    def log_integrand(v: float) -> float:
        rate = math.exp(v)
        prior = stats.gamma.logpdf(rate, a, scale=1 / b) + v
        return float(prior + stats.poisson.logpmf(counts, rate).sum())

    return log_integral(log_integrand, [-60.0, -10.0, -2.0, 0.0, 2.0, 6.0])


def log_marginal_share(ones: int, zeros: int, a: float, b: float) -> float:
    """Return log p of a sequence of ones and zeros with one probability ~ Beta(a, b)."""

    def log_integrand(v: float) -> float:
        p, q = 1 / (1 + math.exp(-v)), 1 / (1 + math.exp(v))
        log_p, log_q = math.log(p), math.log(q)
        prior = (a - 1) * log_p + (b - 1) * log_q + log_p + log_q
        norm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        return norm + prior + ones * log_p + zeros * log_q

    return log_integral(log_integrand, [-200.0, -30.0, -5.0, 0.0, 5.0, 30.0, 200.0])
