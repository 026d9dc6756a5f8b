"""Weakly informative base measures from the first rows: location and width of clusters."""

from typing import NamedTuple

import numpy as np
from scipy.special import chdtr, gammaincinv

from bnpstream.kernels.arrays import Floats

CLOSE = 2.0 / 3.0
"""Share of the pairs within one cluster that count as close."""
NEIGHBOURS = 5
"""The first guess uses as many pairs as if every row had this many neighbours."""
MOST_STEPS = 200
TOLERANCE = 1e-3
"""Largest relative change of a variance in the last step."""
PAIR_CELLS = 2**20
"""(pair, column) cells used: 8 MiB. If there are more rows, every second, third, ... is used."""
OUTERMOST = 0.025
"""Share of the cells of a column, at either end, that may be outliers."""
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
"""Relative to the size of a column: smaller differences are rounding noise."""
LEAST_RANGE = 1e-150
"""Below this, squares would underflow."""


class FirstRows(NamedTuple):
    """What the first rows say about each column."""

    mean: Floats
    """(D,): centre of the rows."""
    within: Floats
    """(D,): variance expected within a cluster."""
    spread: Floats
    """(D,): variance of the rows, outliers drawn in."""
    varies: Floats
    """(D,): 1, or 0 for a column that has been constant so far and tells nothing."""

    def mean_strength(self, variance: Floats) -> float:
        """Return kappa for which the means of clusters are expected to spread as the rows do.

        A base measure with covariance C expects a mean at a squared distance of D / kappa from the
        centre, in units of C; the rows are at sum_j T_j / C_jj. So kappa is the harmonic mean of
        the shares C_jj / T_j of variance that is within clusters, of which none counts as more
        than 1. A larger kappa would take the distance between clusters for their width.

        Parameters
        ----------
        variance : ndarray of shape (D,)
            C_jj.
        """
        ratios = np.maximum(self.spread / variance, 1.0)
        return float(np.average(ratios, weights=self._weights) ** -1.0)

    @property
    def common_variance(self) -> float:
        """Return the mean of the variances within clusters."""
        return float(np.average(self.within, weights=self._weights))

    @property
    def _weights(self) -> Floats:
        """Return weights of the columns: only those that vary count, if there are any."""
        return self.varies if self.varies.any() else np.ones_like(self.varies)


def first_rows(cells: Floats) -> FirstRows:
    """Return centre, variance within clusters and variance of each column.

    Differences of two rows of one cluster have twice its covariance, and do not depend on where the
    cluster is; rows of different clusters are further apart. So the variance within clusters
    can be found from close pairs without knowing the clusters (Art, Gnanadesikan & Kettenring 1982,
    "Data-based metrics for cluster analysis"). With d_j half the squared difference of a pair in
    column j and v the variances,

        a pair is close      if sum_j d_j / v_j <= q,    P(chi2_D <= q) = 2/3,
        v_j = c * mean of d_j over close pairs,          c = P(chi2_D <= q) / P(chi2_{D+2} <= q),

    is solved by iteration from below, starting with the closest pairs. c makes the variances of a
    single Gaussian with independent columns a solution: it makes up for cutting off the far third.
    If v is smaller than the clusters, a step increases it; if it reaches between separated
    clusters, there are too few pairs, and a step decreases it. Correlated columns make the result
    too small, and clusters that crowd few columns make it too large.

    v_j is at most the variance of the rows, and at least gap^2 / 12, the variance of rounding,
    where gap is the smallest difference between two values of the column (so that columns of few
    values do not get variance zero). Correlations are left to the clusters. Centre and spread are
    mean and variance after the outermost cells at either end are replaced by the 2.5 and 97.5 per
    cent points. All results are equivariant under shifts and scales of single columns. Missing
    cells are left out: a pair has the columns that both rows have.

    Parameters
    ----------
    cells : ndarray of shape (n, D)
        The first rows; NaN for missing cells.

    Returns
    -------
    FirstRows
        For a column that has been constant so far, both variances are its size squared, or 1 if it
        is zero or missing: wide enough for what may come, and without effect while it stays
        constant.
    """
    low, high = np.fmin.reduce(cells, axis=0), np.fmax.reduce(cells, axis=0)
    low, high = (np.where(np.isnan(end), 0.0, end) for end in (low, high))
    size = np.maximum(np.abs(low), np.abs(high))
    noise = np.maximum(ROUNDING * size, LEAST_RANGE)
    varies = high - low > noise
    unit = np.where(varies, high - low, np.where(size > LEAST_RANGE, size, 1.0))

    mean, within, spread = (np.full(low.size, value) for value in (0.0, 1.0, 1.0))
    if varies.any():
        values = ((cells - low) / unit)[:, varies]  # from 0 to 1
        mean[varies], spread[varies] = _moments(_drawn_in(values))
        floor = _smallest_gap(values, (noise / unit)[varies]) ** 2 / 12.0
        within[varies] = _variance_of_close_pairs(values, floor)
    return FirstRows(low + unit * mean, within * unit**2, spread * unit**2, varies.astype(float))


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of the present cells of each column."""
    there = ~np.isnan(values)
    count = there.sum(axis=0)
    mean: Floats = np.where(there, values, 0.0).sum(axis=0) / count
    variance: Floats = (np.where(there, values - mean, 0.0) ** 2).sum(axis=0) / count
    return mean, variance


def _drawn_in(values: Floats) -> Floats:
    """Return the cells with the outermost of each column replaced by the next ones."""
    low, high = np.nanquantile(values, [OUTERMOST, 1.0 - OUTERMOST], axis=0)
    return np.clip(values, low, high)


def _smallest_gap(values: Floats, noise: Floats) -> Floats:
    """Return the smallest difference between two values of a column that is above the noise."""
    gaps = np.diff(np.sort(values, axis=0), axis=0)
    smallest: Floats = np.where(gaps > noise, gaps, 1.0).min(axis=0)
    return smallest


def _variance_of_close_pairs(values: Floats, floor: Floats) -> Floats:
    """Return v, see `first_rows`."""
    ceiling: Floats = np.maximum(_moments(values)[1], floor)
    D = values.shape[1]
    n_most = 1 + int(np.sqrt(2.0 * PAIR_CELLS / D))
    values = values[:: -(-len(values) // n_most)]
    one, other = np.triu_indices(len(values), 1)
    halves = 0.5 * (values[one] - values[other]) ** 2
    there = (~np.isnan(halves)).astype(float)
    shared = there.sum(axis=1).astype(np.intp)
    halves = np.where(there > 0.0, halves, 0.0)[shared > 0]
    there, shared = there[shared > 0], shared[shared > 0]
    if not shared.size:
        return ceiling

    sizes = np.arange(1, D + 1)
    quantiles = 2.0 * gammaincinv(sizes / 2, CLOSE)  # of chi2 with these degrees of freedom
    reach = np.asarray(quantiles)[shared - 1]
    inflation = CLOSE / np.asarray(chdtr(sizes + 2, quantiles))[shared - 1]
    distance = halves @ (1.0 / ceiling) / shared
    nearest = min(NEIGHBOURS / (len(values) - 1), 1.0)
    variance: Floats = np.clip(ceiling * np.quantile(distance, nearest), floor, ceiling)
    for _ in range(MOST_STEPS):
        close = (halves @ (1.0 / variance) <= reach).astype(float)
        count = close @ there
        found = (close * inflation) @ halves / np.maximum(count, 1.0)
        before = variance
        variance = np.where(count > 0.0, np.clip(found, floor, ceiling), before)
        if (np.abs(variance - before) <= TOLERANCE * before).all():
            break
    return variance
