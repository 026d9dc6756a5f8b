"""The arrays of a posterior: open, add, grow, copy."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from bnpstream.kernels.arrays import (
    LOG_AUXILIARY,
    LOG_EVIDENCE,
    N_CLUSTERS,
    N_OBSERVATIONS,
    NEXT_ID,
    PAIR_ROUNDING,
    ROUNDING,
    TOTAL_MASS,
    Clusters,
    Floats,
    Integers,
)
from bnpstream.kernels.passes.steps import LARGEST_BELOW_ONE
from bnpstream.kernels.passes.visits import drop_cluster
from bnpstream.kernels.statistics.decay import clear_traces, drop_empty, fade_pairs, fade_rows
from bnpstream.kernels.statistics.table import (
    N_COLUMNS,
    Table,
    add_rows,
    count_entries,
    empty_table,
    lengthened,
    take_row,
    with_capacity,
)
from bnpstream.kernels.words.levels import LANES
from bnpstream.likelihoods import Likelihood, Row, plus
from bnpstream.mixture.tables import (
    Columns,
    HashedRows,
    dense_rows,
    first_columns,
    read_rows,
    rows_of,
    sparse_row,
    sparse_rows,
    write_rows,
)

FIRST_CAPACITY = 128
DOUBLE_UP_TO = 1024
LEAST_ENTRIES, DOUBLE_ENTRIES_UP_TO = 2**12, 2**17
"""Least growth of a hashed table, in entries, and the size up to which it is doubled: 1.5 MB."""
BLOCK_CELLS = 4_000_000


class MixtureState:
    """The posterior after some rows: everything that depends on history, and nothing else.

    Packed arrays with one slot per cluster; ids are stable, slots are not. There is always a free
    slot after the last cluster, and free slots are zero: that slot is the prior, so a new cluster
    is scored like any other.

    The scalars live in arrays too, so that compiled loops change them in place.

    Parameters
    ----------
    n_statistics : int
        D, the length of a row of sufficient statistics.
    paired : bool
        Whether the second half of a row holds the low digits of the first (`Likelihood.paired`).
    capacity : int
        Initial slots; a multiple of LANES.

    Attributes
    ----------
    arrays : Clusters
        The table of statistics; masses, log_vacancy and ids (capacity,); counters and totals.
    """

    def __init__(
        self, n_statistics: int, *, paired: bool = False, capacity: int = FIRST_CAPACITY
    ) -> None:
        self.paired = paired
        self.arrays = Clusters(
            empty_table(capacity, n_statistics, dense=paired),
            np.zeros(capacity),
            np.zeros(capacity),
            np.zeros(capacity, dtype=np.int64),
            np.zeros(3, dtype=np.int64),
            np.array([0.0, np.nan, 0.0]),
        )
        self._cache: tuple[Likelihood, Any] | None = None

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
        """Return log U at the last row (nan before the first), where the next search starts."""
        return float(self.arrays.totals[LOG_AUXILIARY])

    @auxiliary.setter
    def auxiliary(self, value: float) -> None:
        self.arrays.totals[LOG_AUXILIARY] = value

    @property
    def log_evidence(self) -> float:
        """Return the summed one-step-ahead log predictive of all rows."""
        return float(self.arrays.totals[LOG_EVIDENCE])

    @property
    def n_statistics(self) -> int:
        """Return D."""
        return int(self.arrays.table.shape[N_COLUMNS])

    @property
    def statistics(self) -> Floats:
        """Return the (K, D) summed sufficient statistics: a view if they are stored densely."""
        dense = dense_rows(self.arrays.table)
        return self.rows(np.arange(self.n_clusters)) if dense is None else dense[: self.n_clusters]

    @property
    def candidates(self) -> Any:
        """Return the (K + 1, D) statistics of the clusters and of a new one.

        A view if they are stored densely; else an object that can be indexed by [:, columns].
        """
        dense, slots = dense_rows(self.arrays.table), self.n_clusters + 1
        if dense is not None:
            return dense[:slots]
        return HashedRows(self.arrays.table, np.arange(slots))

    @property
    def nbytes(self) -> int:
        """Return the memory of the posterior, including free slots but not caches."""
        parts = (*self.arrays.table, *self.arrays[1:])
        return sum(part.nbytes for part in parts)

    def rows(self, slots: Integers) -> Floats:
        """Return the statistics of some clusters as an array of shape (len(slots), D)."""
        return self.first_columns(slots, self.n_statistics)

    def first_columns(self, slots: Integers, n_columns: int) -> Floats:
        """Return the first columns of some clusters as an array of shape (len(slots), n)."""
        return first_columns(self.arrays.table, slots, n_columns)

    def totals(self, n_columns: int) -> Floats:
        """Return the first columns of the statistics summed over all clusters."""
        dense = dense_rows(self.arrays.table)
        if dense is not None:
            return np.asarray(dense[: self.n_clusters, :n_columns].sum(axis=0))
        totals = np.zeros(n_columns)
        add_rows(self.arrays.table, self.n_clusters, totals)
        return totals

    def sparse_row(self, slot: int) -> tuple[Integers, Floats]:
        """Return the nonzero columns of a cluster, ascending, and their values."""
        return sparse_row(self.arrays.table, slot)

    def sparse_rows(self, slots: Integers) -> csr_array:
        """Return the nonzero statistics of some clusters, columns ascending."""
        return sparse_rows(self.arrays.table, slots)

    def blocks(self, slots: Integers | None = None) -> Iterator[Integers]:
        """Yield slots, by default all, in parts whose rows take at most 32 MB."""
        slots = np.arange(self.n_clusters) if slots is None else slots
        step = max(1, BLOCK_CELLS // self.n_statistics)
        for start in range(0, slots.size, step):
            yield slots[start : start + step]

    def distance(self, statistics: Any) -> float:
        """Return the largest difference to other statistics, a (K, D) array or sparse array."""
        if self.is_hashed:
            apart = csr_array(statistics) - self.sparse_rows(np.arange(self.n_clusters))
            return float(np.abs(apart.data).max(initial=0.0))
        parts = (np.abs(statistics[slots] - self.rows(slots)) for slots in self.blocks())
        return max((float(part.max(initial=0.0)) for part in parts), default=0.0)

    def cache(self, likelihood: Likelihood) -> Any:
        """Return what compiled scores need of the clusters; compiled loops keep it up to date."""
        if self._cache is None or self._cache[0] is not likelihood:
            arrays, self._cache = self.arrays, None  # free its memory for the new one
            made = likelihood.cache(arrays.table, arrays.masses, self.n_clusters)
            self._cache = (likelihood, made)
        return self._cache[1]

    def _read(self, slots: Integers, columns: Columns) -> Floats:
        """Return some columns of some clusters."""
        return read_rows(self.arrays.table, slots, columns)

    def _write(self, slots: Integers, columns: Columns, values: Floats) -> None:
        """Replace some columns of some clusters."""
        self._cache = None
        table = write_rows(self.arrays.table, slots, columns, values)
        self.arrays = self.arrays._replace(table=table)

    @property
    def masses(self) -> Floats:
        """Return the (K,) summed responsibilities S_k (a view)."""
        return self.arrays.masses[: self.n_clusters]

    @property
    def log_vacancy(self) -> Floats:
        """Return the (K,) log probabilities of being empty (a view)."""
        return self.arrays.log_vacancy[: self.n_clusters]

    @property
    def ids(self) -> Integers:
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
        slots = np.flatnonzero(responsibilities)
        before = self._read(slots, row.columns)
        added = row.weight * responsibilities
        after = plus(before, added[slots], row.values, paired=self.paired)
        self._write(slots, row.columns, after)
        self.masses[:] += added
        self.log_vacancy[:] += row.weight * log_vacancy_of(responsibilities)
        self.arrays.totals[TOTAL_MASS] += row.weight

    def count_row(self, log_evidence: float) -> None:
        """Count one row seen for the first time, and its one-step-ahead log predictive."""
        self.arrays.counters[N_OBSERVATIONS] += 1
        self.arrays.totals[LOG_EVIDENCE] += log_evidence

    def take_out(self, slots: Integers, shares: Floats, row: Row) -> None:
        """Subtract what a row contributed to some clusters; the cavity is left."""
        before = self._read(slots, row.columns)
        taken = row.weight * shares
        after = plus(before, -taken, row.values, paired=self.paired)
        rounding = PAIR_ROUNDING if self.paired else ROUNDING
        nothing = np.abs(after) <= rounding * np.abs(before)
        if self.paired:
            nothing = np.tile(nothing[:, : before.shape[1] // 2], 2)
        self._write(slots, row.columns, np.where(nothing, 0.0, after))
        self.masses[slots] = np.maximum(self.masses[slots] - taken, 0.0)
        vacancy = self.log_vacancy[slots] - row.weight * log_vacancy_of(shares)
        self.log_vacancy[slots] = np.minimum(vacancy, 0.0)
        self.arrays.totals[TOTAL_MASS] -= float(taken.sum())

    def move(self, slot: int, row: Row, sign: float) -> None:
        """Add a whole row to a cluster, or take it out."""
        slots = np.array([slot])
        before = self._read(slots, row.columns)
        after = plus(before, np.array([sign]), row.values, paired=self.paired)
        self._write(slots, row.columns, after)
        self.masses[slot] += sign
        self.arrays.totals[TOTAL_MASS] += sign

    def drop(self, slot: int) -> int:
        """Remove a cluster; the last one takes its slot. Return the previous slot of that one."""
        arrays, last = self.arrays, self.n_clusters - 1
        if self._cache is not None:
            return int(drop_cluster(arrays, self._cache[1], slot))
        arrays.totals[TOTAL_MASS] -= arrays.masses[slot]
        take_row(arrays.table, slot, last)
        for part in (arrays.masses, arrays.log_vacancy, arrays.ids):
            part[slot] = part[last]
            part[last] = 0
        arrays.counters[N_CLUSTERS] = last
        return last

    def fade(self, factor: float, likelihood: Likelihood, *, thin: bool) -> None:
        """Multiply everything that rows have added by a factor below one.

        With `thin`, statistics that have become negligible (`Likelihood.negligible`) are set to
        zero, and hashed rows drop them.
        """
        arrays, K = self.arrays, self.n_clusters
        (fade_pairs if self.paired else fade_rows)(arrays.table, K, factor)
        if thin:
            clear_traces(arrays.table, K, likelihood.negligible)
        self.masses[:] *= factor
        self.log_vacancy[:] *= factor
        arrays.totals[TOTAL_MASS] *= factor
        if self._cache is not None:
            of, cache = self._cache
            lighter = of.faded_cache(cache, arrays.table, arrays.masses, K, exact=thin)
            self._cache = (of, lighter)
        if thin:  # last, because a cache finds what to lower from the columns that rows hold
            drop_empty(arrays.table, K)

    def merge(self, loser: int, winner: int, log_vacancy: float) -> int:
        """Add one cluster to another and drop it; return the slot that moved to its place.

        `log_vacancy` is that of the joint cluster: it does not follow from the two if they share
        rows.
        """
        slots = np.array([winner])
        columns, lost = self.sparse_row(loser)
        if self.paired:
            columns, lost = np.arange(self.n_statistics), self.rows(np.array([loser]))[0]
        before, cached = self._read(slots, columns), self._cache
        self._write(slots, columns, plus(before, np.ones(1), lost, paired=self.paired))
        arrays = self.arrays
        arrays.masses[winner] += arrays.masses[loser]
        if cached is not None:
            of, cache = cached
            merged = of.merged_cache(cache, arrays.table, arrays.masses, winner, columns)
            self._cache = None if merged is None else (of, merged)
        arrays.log_vacancy[winner] = log_vacancy
        arrays.masses[loser] = 0.0
        return self.drop(loser)

    def split(self, slot: int, moved: Row, masses: Floats, log_vacancy: Floats) -> int:
        """Move summed statistics from a cluster to a new one; return the slot of the new one.

        `masses` and `log_vacancy`, shape (2,), are those of the two afterwards.
        """
        total, new = self.total_mass, self.n_clusters
        self.take_out(np.array([slot]), np.ones(1), moved)
        self.open()
        self.move(new, moved, 1.0)
        self.masses[[slot, new]], self.log_vacancy[[slot, new]] = masses, log_vacancy
        self.arrays.totals[TOTAL_MASS] = total
        return new

    def restate(self, statistics: Any) -> None:
        """Replace the statistics of each cluster, (K, D) for any D."""
        self._cache = None
        table = rows_of(statistics, self.arrays.masses.size, dense=self.paired)
        self.arrays = self.arrays._replace(table=table)

    def rebuild(self, statistics: Any, masses: Floats, log_vacancy: Floats) -> None:
        """Replace the totals of each cluster, so that subtraction drift cannot grow."""
        self.restate(statistics)
        self.masses[:] = masses
        self.log_vacancy[:] = log_vacancy
        self.arrays.totals[TOTAL_MASS] = float(masses.sum())

    def make_room(self) -> None:
        """Grow if no slot would stay free after one more cluster.

        By doubling while small, then by a quarter.
        """
        old = self.arrays
        capacity = old.masses.size
        if self.n_clusters + 1 < capacity:
            return
        more = _grown(capacity) - capacity
        self.arrays = old._replace(
            table=with_capacity(old.table, capacity + more),
            masses=np.append(old.masses, np.zeros(more)),
            log_vacancy=np.append(old.log_vacancy, np.zeros(more)),
            ids=np.append(old.ids, np.zeros(more, np.int64)),
        )
        self._cache = None

    @property
    def is_hashed(self) -> bool:
        """Return whether rows are hash tables, which grow with what they hold."""
        return self.arrays.table.keys.size > 0

    @property
    def is_wide(self) -> bool:
        """Return whether rows are too long to be dense, like those of a growing vocabulary.

        Such rows are sums of doubles; pairs of doubles are always dense.
        """
        return self.is_hashed and self.n_statistics > BLOCK_CELLS

    @property
    def n_entries(self) -> int:
        """Return how many entries of a hashed table the clusters may take."""
        return int(count_entries(self.arrays.table, self.n_clusters))

    def capacity_within(self, nbytes: int) -> int:
        """Return how many slots a posterior of dense rows can grow to within this memory."""
        slot = 3 * 8 + 3 * 8 + 8 * self.n_statistics
        capacity, rest = self.arrays.masses.size, self.nbytes - self.arrays.masses.size * slot
        if rest + capacity * slot > nbytes:
            return 0
        while rest + _grown(capacity) * slot <= nbytes:
            capacity = _grown(capacity)
        return capacity

    def make_space(self, wanted: int) -> None:
        """Lengthen a hashed table so that a row with this many entries has space; none for 0.

        By doubling while small, then by a quarter.
        """
        if wanted > 0:
            table = self.arrays.table
            more = min(int(table.sizes.sum()), DOUBLE_ENTRIES_UP_TO)
            longer = lengthened(table, max(wanted, LEAST_ENTRIES, more))
            self.arrays = self.arrays._replace(table=longer)

    def compact(self) -> None:
        """Release the space of removed rows in a hashed table."""
        table = self.arrays.table
        live = 1 + int(table.sizes.sum())
        if self.is_hashed and live + live // 4 < table.values.size:
            self.arrays = self.arrays._replace(table=lengthened(table, 0))

    def copy(self) -> Self:
        """Return an independent copy."""
        other = type(self)(2, paired=self.paired)
        parts = [np.copy(part) for part in self.arrays[1:]]
        table = Table._make(part.copy() for part in self.arrays.table)
        other.arrays = Clusters._make([table, *parts])
        return other

    def follow(
        self, other: "MixtureState", n_kept: int, entries: tuple[Integers, Integers]
    ) -> None:
        """Become what another posterior is, reusing memory of the same size.

        Clusters in slots below `n_kept` are the same in both. The cache is kept too: it needs the
        slots and columns of all statistics that may be larger than when it was built.
        """
        sizes = self.arrays.masses.size, self.arrays.table.values.size
        self.arrays, cache = refilled(self.arrays, other.arrays), self._cache
        self._cache = None
        if sizes == (self.arrays.masses.size, self.arrays.table.values.size):
            self.grow_cache(cache, n_kept, entries)

    def become(self, other: "MixtureState", *, cached: bool = True) -> None:
        """Become a copy of another posterior, reusing memory that fits.

        With `cached` its cache is copied too.
        """
        self.arrays = refilled(self.arrays, other.arrays)
        cache, self._cache = self._cache, None
        if cached and other._cache is not None:
            of, source = other._cache
            self._cache = of, refilled(None if cache is None else cache[1], source)

    def grow_cache(
        self,
        cache: tuple[Likelihood, Any] | None,
        n_kept: int,
        entries: tuple[Integers, Integers],
    ) -> None:
        """Reuse a cache that was built before some entries, slots and columns, have grown.

        Clusters in slots below `n_kept` are the same as then. The cache of a growing vocabulary is
        rebuilt instead.
        """
        if cache is not None and not self.is_wide:
            of, found = cache
            arrays, K = self.arrays, self.n_clusters
            grown = of.grown_cache(found, arrays.table, arrays.masses, K, n_kept, entries)
            self._cache = (of, grown)

    def __getstate__(self) -> dict[str, Any]:
        return {"arrays": self.arrays, "paired": self.paired}  # the cache can be rebuilt

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.arrays, self.paired, self._cache = state["arrays"], state["paired"], None


def refilled(to: Any, source: Any) -> Any:
    """Return a copy of arrays, or of a tuple of them, in the memory of `to` if that fits."""
    if isinstance(source, tuple):
        parts = zip(to if isinstance(to, tuple) else [None] * len(source), source, strict=True)
        copies: Any = [refilled(*pair) for pair in parts]
        return type(source)(*copies) if hasattr(source, "_make") else tuple(copies)
    if not isinstance(source, np.ndarray):
        return source
    if isinstance(to, np.ndarray) and to.shape == source.shape and to.dtype == source.dtype:
        np.copyto(to, source)
        return to
    return source.copy()


def _grown(capacity: int) -> int:
    """Return the number of slots after those of a capacity are used up."""
    return capacity + (capacity if capacity < DOUBLE_UP_TO else capacity // (4 * LANES) * LANES)


def log_vacancy_of(responsibilities: Floats) -> Floats:
    """Return log(1 - q), finite at q = 1 so that it can be subtracted again."""
    return np.log1p(-np.minimum(responsibilities, LARGEST_BELOW_ONE))
