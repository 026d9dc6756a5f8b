"""The last rows of a stream, kept with their sites so that they can be revisited."""

from collections.abc import Callable

import numpy as np

from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch
from bnpstream.mixture.sites import SiteBuffer


class Window:
    """Rows in order of arrival, and what each contributed to the posterior.

    Parameters
    ----------
    keep_rows : bool
        Whether the rows are kept too, or only their sites.

    Attributes
    ----------
    sites : SiteBuffer
        One site per row.
    """

    def __init__(self, *, keep_rows: bool = True) -> None:
        self.sites = SiteBuffer()
        self.keep_rows = keep_rows
        self._parts: list[Batch] = []
        # Runs of rows that have faded alike, oldest first, with their weights; later rows are not
        # included.
        self._cohorts: list[tuple[int, float]] = []

    @property
    def n_rows(self) -> int:
        """Return the number of rows held."""
        return self.sites.n_visited

    def prepare(self, *, size: int | None, keep_rows: bool) -> None:
        """Prepare for a schedule; freeze what it could not revisit.

        Parameters
        ----------
        size : int or None
            Most rows it will hold; None for any number.
        keep_rows : bool
            Whether rows will be needed, or only sites.
        """
        if keep_rows and not self.keep_rows:
            self.freeze(self.n_rows)
        if size == 0:
            self.freeze(self.n_rows)
        self.keep_rows = keep_rows
        if not keep_rows:
            self._parts = []

    def append(self, batch: Batch, sites: SiteBuffer) -> None:
        """Add rows that have been visited."""
        if self.keep_rows:
            self._parts.append(batch)
        self.sites.extend(sites)

    def rows(self) -> Batch:
        """Return all rows as one batch, with their initial weights."""
        if len(self._parts) != 1:
            self._parts = [type(self._parts[0]).joined(self._parts)]
        return self._parts[0]

    def change_rows(self, change: Callable[[Batch], Batch]) -> None:
        """Replace the rows by the result of a function; their sites stay."""
        if self._parts:
            self._parts = [change(self.rows())]

    def batch(self) -> Batch:
        """Return all rows as one batch, with their current weights."""
        rows, fading = self.rows(), self.fading
        return rows if fading is None else rows.weighted(rows.row_weights * fading)

    @property
    def fading(self) -> Floats | None:
        """Return the weight of each row after forgetting, or None if nothing was forgotten."""
        if not self._cohorts:
            return None
        counts, left = zip(*self._cohorts, strict=True)
        return np.append(np.repeat(left, counts), np.ones(self.n_rows - sum(counts)))

    def set_fading(self, fading: Floats) -> None:
        """Set the weight of each row after forgetting."""
        starts = np.flatnonzero(np.diff(fading, prepend=np.nan) != 0.0)
        counts = np.diff(starts, append=fading.size)
        self._cohorts = list(zip(counts.tolist(), fading[starts].tolist(), strict=True))

    def fade(self, factor: float) -> None:
        """Multiply the weights of all rows by a factor."""
        new = self.n_rows - sum(count for count, _ in self._cohorts)
        cohorts = [*self._cohorts, (new, 1.0)] if new > 0 else self._cohorts
        self._cohorts = [(count, left * factor) for count, left in cohorts]

    def freeze_faint(self, least: float) -> None:
        """Freeze rows with less weight than `least`, because a revisit would change nothing."""
        faint = sum(count for count, left in self._cohorts if left < least)
        if faint > 0:
            self.freeze(faint)

    def freeze(self, rows: int) -> None:
        """Freeze the oldest rows: they can no longer be revisited."""
        if rows == 0:
            return
        if self.keep_rows and self.n_rows > 0:
            self._parts = [self.rows().part(rows, self.n_rows)]
        self.sites.forget(rows)
        cohorts: list[tuple[int, float]] = []
        for count, left in self._cohorts:
            frozen = min(rows, count)
            rows -= frozen
            if count > frozen:
                cohorts.append((count - frozen, left))
        self._cohorts = cohorts
