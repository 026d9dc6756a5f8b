"""A posterior with several copies, moved from version to version by changes.

Every copy gets the same changes in the same order and applies them to the same numbers, so a
version has the same bits everywhere, however it was reached.
"""

from copy import deepcopy
from typing import Any

import numpy as np

from bnpstream.engine.arrivals import Arrivals
from bnpstream.engine.encoder import FixedColumns
from bnpstream.engine.parallel.changes import (
    Added,
    Assigned,
    OpenedStream,
    Resolution,
    Whole,
    without_history,
)
from bnpstream.engine.phase import Phase
from bnpstream.engine.stream import Stream
from bnpstream.kernels.arrays import Integers
from bnpstream.mixture import MixtureState

NOTHING = -1
NOWHERE: tuple[Integers, Integers] = (np.empty(0, np.int64), np.empty(0, np.int64))


class Replica:
    """A posterior and its version.

    Parameters
    ----------
    opened : OpenedStream
        Its stream is changed in place, or replaced if everything changes.
    version : int
        Number of parts that it contains.
    """

    def __init__(self, opened: OpenedStream, version: int) -> None:
        self.opened, self.version = opened, version
        self._spare: MixtureState | None = None
        self._part, self._kept, self._grown = NOTHING, 0, [NOWHERE]

    @property
    def stream(self) -> Stream:
        """Return the posterior."""
        return self.opened.stream

    def working_copy(self) -> OpenedStream:
        """Return an independent copy to absorb rows with.

        If it is given back (`give_back`), the next copy reuses its arrays, and only grown parts of
        its cache are rebuilt.
        """
        stream, spare = self.stream, self._spare
        fixed: list[Any] = [stream.prior, stream.given_prior]
        if isinstance(stream.encoder, FixedColumns):
            fixed.append(stream.likelihood)
        shared: dict[int, Any] = {id(x): x for x in fixed}
        self._spare = None
        if stream.phase is Phase.RUNNING:
            state = stream.state
            if spare is None:
                spare = state.copy()
            else:
                slots, columns = (np.concatenate(x) for x in zip(*self._grown, strict=True))
                spare.follow(state, self._kept, (slots, columns))
            shared[id(state)] = spare
        working: OpenedStream = deepcopy(without_history(self.opened), shared)
        return working

    def give_back(self, state: MixtureState, part: int) -> None:
        """Take back the posterior of a working copy.

        Parameters
        ----------
        state : MixtureState
            Rows were only added to its clusters, and new clusters opened.
        part : int
            The part that was absorbed.
        """
        self._spare, self._part = state, part
        self._kept, self._grown = self.stream.state.n_clusters, [NOWHERE]

    def take(self, change: Any, resolution: Resolution | None = None) -> None:
        """Apply the change by the next part, and become the next version.

        Parameters
        ----------
        change : Whole, Assigned, Added or None
            None: nothing changed.
        resolution : Resolution, optional
            For an `Added`.
        """
        match change:
            case Whole():
                change.opened.stream.lineage = self.stream.lineage
                self.opened, self._spare = change.opened, None
            case Assigned():
                self._note(change.apply(self.stream), change.entries.places)
            case Added():
                assert resolution is not None
                self._note(change.apply(self.stream, resolution), change.entries.places)
                if resolution.removed:
                    self._spare = None
        self.move_on()

    def move_on(self) -> None:
        """Become the next version: the next part is in the posterior."""
        self.stream.last, self.stream.arrivals = None, Arrivals()  # other replicas lack its rows
        self.version += 1

    def _note(self, slots: Integers, places: Integers) -> None:
        """Remember what may be larger than in the posterior that was given back.

        That posterior has what its own part added; changes by others there are noted anyway.
        """
        if self._spare is None:
            return
        rows, columns = np.divmod(places, self._spare.n_statistics)
        at = slots[rows]
        if self.version == self._part:
            new = at >= self._kept
            at, columns = at[new], columns[new]
        self._grown.append((at, columns))
