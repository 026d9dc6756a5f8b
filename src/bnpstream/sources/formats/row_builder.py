"""A batch of rows while it is being read."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from bnpstream.kernels.text.digits import COUNTS, REALS
from bnpstream.kernels.text.parser import Progress, Room, Rules
from bnpstream.sources.files.bad_lines import show
from bnpstream.sources.records import BEGINNING, Reject

__all__ = ["Building", "Taken"]

_FIRST_ROOM = 1 << 12


class Taken(NamedTuple):
    """Records that are complete."""

    rows: sparse.csr_array[Any]
    numbers: list[int]
    """Numbers of the rows in the file, from 0."""
    rejects: list[Reject]


class _Mark(NamedTuple):
    """A reject, and the record of the file with which it is delivered."""

    record: int
    spoils: bool
    """Whether that record is what is rejected."""
    reject: Reject


class Building:
    """A batch while it is being read.

    Parameters
    ----------
    rules : Rules
        What lines may be.
    source : str
        Name of the file.
    before : int
        Records that come before those of this file.

    Attributes
    ----------
    first : int
        Records of the file before this batch.
    progress : Progress
        Where the parser stands.
    room : Room
        What has been parsed; it holds as many records as the batch may have.
    """

    def __init__(self, rules: Rules, source: str, before: int) -> None:
        self.source, self.before = source, before
        # Much code that takes sparse matrices, scikit-learn's included, wants 32-bit indices.
        self._index_type = np.int32 if rules.n_columns <= np.iinfo(np.int32).max else np.int64
        self._n_columns, self._has_zeros = rules.n_columns, rules.values == COUNTS
        value_type = np.float64 if rules.values == REALS else np.int64
        self.room = Room(
            np.empty(_FIRST_ROOM, dtype=self._index_type),
            np.empty(_FIRST_ROOM, dtype=value_type),
            np.empty(0, dtype=np.int64),
        )
        self.first, self.progress = 0, Progress()
        self._marks: list[_Mark] = []
        self._spoilt = -1

    @property
    def is_complete(self) -> bool:
        """Return whether all records of the batch are there."""
        return self.progress.n_records == self.room.ends.size

    @property
    def current(self) -> int:
        """Return the number in the file of the record that is being read."""
        return self.first + self.progress.n_records

    @property
    def is_spoilt(self) -> bool:
        """Return whether the record that is being read is rejected already."""
        return self._spoilt == self.current

    def resize(self, n_records: int) -> None:
        """Let the batch have this many records."""
        self.room = self.room._replace(ends=np.empty(n_records, dtype=np.int64))

    def grow(self) -> None:
        """Make room for more entries."""
        columns, values, _ = self.room
        self.room = self.room._replace(
            columns=np.concatenate([columns, np.empty_like(columns)]),
            values=np.concatenate([values, np.empty_like(values)]),
        )

    def append(self, columns: Sequence[int], values: Sequence[float]) -> None:
        """Add entries to the record that is being read."""
        begin = self.progress.n_entries
        end = begin + len(columns)
        while self.room.columns.size < end:
            self.grow()
        self.room.columns[begin:end] = columns
        self.room.values[begin:end] = values
        self.progress = self.progress._replace(n_entries=end)

    def close(self, n_records: int) -> None:
        """Declare this many records of the batch complete."""
        self.room.ends[self.progress.n_records : n_records] = self.progress.n_entries
        self.progress = self.progress._replace(n_records=n_records)

    def reject(self, line: bytes, expected: str, *, stray: int | None = None) -> None:
        """Reject the record that is being read, or only a line that strayed from record `stray`."""
        if stray is None and self.is_spoilt:
            return
        number = self.before + (self.current if stray is None else stray)
        reject = Reject(
            self.source,
            self.progress.n_lines + 1,
            number,
            f"expected {expected}",
            show(line, BEGINNING),
        )
        self._marks.append(_Mark(self.current, stray is None, reject))
        if stray is None:
            self._spoilt = self.current

    def start_file(self) -> None:
        """Count records and lines anew, with those so far before them."""
        self.before += self.first
        self.first, self.progress, self._spoilt = 0, Progress(), -1

    def take(self, *, is_end: bool = False) -> Taken:
        """Take what is complete out of the batch; at the end of a broken file, all rejects too."""
        n_records, n_entries = self.progress.n_records, self.progress.n_entries
        columns, values, ends = self.room
        bounds = np.concatenate([[0], ends[:n_records]]).astype(self._index_type)
        used = int(bounds[-1])
        rows = sparse.csr_array(
            (values[:used].copy(), columns[:used].copy(), bounds),
            shape=(n_records, self._n_columns),
        )
        rows.sum_duplicates()
        if self._has_zeros:
            rows.eliminate_zeros()
        numbers = range(self.first, self.first + n_records)
        done = [mark for mark in self._marks if is_end or mark.record < numbers.stop]
        spoilt = {mark.record for mark in done if mark.spoils}
        kept = [number for number in numbers if number not in spoilt]
        if len(kept) < n_records:
            rows = rows[[number - self.first for number in kept]]
        self._marks = self._marks[len(done) :]
        columns[: n_entries - used] = columns[used:n_entries]
        values[: n_entries - used] = values[used:n_entries]
        self.first += n_records
        self.progress = self.progress._replace(n_records=0, n_entries=n_entries - used)
        return Taken(rows, kept, [mark.reject for mark in done])
