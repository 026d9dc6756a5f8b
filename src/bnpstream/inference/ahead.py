"""Screening rows that are still to come in several threads.

The first look at a row, which sums the levels of its words over all clusters, needs nothing from
the rows before it but their changes. So blocks of rows are summed by all threads against the
posterior as it stands, and then visited in order; what a visited row changes is added to the sums
of those behind it. Whole numbers are summed, so the sums are the same to the last bit, and so is
the result.
"""

from bnpstream.kernels.levels import LANES, Screen, index_ahead, look_ahead
from bnpstream.likelihoods.screening import looking_ahead
from bnpstream.mixture import KernelArguments
from bnpstream.mixture.threads import in_threads

AHEAD_ROWS = 64
"""Rows summed at a time: enough to keep threads busy, few enough that little changes meanwhile."""
AHEAD_FROM = 1000
"""Clusters from which on it pays."""


def sum_ahead(screen: Screen, kernel: KernelArguments, start: int, stop: int, slots: int) -> Screen:
    """Return the screen with the sums of rows start..stop-1.

    Parameters
    ----------
    screen : Screen
        Of the posterior as it stands.
    kernel : KernelArguments
        The rows, and how many threads to use.
    start, stop : int
        The rows.
    slots : int
        Clusters and a new one; every row may open another.
    """
    rows, n = kernel.rows, stop - start
    if screen.levels.shape[0] == 0:
        return screen
    capacity, entries = screen.levels.shape[1], int(rows.indptr[stop] - rows.indptr[start])
    ahead = screen.ahead
    if ahead.sums.shape != (AHEAD_ROWS, capacity) or ahead.links.size < entries:
        screen = looking_ahead(screen, AHEAD_ROWS, entries)
    index_ahead(screen, rows, start, stop)
    width = min((slots + n + LANES) // LANES * LANES, capacity)
    in_threads(
        lambda first, last: look_ahead(screen, rows, start + first, start + last, width),
        n,
        kernel.n_jobs,
    )
    return screen
