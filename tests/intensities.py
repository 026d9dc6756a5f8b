"""Levy intensities that the tests of `NumericalMeasure` share."""

import math
from functools import cache

import numpy as np

from bnpstream.priors import NumericalMeasure


@cache
def generalized_gamma(sigma, tau):
    """Return log rho of GeneralizedGamma(1, sigma, tau): one function, so one table, for all."""
    return lambda s: -math.lgamma(1 - sigma) - (1 + sigma) * np.log(s) - tau * s


def generalized_dirichlet(s):
    """Return log sum_{l <= 3} e^{-ls} / s: Lijoi, Mena and Pruenster (2005)."""
    return -s + np.log(1 + np.exp(-s) + np.exp(-2 * s)) - np.log(s)


def two_processes(s):
    """Return log rho of GeneralizedGamma(1, 0, 1) and GeneralizedGamma(1, 0.6, 10), added."""
    heavier = np.exp(-math.lgamma(0.4) - 0.6 * np.log(s) - 9 * s)
    return -s - np.log(s) + np.log(1 + heavier)


def with_a_bump(s):
    """Return log((1 + 30 s^2) e^{-s} / s): s rho(s) rises, and weights may be above masses."""
    return np.log(1 + 30 * s * s) - s - np.log(s)


OTHERS = {
    function.__name__: NumericalMeasure(function, 1.5)
    for function in (generalized_dirichlet, two_processes, with_a_bump)
}


def numerical(prior):
    """Return a generalized gamma process of which only the intensity is known."""
    return NumericalMeasure(
        generalized_gamma(prior.discount, prior.tilt),
        prior.concentration,
        auxiliary=prior.auxiliary,
        cluster_count=prior.cluster_count,
    )
