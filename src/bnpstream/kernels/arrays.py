"""The arrays that compiled loops work on.

A NamedTuple cannot change its scalars, so the few numbers that change live in two small
arrays, `counters` and `totals`, at the positions named here.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

N_CLUSTERS, N_OBSERVATIONS, NEXT_ID = 0, 1, 2
TOTAL_MASS, LOG_AUXILIARY, LOG_EVIDENCE = 0, 1, 2

NO_MASS = 1e-9
"""Less mass than this is rounding: no row is behind it."""
ROUNDING = 1e-12
"""What a subtraction leaves of a statistic, relative to it, where nothing should be left."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Clusters(NamedTuple):
    """The posterior: slots 0..K-1 hold the clusters, every slot from K on is zero.

    Slot K is therefore the prior, and scoring a new cluster is no special case.
    """

    statistics: Floats
    """(capacity, D): summed sufficient statistics, in the likelihood's memory order."""
    masses: Floats
    """(capacity,): S_k, the summed responsibilities."""
    log_vacancy: Floats
    """(capacity,): sum over rows of log(1 - q_ik), the log probability of being empty."""
    ids: Integers
    """(capacity,): stable cluster ids."""
    counters: Integers
    """(3,): number of clusters, number of rows seen, next cluster id."""
    totals: Floats
    """(3,): n of the prior's rule, log of the auxiliary variable, summed log evidence."""


class SparseRows(NamedTuple):
    """Sufficient statistics of a batch in compressed rows."""

    indptr: Integers
    indices: Integers
    values: Floats
    log_base: Floats
    """(n,): log h(x) of every row."""


class Sites(NamedTuple):
    """What every row contributed: its responsibilities, sparse, in compressed rows."""

    indptr: Integers
    """(n + 1,): an empty site is a row not visited so far."""
    slots: Integers
    """(capacity,): the clusters' slots; GONE where a cluster has been dropped since."""
    shares: Floats
    """(capacity,): the responsibilities."""


class Events(NamedTuple):
    """Births and deaths of clusters, in order."""

    filled: Integers
    """(1,): events so far."""
    kinds: Integers
    """(capacity,): BIRTH or DEATH."""
    ids: Integers
    """(capacity,): the cluster."""
    times: Integers
    """(capacity,): rows seen when it happened."""
    masses: Floats
    """(capacity,): the cluster's mass then."""

    @classmethod
    def empty(cls, capacity: int) -> "Events":
        """Allocate a log of `capacity` events."""
        kinds, ids, times = np.empty((3, capacity), np.int64)
        return cls(np.zeros(1, np.int64), kinds, ids, times, np.empty(capacity))


GONE = -1
BIRTH, DEATH = 0, 1


class Options(NamedTuple):
    """What a pass does with responsibilities."""

    new_cluster_threshold: float
    log_min_responsibility: float
    least_mass: float
    """A cluster left with less mass is dropped."""
    dead_mass: float
    """Up to this mass a cluster is none without the row being visited."""


class Trace(NamedTuple):
    """What a pass reports of every row."""

    log_evidence: Floats
    """(n,): one-step-ahead log predictive of the row, log h(x) included."""
    n_clusters: Integers
    """(n,): clusters after the row."""
    ids: Integers
    """(n,): id of the cluster with the largest responsibility."""
    change: Floats
    """(n,): half the summed change of the row's responsibilities; 1 on a first visit."""

    @classmethod
    def empty(cls, n: int) -> "Trace":
        """Allocate the trace of n rows."""
        return cls(np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n))

    def part(self, start: int, stop: int) -> "Trace":
        """Return the trace of rows start..stop-1 (views)."""
        rows = slice(start, stop)
        return Trace(
            self.log_evidence[rows], self.n_clusters[rows], self.ids[rows], self.change[rows]
        )


class Scratch(NamedTuple):
    """Working space of one pass, a slot a cluster."""

    log_scores: Floats
    responsibilities: Floats
    mantissas: Floats
    exponents: NDArray[np.uint64]


def make_scratch(capacity: int) -> Scratch:
    """Allocate the working space for `capacity` slots."""
    return Scratch(
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity, np.uint64),
    )
