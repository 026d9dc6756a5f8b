"""Convergence of Markov chains: R-hat and the effective sample size of Vehtari et al. (2021).

Chains are halved, and values are replaced by normal scores of their ranks.
"""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from bnpstream.kernels.arrays import Floats

LEAST_DRAWS = 4


def rhat(draws: Floats) -> float:
    """Return the larger R-hat of values and of their distances from the median.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws)
        One row per chain.

    Returns
    -------
    rhat : float
        About 1 for chains that agree; nan for one chain, a constant, or fewer than four draws.
    """
    if len(draws) < 2 or draws.shape[1] < LEAST_DRAWS:
        return float("nan")
    halves = _halves(draws)
    return max(_ratio(_scores(halves)), _ratio(_scores(np.abs(halves - np.median(halves)))))


def effective_size(draws: Floats) -> float:
    """Return the number of independent draws that would tell as much about the centre.

    With rho_t the autocorrelation at lag t, pooled over chains, this is n / (1 + 2 sum_t rho_t).
    The sum ends where the sum of two neighbouring terms is no longer positive, and sums of pairs
    are made non-increasing (Geyer 1992).

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws)
        One row per chain.

    Returns
    -------
    size : float
        nan for fewer than four draws; the number of draws if all are equal.
    """
    if draws.shape[1] < LEAST_DRAWS:
        return float("nan")
    scores = _scores(_halves(draws))
    if np.ptp(scores) < np.finfo(float).resolution:
        return float(scores.size)
    n = scores.shape[1]
    centred = scores - scores.mean(axis=1, keepdims=True)
    spectra = np.fft.rfft(centred, 2 * n, axis=1)
    covariances = np.fft.irfft(np.abs(spectra) ** 2, axis=1)[:, :n].mean(axis=0) / n
    within = covariances[0] * n / (n - 1)
    rho = 1.0 - (within - covariances) / (covariances[0] + scores.mean(axis=1).var(ddof=1))
    rho[0] = 1.0
    last = max(0, (n - 3) // 2)  # the longest lags are left out, because few draws are so far apart
    pairs = rho[: 2 * last + 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    kept = int(ends[0]) if ends.size else last
    tail = rho[2 * kept] if pairs[kept] > 0.0 else max(rho[2 * kept], 0.0)
    total = 2.0 * np.minimum.accumulate(pairs[:kept]).sum() - 1.0 + tail
    return float(scores.size / max(total, 1.0 / np.log10(scores.size)))


def _halves(draws: Floats) -> Floats:
    """Return first and second halves as chains, without the middle draw of an odd number."""
    half = draws.shape[1] // 2
    return np.vstack((draws[:, :half], draws[:, -half:]))


def _scores(values: Floats) -> Floats:
    """Return normal scores of ranks, by Blom's rule."""
    ranks = rankdata(values, axis=None)
    return ndtri((ranks - 0.375) / (values.size + 0.25)).reshape(values.shape)


def _ratio(chains: Floats) -> float:
    """Return the root of the pooled variance divided by that within chains."""
    n, within = chains.shape[1], chains.var(axis=1, ddof=1).mean()
    if within == 0.0:
        return float("nan")
    return float(np.sqrt((n - 1) / n + chains.mean(axis=1).var(ddof=1) / within))
