"""The exact ADF update of a cluster's word probabilities, which the paper mentions.

Before row n, q(theta_k) is Dirichlet(b). With its likelihood factor the marginal of theta_k is, the
other clusters' parameters integrated out,

    p(theta_k) = q Dirichlet(b + x) + (1 - q) Dirichlet(b),      q = q(z_nk),

since the row either belongs to the cluster or says nothing about it. ADF asks for the Dirichlet(c)
that minimises KL(p || Dirichlet(c)). A Dirichlet is an exponential family with statistics
log theta_w, so that c is where their expectations agree: with psi the digamma function and a dot
for a sum over words,

    psi(c_w) - psi(c.) = q (psi(b_w + x_w) - psi(b. + x.)) + (1 - q) (psi(b_w) - psi(b.)).

This is `match_logarithms`. It is exact in the sense of the paper's Eq. (8), needs a few Newton
steps a row and cluster, and keeps the mean of theta only nearly. `match_moments` keeps the mean
exactly, and of the second moments their sum, as Minka does: c = c. m with m the mean of p and c.
from the summed variance, which is (1 - sum_w m_w^2) / (c. + 1) for a Dirichlet. It is closed, the
nearest Dirichlet in no sense, and where Newton's method starts.

The paper's mean field update is c = b + q x: it takes a row of which a cluster is half sure for
half a row, and never loses certainty. Both updates here can, down to fewer counts than before.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from bnpstream.likelihoods import Row
from bnpstream.mixture import MixtureState

Floats = NDArray[np.float64]
Projection = Callable[[Floats, Floats, float], Floats]

NEWTON_STEPS = 50
TOLERANCE = 1e-9
"""Relative change of a parameter at which Newton's method ends."""


def match_moments(b: Floats, x: Floats, q: float) -> Floats:
    """Return c with the mean of the two-component marginal and its summed second moment.

    Parameters
    ----------
    b : ndarray of shape (V,)
        Dirichlet parameters before the row.
    x : ndarray of shape (V,)
        Counts of the row.
    q : float
        Responsibility of the cluster, in [0, 1].

    Examples
    --------
    >>> match_moments(np.array([1.0, 1.0]), np.array([2.0, 0.0]), 1.0)
    array([3., 1.])
    """
    before, after = b / b.sum(), (b + x) / (b + x).sum()
    mean = q * after + (1.0 - q) * before
    within = q * _variance(after, (b + x).sum()) + (1.0 - q) * _variance(before, b.sum())
    variance = within + q * (1.0 - q) * float(((after - before) ** 2).sum())
    total = (1.0 - float((mean**2).sum())) / variance - 1.0
    return total * mean


def _variance(mean: Floats, total: float) -> float:
    """Return the variance of a Dirichlet's theta_w, summed over words."""
    return float((1.0 - (mean**2).sum()) / (total + 1.0))


def match_logarithms(b: Floats, x: Floats, q: float) -> Floats:
    """Return c of the Dirichlet nearest to the two-component marginal: E[log theta_w] agree.

    Newton's method on a concave function, the negative KL divergence. Its Hessian is a diagonal
    plus a matrix of rank one, so that a step costs no more than the words do (Minka, Estimating a
    Dirichlet distribution, 2000).

    Parameters
    ----------
    b, x, q
        As in `match_moments`.

    Examples
    --------
    >>> match_logarithms(np.array([1.0, 1.0]), np.array([2.0, 0.0]), 0.5).round(3)
    array([1.301, 0.821])
    """
    target = q * mean_logarithms(b + x) + (1.0 - q) * mean_logarithms(b)

    def gain(c: Floats) -> float:
        return float(gammaln(c.sum()) - gammaln(c).sum() + c @ target)

    c = match_moments(b, x, q)
    for _ in range(NEWTON_STEPS):
        slope = target - mean_logarithms(c)
        diagonal, shared = polygamma(1, c), polygamma(1, c.sum())
        common = (slope / diagonal).sum() / (1.0 / shared - (1.0 / diagonal).sum())
        step = (slope + common) / diagonal
        reach = 1.0
        while (c + reach * step).min() <= 0.0 or gain(c + reach * step) < gain(c) - 1e-9:
            reach *= 0.5
        c = c + reach * step
        if (np.abs(step) <= TOLERANCE * c).all():
            break
    return c


def mean_logarithms(c: Floats) -> Floats:
    """Return E[log theta_w] under Dirichlet(c)."""
    expected: Floats = digamma(c) - digamma(c.sum())
    return expected


UPDATES: dict[str, Projection | None] = {
    "mean field": None,
    "exact": match_logarithms,
    "moments": match_moments,
}
"""Ways to update q(theta): the paper's, the one it calls possible, and a closed one."""


class ProjectedState(MixtureState):
    """A posterior of documents whose word probabilities are updated by a projection.

    Statistics are Dirichlet parameters less the base measure, and may be negative.

    Parameters
    ----------
    n_words : int
        V.
    alpha : float
        The base measure.
    project : callable
        From b, x and q to c.
    """

    def __init__(self, n_words: int, alpha: float, project: Projection) -> None:
        super().__init__(n_words + 1)
        self.alpha, self.project = alpha, project

    def add(self, responsibilities: Floats, row: Row) -> None:
        """Add one row with its responsibilities, shape (K,)."""
        slots = np.flatnonzero(responsibilities)
        before = self.rows(slots)
        super().add(responsibilities, row)
        x = np.zeros(self.n_statistics)
        x[row.columns] = row.values
        for slot, statistics in zip(slots, before, strict=True):
            b = statistics[:-1] + self.alpha
            c = self.project(b, x[:-1], float(responsibilities[slot]))
            counts = c - self.alpha
            self._write(np.array([slot]), slice(None), np.append(counts, counts.sum())[None])
