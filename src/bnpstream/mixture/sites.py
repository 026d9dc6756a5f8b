"""What each row contributed to the posterior, kept if rows will be revisited."""

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from bnpstream.kernels.arrays import GONE, Floats, Integers, LatentSites, Sites
from bnpstream.kernels.statistics.table import DENSE_UP_TO
from bnpstream.likelihoods import Batch, Row
from bnpstream.mixture.contributions import Contributions
from bnpstream.mixture.state import log_vacancy_of


class SiteBuffer:
    """Sparse responsibilities of rows in order, growing at the end.

    Parameters
    ----------
    n_rows : int
        Number of rows to make space for; none has been visited.
    n_entries : int, optional
        Number of responsibilities to make space for; by default two per row.

    Attributes
    ----------
    contributions : Contributions or None
        What rows added to their clusters, if that is not t(x) for all of them
        (`Likelihood.latent`).
    """

    def __init__(self, n_rows: int = 0, n_entries: int | None = None) -> None:
        size = 2 * n_rows if n_entries is None else n_entries
        self.n_visited = 0
        self.arrays = Sites(
            np.zeros(n_rows + 1, np.int64), np.empty(size, np.int64), np.empty(size)
        )
        self.contributions: Contributions | None = None

    @property
    def n_entries(self) -> int:
        """Return the number of stored responsibilities."""
        return int(self.arrays.indptr[self.n_visited])

    def make_room(self, rows: int, entries: int) -> None:
        """Grow, by doubling, until `rows` rows fit and `entries` more responsibilities."""
        indptr, slots, shares = self.arrays
        missing = self.n_entries + entries - slots.size
        if rows < indptr.size and missing <= 0:
            return
        if rows + 1 > indptr.size:
            indptr = np.append(indptr, np.zeros(max(rows + 1 - indptr.size, indptr.size), np.int64))
        if missing > 0:
            extra = max(missing, slots.size)
            slots = np.append(slots, np.empty(extra, np.int64))
            shares = np.append(shares, np.empty(extra))
        self.arrays = Sites(indptr, slots, shares)

    def latent_arrays(self, rows: int, values: int, *, keeps: bool = True) -> LatentSites:
        """Return the arrays with what rows have added, and space for that of more rows.

        Parameters
        ----------
        rows : int
            Number of all rows.
        values : int
            Numbers that more rows will add.
        keeps : bool
            Whether what they add is kept.
        """
        kept = self._kept()
        kept.make_room(rows, values)
        return LatentSites(*self.arrays, *kept.arrays(), keeps)

    def reach(self, rows: int) -> None:
        """Count the sites of this many rows, which compiled loops have written."""
        self.n_visited = rows
        if self.contributions is not None:
            self.contributions.n_rows = rows

    def row(self, i: int) -> tuple[Integers, Floats]:
        """Return the slots and shares of row i (views)."""
        inside = slice(self.arrays.indptr[i], self.arrays.indptr[i + 1])
        return self.arrays.slots[inside], self.arrays.shares[inside]

    def added(self, i: int, row: Row) -> Row:
        """Return row i as its site has added it, with one line of values per cluster if latent."""
        slots, _ = self.row(i)
        if self.contributions is None or slots.size == 0:
            return row
        return row._replace(values=self.lines(i)[slots != GONE])

    def lines(self, i: int) -> Floats:
        """Return what row i has added to each of its clusters, one line each (a view)."""
        assert self.contributions is not None
        return self.contributions.row(i, self.row(i)[0].size)

    def append(self, slots: Integers, shares: Floats, lines: Floats | None = None) -> None:
        """Add the site of the next row, and the values that it has added if they are to be kept."""
        if lines is not None:
            self._kept().append(lines)
        self.make_room(self.n_visited + 1, slots.size)
        start = self.n_entries
        self.arrays.slots[start : start + slots.size] = slots
        self.arrays.shares[start : start + slots.size] = shares
        self.n_visited += 1
        self.arrays.indptr[self.n_visited] = start + slots.size

    def extend(self, other: Self) -> None:
        """Add the sites of more rows."""
        rows, entries = other.n_visited, other.n_entries
        self.make_room(self.n_visited + rows, entries)
        start = self.n_entries
        indptr = self.arrays.indptr[self.n_visited + 1 : self.n_visited + rows + 1]
        indptr[:] = other.arrays.indptr[1 : rows + 1] + start
        self.arrays.slots[start : start + entries] = other.arrays.slots[:entries]
        self.arrays.shares[start : start + entries] = other.arrays.shares[:entries]
        self.n_visited += rows
        if other.contributions is not None:
            self._kept().extend(other.contributions)

    def _kept(self) -> Contributions:
        """Return the contributions, which are kept from now on."""
        if self.contributions is None:
            self.contributions = Contributions()
        return self.contributions

    def part(self, start: int) -> Self:
        """Return a copy of the sites from row `start` on."""
        other = self.copy()
        other.forget(start)
        return other

    def replace(self, other: Self) -> None:
        """Take over the sites of another buffer."""
        self.n_visited, self.arrays = other.n_visited, other.arrays
        self.contributions = other.contributions

    def merge(self, loser: int, winner: int) -> None:
        """Give the shares of slot `loser` to slot `winner`.

        What a row has added to both is combined: the mean weighted by shares, for the summed share.
        """
        slots, shares = self.arrays.slots[: self.n_entries], self.arrays.shares[: self.n_entries]
        rows = np.repeat(
            np.arange(self.n_visited), np.diff(self.arrays.indptr[: self.n_visited + 1])
        )
        lost, winning = np.flatnonzero(slots == loser), np.flatnonzero(slots == winner)
        place = np.full(self.n_visited, GONE)
        place[rows[winning]] = winning
        slots[lost] = winner
        shared = lost[place[rows[lost]] != GONE]
        if self.contributions is not None:
            for entry, other in zip(shared.tolist(), place[rows[shared]].tolist(), strict=True):
                lines, weights = self.lines(int(rows[entry])), shares[[entry, other]]
                first = int(self.arrays.indptr[rows[entry]])
                both = lines[[entry - first, other - first]]
                lines[other - first] = weights @ both / weights.sum()
        shares[place[rows[shared]]] += shares[shared]
        slots[shared], shares[shared] = GONE, 0.0

    def divide(self, entries: Integers, parts: Floats, slots: Integers) -> None:
        """Give parts of some shares, by position, to other slots that none of the rows has.

        What the row has added per unit of responsibility is the same for both.
        """
        whole, some = parts == 1.0, np.flatnonzero((parts > 0.0) & (parts < 1.0))
        self.arrays.slots[entries[whole]] = slots[whole]
        some = some[np.argsort(entries[some])]
        indptr = self.arrays.indptr[: self.n_visited + 1]
        rows = np.searchsorted(indptr, entries[some], side="right") - 1
        ends, moved = indptr[rows + 1], parts[some] * self.arrays.shares[entries[some]]
        self.arrays.shares[entries[some]] -= moved
        if self.contributions is not None:
            longer, first = Contributions(), np.searchsorted(rows, np.arange(self.n_visited + 1))
            for i in range(self.n_visited):
                inside = entries[some[first[i] : first[i + 1]]] - indptr[i]
                longer.append(np.concatenate([self.lines(i), self.lines(i)[inside]]))
            self.contributions = longer
        added = np.append(0, np.cumsum(np.bincount(rows, minlength=self.n_visited)))
        self.arrays = Sites(
            indptr + added,
            np.insert(self.arrays.slots[: self.n_entries], ends, slots[some]),
            np.insert(self.arrays.shares[: self.n_entries], ends, moved),
        )

    def discard(self, start: int) -> None:
        """Drop the sites from row `start` on, which are the only ones left, but not the rows.

        They will not be revisited.
        """
        self.arrays.indptr[start : self.n_visited + 1] = 0
        if self.contributions is not None:
            self.contributions.discard(start)

    def relabel(self, dropped: int, moved: int) -> None:
        """Follow a drop: entries of `dropped` are gone, `moved` now has its slot."""
        slots = self.arrays.slots[: self.n_entries]
        was_dropped, was_moved = slots == dropped, slots == moved
        slots[was_moved] = dropped
        slots[was_dropped] = GONE

    def matrix(self, n_clusters: int) -> csr_array:
        """Return the responsibilities as a (rows, n_clusters) matrix, without dropped clusters."""
        indptr = self.arrays.indptr[: self.n_visited + 1]
        slots, shares = self.arrays.slots[: self.n_entries], self.arrays.shares[: self.n_entries]
        kept = slots != GONE
        ends = np.append(0, np.cumsum(kept))
        return csr_array(
            (shares[kept], slots[kept], ends[indptr]), shape=(self.n_visited, n_clusters)
        )

    def forget(self, rows: int) -> None:
        """Drop the sites of the first rows, which are frozen."""
        indptr, slots, shares = self.arrays
        start = indptr[rows]
        kept = self.n_visited - rows
        entries = self.n_entries - start
        indptr[: kept + 1] = indptr[rows : self.n_visited + 1] - start
        slots[:entries] = slots[start : start + entries].copy()
        shares[:entries] = shares[start : start + entries].copy()
        if self.contributions is not None:
            self.contributions = self.contributions.part(rows, self.n_visited)
        self.n_visited = kept

    def copy(self) -> Self:
        """Return an independent copy."""
        other = type(self)()
        other.n_visited = self.n_visited
        other.arrays = Sites._make(part.copy() for part in self.arrays)
        if self.contributions is not None:
            other.contributions = self.contributions.part(0, self.n_visited)
        return other


