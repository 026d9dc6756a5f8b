"""Rows to be absorbed, and the results."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.engine.encoder import Encoder
from bnpstream.engine.prefix import Prefix
from bnpstream.inference.visits import Absorbed, Record
from bnpstream.kernels.arrays import Floats


class Checked(NamedTuple):
    """Validated rows that can be absorbed."""

    encoder: Encoder
    rows: Any
    """Prepared by the encoder; or as given, if they will be kept."""
    n_rows: int
    weights: Floats | None
    stamps: Floats | None
    prefix: Prefix | None
    """The prefix including these rows, if they will be kept."""


class Told:
    """Collects the results for the rows of a call; some may be absorbed later.

    Parameters
    ----------
    places : ndarray, optional
        Position of each row that counts, among all rows to be absorbed.
    n_waited : int
        Number of all rows that had waited.
    """

    def __init__(self, places: NDArray[np.intp] | None = None, n_waited: int = 0) -> None:
        self.places = np.arange(0) if places is None else places
        self.n_waited = n_waited
        self.records: list[Record] = []
        self.n_revised = 0

    def after(self, n_rows: int) -> "Told":
        """Return this for a call whose rows come after this many waiting ones."""
        if n_rows == 0:
            return self
        places = np.append(np.arange(n_rows), n_rows + self.places)
        return Told(places, n_rows + self.n_waited)

    def of_call(self, records: list[Record], n_revised: int) -> "Absorption | None":
        """Return the results for all rows absorbed since the call, these records last.

        The first `n_revised` rows of these records were revised.
        """
        if n_revised > 0:
            self.n_revised = n_revised + sum(len(record.rows.ids) for record in self.records)
        self.records += records
        if not self.records:
            return None
        absorbed = Absorbed.of(self.records)
        places = self.places[: absorbed.rows.ids.size]
        return Absorption(absorbed, places, self.n_waited, self.n_revised)

    @staticmethod
    def of_waiting(records: list[Record]) -> "Absorption":
        """Return the results for rows that waited, from these records alone."""
        absorbed = Absorbed.of(records)
        n = absorbed.rows.ids.size
        return Absorption(absorbed, np.arange(n), n, n_revised=0)


class Absorption(NamedTuple):
    """Results for the rows absorbed by one call."""

    absorbed: Absorbed
    """Results per row, those that had waited in the prefix first; without rows of weight zero."""
    places: NDArray[np.intp]
    """Position of each of these rows among all rows to be absorbed."""
    n_waited: int
    """Number of all rows that had waited."""
    n_revised: int
    """Number of these rows, from the first on, that were revisited after they arrived, or that
    arrived before clusters were merged."""

    def own(self) -> "Absorption":
        """Return the results for the rows of the call alone."""
        if self.n_waited == 0:
            return self
        first = int(np.searchsorted(self.places, self.n_waited))
        places = self.places[first:] - self.n_waited
        n_revised = max(self.n_revised - first, 0)
        return Absorption(self.absorbed.part(first), places, 0, n_revised)
