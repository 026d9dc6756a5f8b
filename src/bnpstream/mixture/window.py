"""The last rows of a stream, kept with their sites so that they can be revisited."""

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
        One site a row.
    """

    def __init__(self, *, keep_rows: bool = True) -> None:
        self.sites = SiteBuffer()
        self.keep_rows = keep_rows
        self._parts: list[Batch] = []

    @property
    def n_rows(self) -> int:
        """Return the number of rows held."""
        return self.sites.n_visited

    def prepare(self, *, size: int | None, keep_rows: bool) -> None:
        """Make ready for a schedule; what it could not revisit is frozen.

        Parameters
        ----------
        size : int or None
            Rows it will hold; None for any number.
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

    def batch(self) -> Batch:
        """Return all rows as one batch."""
        if len(self._parts) != 1:
            self._parts = [type(self._parts[0]).joined(self._parts)]
        return self._parts[0]

    def freeze(self, rows: int) -> None:
        """Let go of the oldest rows: they can no longer be revisited."""
        if self.keep_rows and self.n_rows > 0:
            self._parts = [self.batch().part(rows, self.n_rows)]
        self.sites.forget(rows)
