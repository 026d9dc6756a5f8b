"""The arrays of a posterior: open, add, grow, copy."""

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.adf import LARGEST_BELOW_ONE
from bnpstream.kernels.arrays import (
    LOG_AUXILIARY,
    LOG_EVIDENCE,
    N_CLUSTERS,
    N_OBSERVATIONS,
    NEXT_ID,
    ROUNDING,
    TOTAL_MASS,
    Clusters,
)
from bnpstream.likelihoods import Row

Floats = NDArray[np.float64]

FIRST_CAPACITY = 16


class MixtureState:
    """The posterior after some rows: whatever depends on history, and nothing else.

    Packed arrays with one slot a cluster, grown by doubling; ids are stable, slots are not.
    There is always a free slot after the last cluster, and free slots are zero: that slot is
    the prior, so a new cluster is scored like any other.

    The scalars live in arrays too, so that compiled loops change them in place.

    Attributes
    ----------
    arrays : Clusters
        statistics (capacity, D), masses, log_vacancy and ids (capacity,), counters and totals.
    """

    def __init__(self, n_statistics: int, memory_order: Literal["C", "F"]) -> None:
        self.arrays = Clusters(
            np.zeros((FIRST_CAPACITY, n_statistics), order=memory_order),
            np.zeros(FIRST_CAPACITY),
            np.zeros(FIRST_CAPACITY),
            np.zeros(FIRST_CAPACITY, dtype=np.int64),
            np.zeros(3, dtype=np.int64),
            np.array([0.0, np.nan, 0.0]),
        )

    @property
    def n_clusters(self) -> int:
        """Return K."""
        return int(self.arrays.counters[N_CLUSTERS])

    @property
    def n_observations(self) -> int:
        """Return the number of rows seen; schedules count these."""
        return int(self.arrays.counters[N_OBSERVATIONS])

    @property
    def next_id(self) -> int:
        """Return the id that the next new cluster will get."""
        return int(self.arrays.counters[NEXT_ID])

    @property
    def total_mass(self) -> float:
        """Return n of the prior's rule: the mass of all rows still remembered."""
        return float(self.arrays.totals[TOTAL_MASS])

    @property
    def auxiliary(self) -> float:
        """Return log U at the last row (nan before the first): where the next root is sought."""
        return float(self.arrays.totals[LOG_AUXILIARY])

    @auxiliary.setter
    def auxiliary(self, value: float) -> None:
        self.arrays.totals[LOG_AUXILIARY] = value

    @property
    def log_evidence(self) -> float:
        """Return the summed one-step-ahead log predictive of all rows."""
        return float(self.arrays.totals[LOG_EVIDENCE])

    @property
    def statistics(self) -> Floats:
        """Return the (K, D) summed sufficient statistics (a view)."""
        return self.arrays.statistics[: self.n_clusters]

    @property
    def candidates(self) -> Floats:
        """Return the (K + 1, D) statistics of the clusters and of a new one (a view)."""
        return self.arrays.statistics[: self.n_clusters + 1]

    @property
    def masses(self) -> Floats:
        """Return the (K,) summed responsibilities S_k (a view)."""
        return self.arrays.masses[: self.n_clusters]

    @property
    def log_vacancy(self) -> Floats:
        """Return the (K,) log probabilities of being empty (a view)."""
        return self.arrays.log_vacancy[: self.n_clusters]

    @property
    def ids(self) -> NDArray[np.int64]:
        """Return the (K,) stable ids (a view)."""
        return self.arrays.ids[: self.n_clusters]

    def open(self) -> None:
        """Turn the free slot into a cluster."""
        slot = self.n_clusters
        self.arrays.ids[slot] = self.next_id
        self.arrays.counters[[N_CLUSTERS, NEXT_ID]] += 1
        self.make_room()

    def add(self, responsibilities: Floats, row: Row) -> None:
        """Add one row with its responsibilities, shape (K,): Eq. (18)."""
        self.statistics[:, row.columns] += responsibilities[:, None] * row.values
        self.masses[:] += responsibilities
        self.log_vacancy[:] += log_vacancy_of(responsibilities)
        self.arrays.totals[TOTAL_MASS] += 1.0

    def count_row(self, log_evidence: float) -> None:
        """Count one row seen for the first time, and its one-step-ahead log predictive."""
        self.arrays.counters[N_OBSERVATIONS] += 1
        self.arrays.totals[LOG_EVIDENCE] += log_evidence

    def take_out(self, slots: NDArray[np.int64], shares: Floats, row: Row) -> None:
        """Subtract what a row contributed to some clusters: the cavity is left."""
        for slot, share in zip(slots, shares, strict=True):
            before = self.statistics[slot, row.columns]
            after = before - share * row.values
            left = np.where(np.abs(after) <= ROUNDING * np.abs(before), 0.0, after)
            self.statistics[slot, row.columns] = left
        self.masses[slots] = np.maximum(self.masses[slots] - shares, 0.0)
        vacancy = self.log_vacancy[slots] - log_vacancy_of(shares)
        self.log_vacancy[slots] = np.minimum(vacancy, 0.0)
        self.arrays.totals[TOTAL_MASS] -= float(shares.sum())

    def move(self, slot: int, row: Row, sign: float) -> None:
        """Add a whole row to a cluster, or take it out."""
        self.statistics[slot, row.columns] += sign * row.values
        self.masses[slot] += sign
        self.arrays.totals[TOTAL_MASS] += sign

    def drop(self, slot: int) -> int:
        """Remove a cluster; the last one takes its slot. Return the slot that one had."""
        last = self.n_clusters - 1
        arrays = self.arrays
        arrays.totals[TOTAL_MASS] -= arrays.masses[slot]
        for part in (arrays.statistics, arrays.masses, arrays.log_vacancy, arrays.ids):
            part[slot] = part[last]
            part[last] = 0
        arrays.counters[N_CLUSTERS] = last
        return last

    def merge(self, loser: int, winner: int, log_vacancy: float) -> int:
        """Add one cluster to another and drop it; return the slot that moved to its place.

        `log_vacancy` is the joint cluster's: it does not follow from the two where they share
        rows.
        """
        arrays = self.arrays
        arrays.statistics[winner] += arrays.statistics[loser]
        arrays.masses[winner] += arrays.masses[loser]
        arrays.log_vacancy[winner] = log_vacancy
        arrays.masses[loser] = 0.0
        return self.drop(loser)

    def rebuild(self, statistics: Floats, masses: Floats, log_vacancy: Floats) -> None:
        """Replace the totals of every cluster, so that subtraction drift cannot grow."""
        self.statistics[:] = statistics
        self.masses[:] = masses
        self.log_vacancy[:] = log_vacancy
        self.arrays.totals[TOTAL_MASS] = float(masses.sum())

    def make_room(self) -> None:
        """Double the capacity if no slot would stay free after one more cluster."""
        old = self.arrays
        capacity = old.masses.size
        if self.n_clusters + 1 < capacity:
            return
        order: Literal["C", "F"] = "F" if old.statistics.flags.f_contiguous else "C"
        statistics = np.zeros((2 * capacity, old.statistics.shape[1]), order=order)
        statistics[:capacity] = old.statistics
        self.arrays = old._replace(
            statistics=statistics,
            masses=np.append(old.masses, np.zeros(capacity)),
            log_vacancy=np.append(old.log_vacancy, np.zeros(capacity)),
            ids=np.append(old.ids, np.zeros(capacity, np.int64)),
        )

    def copy(self) -> Self:
        """Return an independent copy."""
        other = type(self).__new__(type(self))
        other.arrays = Clusters._make(part.copy(order="K") for part in self.arrays)
        return other


def log_vacancy_of(responsibilities: Floats) -> Floats:
    """Return log(1 - q), finite at q = 1 so that it can be subtracted again."""
    return np.log1p(-np.minimum(responsibilities, LARGEST_BELOW_ONE))
