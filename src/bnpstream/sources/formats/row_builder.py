"""A batch of rows while it is being read."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from bnpstream.kernels.text.digits import COUNTS, REALS
from bnpstream.kernels.text.parser import Progress, Room, Rules
from bnpstream.sources.files.position import Position
from bnpstream.sources.formats.rows import TOO_LONG, too_long
from bnpstream.sources.records import Place, Records, Reject, beginning

_FIRST_ROOM = 1 << 12


class _Mark(NamedTuple):
    """A reject, and the record of the file with which it is delivered."""

    record: int
    spoils: bool
    """Whether that record itself is rejected."""
    reject: Reject


class Building:
    """A batch while it is being read.

    Batches end at multiples of `batch_rows` records of a file.

    Parameters
    ----------
    rules : Rules
        What lines may contain.
    source : str
        Name of the file.
    batch_rows : int
        Most records in a batch.
    start : Position
        Earlier records of the file are not delivered.
    n_records : int, optional
        Records of the file, if known.

    Attributes
    ----------
    before : int
        Records before those of this file.
    first : int
        Records of the file before this batch.
    skip : int
        Records of the file that are not delivered.
    offset : int
        Bytes of the file read so far.
    file_first : bytes
        The first of them.
    n_strays : int
        Lines found outside their record.
    progress : Progress
        State of the parser.
    room : Room
        Parsed entries; it has space for as many records as the batch may have.
    """

    def __init__(
        self, rules: Rules, source: str, batch_rows: int, start: Position, n_records: int | None
    ) -> None:
        self._source, self._batch_rows, self._n_records = source, batch_rows, n_records
        self.before, self.skip = start.records - start.in_file, start.in_file
        # Much code for sparse matrices, including scikit-learn's, wants 32-bit indices.
        self._index_type = np.int32 if rules.n_columns <= np.iinfo(np.int32).max else np.int64
        self._n_columns, self._has_zeros = rules.n_columns, rules.values == COUNTS
        self._has_counts = rules.values != REALS
        value_type = np.float64 if rules.values == REALS else np.int64
        self.room = Room(
            np.empty(_FIRST_ROOM, dtype=self._index_type),
            np.empty(_FIRST_ROOM, dtype=value_type),
            np.empty(0, dtype=np.int64),
        )
        self.first = self.offset = self.n_strays = 0
        self.file_first = b""
        self.progress = Progress()
        self._marks: list[_Mark] = []
        self._spoilt = -1
        self._resize()

    @property
    def is_complete(self) -> bool:
        """Return whether all records of the batch are there."""
        return self.progress.n_records == self.room.ends.size

    @property
    def is_wanted(self) -> bool:
        """Return whether the batch is to be delivered."""
        return self.first >= self.skip

    @property
    def current(self) -> int:
        """Return the number in the file of the record being read."""
        return self.first + self.progress.n_records

    def enter(self, start: Position) -> None:
        """Start in the middle of the file."""
        self.first, self.progress = start.in_file, Progress(n_lines=start.line)
        self._resize()

    def start_file(self) -> None:
        """Start counting records and lines for a new file; earlier records come before it."""
        self.before += self.first
        self.first, self.skip, self.progress, self._spoilt = 0, 0, Progress(), -1
        self._resize()

    def _resize(self) -> None:
        """Make the batch as large as it may be."""
        size = self._batch_rows - self.first % self._batch_rows
        if not self.is_wanted:
            size = min(size, self.skip - self.first)
        if self._n_records is not None:
            size = min(size, self._n_records - self.first)
        self.room = self.room._replace(ends=np.empty(size, dtype=np.int64))

    def grow(self) -> None:
        """Make space for more entries."""
        columns, values, _ = self.room
        self.room = self.room._replace(
            columns=np.concatenate([columns, np.empty_like(columns)]),
            values=np.concatenate([values, np.empty_like(values)]),
        )

    def append(self, columns: Sequence[int], values: Sequence[float]) -> None:
        """Add entries to the record being read."""
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
        """Reject the record being read, or only a line that belongs to record `stray`."""
        if stray is not None:
            self.n_strays += 1
        elif self._spoilt == self.current:
            return
        else:
            self._spoilt = self.current
        number = self.before + (self.current if stray is None else stray)
        line_number, reason = self.progress.n_lines + 1, f"expected {expected}"
        reject = Reject(
            self._source, line_number, number, reason, beginning(line), is_part=stray is not None
        )
        self._marks.append(_Mark(self.current, stray is None, reject))

    def _too_long(self, record: int) -> _Mark:
        """Return the mark of a record in the batch whose counts have too large a sum.

        Its lines are no longer known, so its place is its number in the file, from 1.
        """
        at = self.first + record
        place = Place(self._source, spot={"record": at + 1})
        return _Mark(at, True, Reject.at(place, self.before + at, TOO_LONG, ""))

    def take(self) -> Iterator[Records]:
        """Remove the complete records from the batch; yield them if they are to be delivered."""
        is_wanted, records = self.is_wanted, self._take(self.current)
        self._resize()
        if is_wanted:
            yield records

    def take_broken(self) -> Iterator[Records]:
        """Yield the complete records of a file that breaks off, and all rejects."""
        if not self.is_wanted:
            return
        if self._spoilt == self.current:
            self.close(self.progress.n_records + 1)
        records = self._take(self._marks[-1].record + 1 if self._marks else 0)
        if records.numbers or records.rejects:
            yield records

    def _take(self, marks_before: int) -> Records:
        """Remove records from the batch, with rejects of records before a number."""
        n_records, n_entries = self.progress.n_records, self.progress.n_entries
        columns, values, ends = self.room
        bounds = np.concatenate([[0], ends[:n_records]]).astype(self._index_type)
        used = int(bounds[-1])
        rows = sparse.csr_array(
            (values[:used].copy(), columns[:used].copy(), bounds),
            shape=(n_records, self._n_columns),
        )
        long = np.flatnonzero(too_long(rows)).tolist() if self._has_counts else []
        rows.sum_duplicates()
        if self._has_zeros:
            rows.eliminate_zeros()
        done = [mark for mark in self._marks if mark.record < marks_before]
        self._marks = self._marks[len(done) :]
        spoilt = {mark.record - self.first for mark in done if mark.spoils}
        done += [self._too_long(i) for i in long if i not in spoilt]
        spoilt.update(long)
        kept = [i for i in range(n_records) if i not in spoilt]
        if len(kept) < n_records:
            rows = rows[kept]
        numbers = [self.before + self.first + i for i in kept]
        columns[: n_entries - used] = columns[used:n_entries]
        values[: n_entries - used] = values[used:n_entries]
        self.first += n_records
        self.progress = self.progress._replace(n_records=0, n_entries=n_entries - used)
        return Records(rows, numbers, list(numbers), rejects=[mark.reject for mark in done])
