"""Rows that are going to be absorbed, and what became of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.engine.encoder import Encoder
from bnpstream.engine.prefix import Prefix
from bnpstream.inference.visits import Absorbed
from bnpstream.kernels.arrays import Floats


class Checked(NamedTuple):
    """Rows that can be absorbed: everything that could be wrong with them was looked at."""

    encoder: Encoder
    rows: Any
    """Prepared by the encoder; or as given, if they are going to be kept."""
    n_rows: int
    weights: Floats | None
    stamps: Floats | None
    prefix: Prefix | None
    """The prefix with these rows, if they are going to be kept."""


class Absorption(NamedTuple):
    """What became of rows that were absorbed by one call."""

    absorbed: Absorbed
    """Of every row, those that had waited in the prefix first; rows of weight zero are left out."""
    places: NDArray[np.intp]
    """Where each of these rows is among all rows that were to be absorbed."""
    n_waited: int
    """How many of all rows had waited."""
    revised: bool
    """Whether earlier rows were revisited, or clusters merged, meanwhile."""

    def own(self) -> "Absorption":
        """Return what became of the rows of the call alone."""
        if self.n_waited == 0:
            return self
        first = int(np.searchsorted(self.places, self.n_waited))
        places = self.places[first:] - self.n_waited
        return Absorption(self.absorbed.part(first), places, 0, self.revised)
