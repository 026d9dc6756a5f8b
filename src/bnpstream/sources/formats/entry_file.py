"""Files of entries ``row column value``, sorted by row, after a header that says how many."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.text.digits import COUNTS, ONES, WHOLE
from bnpstream.kernels.text.parser import Progress, Rules, parse_entries
from bnpstream.sources.files.bad_lines import unexpected_line
from bnpstream.sources.formats.numerals import read_value, read_whole
from bnpstream.sources.formats.row_builder import Building

__all__ = ["EntryParser", "Header", "Wording"]

MOST_STRAYS = 1000
"""More entries out of order are no accident: the file is sorted in another way, or not at all."""


class Header(NamedTuple):
    """How many rows, columns and entries a file announces, and in how many lines it does."""

    n_rows: int
    n_columns: int
    n_entries: int
    n_lines: int


class Wording(NamedTuple):
    """What a format calls things, for people."""

    entry: str
    row: str
    column: str
    row_source: str
    """The line that says how many rows there are."""
    column_source: str
    entry_source: str


class EntryParser:
    """Knows what lines of entries mean.

    Parameters
    ----------
    path : str
        The file, for messages.
    header : Header
        What the file announces.
    values : int
        What values are: `ONES`, `WHOLE`, `COUNTS` or `REALS`.
    max_line_bytes : int
        A longer line is rejected.
    wording : Wording
        What the format calls things.
    """

    def __init__(
        self, path: str, header: Header, values: int, max_line_bytes: int, wording: Wording
    ) -> None:
        self._path, self._header, self._wording = path, header, wording
        self.rules = Rules(header.n_columns, 1, values, max_line_bytes)
        self.n_records: int | None = header.n_rows
        self.n_header_lines = header.n_lines
        self._n_strays = 0

    def parse(self, text: NDArray[np.uint8], building: Building) -> Progress:
        """Parse regular lines; return how far that went."""
        announced = (self._header.n_rows, self._header.n_entries)
        found: Progress = parse_entries(
            text, building.progress, building.first, announced, self.rules, building.room
        )
        return found

    def judge(self, line: bytes, building: Building) -> bool:
        """Take or reject one entry; return False if it is for the next batch."""
        fields = line.split()
        if not fields and len(line) <= self.rules.max_line_bytes:
            return True
        header, wording = self._header, self._wording
        if building.progress.n_seen == header.n_entries:
            raise unexpected_line(
                self._path,
                building.progress.n_lines + 1,
                line,
                f"the end of the file after {header.n_entries} entries, "
                f"as {wording.entry_source} announces",
            )
        row = read_whole(fields[0]) if fields else None
        is_stray = row is not None and not building.current < row <= header.n_rows
        if row is not None and not is_stray:
            n_records = row - 1 - building.first
            building.close(min(n_records, building.room.ends.size))
            if building.is_complete:
                return False
        building.progress = building.progress._replace(n_seen=building.progress.n_seen + 1)
        numbers = self._numbers(fields)
        expected = self._expected(len(line), numbers, building.current + 1)
        if expected is None and numbers is not None:
            building.append([numbers[1] - 1], [numbers[2]])
        else:
            self._n_strays += is_stray
            if self._n_strays > MOST_STRAYS:
                raise ValueError(
                    f"{self._path}, line {building.progress.n_lines + 1}: more than {MOST_STRAYS} "
                    f"entries are out of order: sort them by {wording.row}"
                )
            is_known = row is not None and 1 <= row <= header.n_rows
            stray = row - 1 if row is not None and is_known else building.current
            building.reject(line, expected or wording.entry, stray=stray if is_stray else None)
        return True

    def end_error(self, building: Building) -> ValueError | None:
        """Return what is wrong if entries are missing."""
        n_seen, n_lines = building.progress.n_seen, building.progress.n_lines
        if n_seen == self._header.n_entries:
            return None
        return ValueError(
            f"{self._path}: the file is truncated, it ends after line {n_lines} with {n_seen} "
            f"entries; expected the {self._header.n_entries} that {self._wording.entry_source} "
            "announces: fetch it again, or correct the header"
        )

    def _numbers(self, fields: list[bytes]) -> tuple[int, int, float] | None:
        """Return row, column and value as they are written, or None if they are not."""
        kind = self.rules.values
        if len(fields) != (2 if kind == ONES else 3):
            return None
        row, column = read_whole(fields[0]), read_whole(fields[1])
        value = 1 if kind == ONES else read_value(fields[2], kind)
        return None if row is None or column is None or value is None else (row, column, value)

    def _expected(
        self, n_bytes: int, numbers: tuple[int, int, float] | None, least_row: int
    ) -> str | None:
        """Say what should be there instead of a line; None if it is as it should be."""
        header, wording, kind = self._header, self._wording, self.rules.values
        if n_bytes > self.rules.max_line_bytes:
            return f"a line of at most {self.rules.max_line_bytes} bytes"
        if numbers is None:
            return wording.entry
        row, column, value = numbers
        if not 1 <= row <= header.n_rows:
            return f"a {wording.row} in 1..{header.n_rows}, as {wording.row_source} announces"
        if row < least_row:
            return f"a {wording.row} of at least {least_row}: sort the entries by {wording.row}"
        if not 1 <= column <= header.n_columns:
            return (
                f"a {wording.column} in 1..{header.n_columns}, as {wording.column_source} announces"
            )
        if kind == WHOLE and value < 1:
            return "a count of at least 1: leave out words that do not occur"
        if kind == COUNTS and value < 0:
            return "a count of at least 0"
        return None
