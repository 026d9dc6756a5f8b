"""The arrays that compiled loops work on.

A NamedTuple cannot change its scalars, so the few numbers that change live in two small
arrays, `counters` and `totals`, at the positions named here.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.statistics.table import Table

N_CLUSTERS, N_OBSERVATIONS, NEXT_ID = 0, 1, 2
TOTAL_MASS, LOG_AUXILIARY, LOG_EVIDENCE = 0, 1, 2

NO_MASS = 1e-9
"""Less mass than this is rounding: no row is behind it."""
ROUNDING = 1e-12
"""What a subtraction leaves of a statistic, relative to it, where nothing should be left."""
PAIR_ROUNDING = 1e-24
"""The same for pairs of doubles: twice the digits. More would take squares of a cluster near zero
for the rounding of a row that was a million away."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Clusters(NamedTuple):
    """The posterior: slots 0..K-1 hold the clusters, every slot from K on is zero.

    Slot K is therefore the prior, and scoring a new cluster is no special case.
    """

    table: Table
    """Summed sufficient statistics, a row a cluster."""
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
    indices: NDArray[np.uint32]
    """Unsigned, as all that is used as an index in an inner loop: no sign to look at."""
    values: Floats
    log_base: Floats
    """(n,): log h(x) of every row."""
    weights: Floats
    """(n,): how many rows a row counts for."""
    repeat_ptr: Integers
    """(n + 1,): a row's part of `repeats`."""
    repeats: Integers
    """Positions of values above one, the last entry of a row left out."""
    token_ptr: Integers
    """(n + 1,): a row's part of `tokens` and `seen`."""
    tokens: NDArray[np.uint32]
    """Position of every token after a word's first, from the row's start."""
    seen: Floats
    """How often the word has occurred before; minus its count for a long run, given once."""


class Sites(NamedTuple):
    """What every row contributed: its responsibilities, sparse, in compressed rows."""

    indptr: Integers
    """(n + 1,): an empty site is a row not visited so far."""
    slots: Integers
    """(capacity,): the clusters' slots; GONE where a cluster has been dropped since."""
    shares: Floats
    """(capacity,): the responsibilities."""


class LatentSites(NamedTuple):
    """`Sites` of rows that add to a cluster what depends on it, and what they have added."""

    indptr: Integers
    slots: Integers
    shares: Floats
    line_ptr: Integers
    """(n + 1,): where the lines of every row begin."""
    lines: Floats
    """(capacity,): a line for every slot, as long as its row has columns."""
    keeps: bool
    """Whether lines are kept, or only there until the next row."""


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
        return cls(
            np.zeros(1, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity),
        )


GONE = -1
BIRTH, DEATH = 0, 1
NEXT_ROW, IS_OUT, MORE_LINES = 0, 1, 2
"""How far visits have come: the next row, whether it has been taken out already, and the numbers
that it waits for in `LatentSites.lines`."""


NO_LIMIT = 2**62


class Options(NamedTuple):
    """What a pass does with responsibilities."""

    new_cluster_threshold: float
    log_min_responsibility: float
    most_responsibilities: int
    """A row takes part in so many clusters at most, a new one not counted."""
    least_mass: float
    """A cluster left with less mass is dropped."""
    dead_mass: float
    """A cluster that has at most this mass without the visited row is dropped."""
    most_clusters: int
    """Where there are so many, room is made before the next row."""
    most_entries: int
    """The same for a hashed table of more entries than this."""


class Trace(NamedTuple):
    """What a pass reports of every row."""

    log_evidence: Floats
    """(n,): one-step-ahead log predictive of the row, log h(x) included."""
    n_clusters: Integers
    """(n,): clusters after the row."""
    ids: Integers
    """(n,): id of the cluster with the largest responsibility."""
    shares: Floats
    """(n,): that responsibility."""
    novelty: Floats
    """(n,): the responsibility of a new cluster before any was opened."""
    change: Floats
    """(n,): half the summed change of the row's responsibilities; 1 on a first visit."""

    @classmethod
    def empty(cls, n: int) -> "Trace":
        """Allocate the trace of n rows."""
        return cls(
            np.empty(n),
            np.empty(n, np.int64),
            np.empty(n, np.int64),
            np.empty(n),
            np.empty(n),
            np.empty(n),
        )

    def part(self, start: int, stop: int) -> "Trace":
        """Return the trace of rows start..stop-1 (views)."""
        rows = slice(start, stop)
        return Trace._make(part[rows] for part in self)


class Scratch(NamedTuple):
    """Working space of one pass."""

    bounds: Floats
    """(capacity,): upper bounds of the log scores."""
    sums: NDArray[np.uint32]
    """(capacity,): the screen's sums of levels."""
    at: NDArray[np.uint32]
    """(longest row + 8,): rows of the screen."""
    entries: NDArray[np.uint64]
    """(longest row,): entries of the table."""
    leaders: Integers
    """(capacity,): the slots with the largest bounds, ascending."""
    leader_scores: Floats
    """(capacity,): their log scores."""
    slots: Integers
    """(capacity,): the candidates, ascending."""
    log_scores: Floats
    """(capacity,): of the candidates."""
    shares: Floats
    """(capacity,): responsibilities of the candidates."""


def make_scratch(capacity: int, longest: int) -> Scratch:
    """Allocate the working space for `capacity` slots and rows of `longest` entries."""
    return Scratch(
        np.empty(capacity),
        np.empty(capacity, np.uint32),
        np.empty(longest + 8, np.uint32),
        np.empty(longest, np.uint64),
        np.empty(capacity, np.int64),
        np.empty(capacity),
        np.empty(capacity, np.int64),
        np.empty(capacity),
        np.empty(capacity),
    )