def totals(sites: SiteBuffer, batch: Batch, n_clusters: int) -> tuple[Any, Floats, Floats]:
    """Return statistics, masses and log vacancies of each cluster as the sum of the sites.

    The statistics of a wide sparse batch are sparse.
    """
    responsibilities = sites.matrix(n_clusters)
    weights = np.repeat(batch.row_weights, np.diff(responsibilities.indptr))
    vacancies = responsibilities.copy()
    vacancies.data = weights * log_vacancy_of(vacancies.data)
    responsibilities.data = weights * responsibilities.data
    statistics: Any = (
        batch.weighted_sums(responsibilities)
        if sites.contributions is None
        else _summed_contributions(sites, batch, n_clusters)
    )
    return (
        statistics,
        np.asarray(responsibilities.sum(axis=0)),
        np.asarray(vacancies.sum(axis=0)),
    )


def _summed_contributions(sites: SiteBuffer, batch: Batch, n_clusters: int) -> Any:
    """Return the (K, D) sum of what the sites have added, in order of rows; sparse if wide."""
    D = batch.n_statistics
    rows, columns, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    for i in range(sites.n_visited):
        row, (slots, shares) = sites.added(i, batch.row(i)), sites.row(i)
        there = slots != GONE
        at = np.arange(D) if isinstance(row.columns, slice) else row.columns
        rows.append(np.repeat(slots[there], at.size))
        columns.append(np.tile(at, np.count_nonzero(there)))
        values.append(((row.weight * shares[there])[:, None] * row.values).ravel())
    places = np.concatenate(rows), np.concatenate(columns)
    if D > DENSE_UP_TO:
        return csr_array((np.concatenate(values), places), shape=(n_clusters, D))
    sums = np.zeros((n_clusters, D))
    np.add.at(sums, places, np.concatenate(values))
    return sums
