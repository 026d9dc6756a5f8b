"""Files of entries ``row column value``, sorted by row, after a header with their number."""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.text.digits import COUNTS, ONES, REALS, WHOLE
from bnpstream.kernels.text.parser import Progress, Rules, parse_entries
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.lines import unexpected_line
from bnpstream.sources.formats.number_reader import NumberReader
from bnpstream.sources.formats.numerals import fields_of, read_value, read_whole
from bnpstream.sources.formats.row_builder import Building
from bnpstream.sources.formats.schemas import check_features, number_schema
from bnpstream.sources.records import Options, Schema

MOST_EMPTY, MOST_EMPTY_PER_ENTRY = 10**6, 100
"""Empty rows allowed: at least this many, or this many per entry."""
MOST_STRAYS = 1000
"""With more entries out of order than this, the file is sorted otherwise, or not at all."""


class Wording(NamedTuple):
    """A format's own terms, for messages."""

    entry: str
    row: str
    column: str
    row_source: str
    """The line with the number of rows."""
    column_source: str
    entry_source: str


class Header(NamedTuple):
    """What a file announces: number of rows, columns and entries; and the length of the header."""

    n_rows: int
    n_columns: int
    n_entries: int
    n_lines: int
    values: int
    """Kind of values: `ONES`, `WHOLE`, `COUNTS` or `REALS`."""
    wording: Wording


def _sensible(header: Header, file: ByteReader) -> Header:
    """Return a header; ValueError if nearly all rows that it announces would be empty."""
    n_rows, n_entries, wording = header.n_rows, header.n_entries, header.wording
    if n_rows > MOST_EMPTY and n_rows > MOST_EMPTY_PER_ENTRY * n_entries:
        raise ValueError(
            f"{file.path}: {wording.row_source} announces {n_rows} {wording.row}s, but "
            f"{wording.entry_source} {n_entries} entries, so nearly all would be empty: "
            "correct the header"
        )
    return header


class EntryReader(NumberReader):
    """Reads the rows of a file of entries."""

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._header = header = _sensible(self.read_header(file), file)
        check_features(file, header.n_columns, schema)
        self.rules = Rules(header.n_columns, 1, header.values, options.max_line_bytes)
        self.n_header_lines = header.n_lines

    @classmethod
    @abstractmethod
    def read_header(cls, file: ByteReader) -> Header:
        """Return what the first lines announce, without taking them."""

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return the schema, from the header and the vocabulary."""
        header = _sensible(cls.read_header(file), file)
        is_real = header.values == REALS
        return number_schema(cls.format, file, header.n_columns, options, is_real=is_real)

    @property
    def n_records(self) -> int:
        """Return the number of rows that the header announces."""
        return self._header.n_rows

    def parse(self, text: NDArray[np.uint8], building: Building) -> Progress:
        """Parse regular lines; return how far that went."""
        announced = (self._header.n_rows, self._header.n_entries)
        start, before = building.progress, building.first
        return Progress(*parse_entries(text, start, before, announced, self.rules, building.room))

    def judge(self, line: bytes, building: Building) -> bool:
        """Take or reject one entry; return False if it belongs to the next batch."""
        fields = fields_of(line)
        if not fields and len(line) <= self.rules.max_line_bytes:
            return True
        header, wording, number = self._header, self._header.wording, building.progress.n_lines + 1
        if building.progress.n_seen == header.n_entries:
            expected = f"the end of the file after {header.n_entries} entries, as"
            expected = f"{expected} {wording.entry_source} announces"
            raise unexpected_line(self.file.path, number, line, expected)
        row = read_whole(fields[0]) if fields else None
        stray = None
        if row is not None and not building.current < row <= header.n_rows:
            stray = row - 1 if 1 <= row <= header.n_rows else building.current
        elif row is not None:
            building.close(min(row - 1 - building.first, building.room.ends.size))
            if building.is_complete:
                return False
        building.progress = building.progress._replace(n_seen=building.progress.n_seen + 1)
        numbers = self._numbers(fields)
        expected = self._expected(len(line), numbers, building.current + 1)
        if numbers is not None and not expected:
            building.append([numbers[1] - 1], [numbers[2]])
            return True
        if stray is not None and building.n_strays == MOST_STRAYS:
            raise ValueError(
                f"{self.file.path}, line {number}: more than {MOST_STRAYS} entries are out of "
                f"order: sort them by {wording.row}"
            )
        building.reject(line, expected, stray=stray)
        return True

    def check_end(self, building: Building) -> None:
        """Raise ValueError if entries are missing."""
        n_seen, n_lines = building.progress.n_seen, building.progress.n_lines
        if n_seen < self._header.n_entries:
            raise ValueError(
                f"{self.file.path}: the file is truncated, it ends after line {n_lines} with "
                f"{n_seen} entries; expected the {self._header.n_entries} that "
                f"{self._header.wording.entry_source} announces: fetch it again, or correct the "
                "header"
            )

    def _numbers(self, fields: list[bytes]) -> tuple[int, int, float] | None:
        """Return row, column and value of an entry, or None if they are malformed."""
        kind = self.rules.values
        if len(fields) != (2 if kind == ONES else 3):
            return None
        row, column = read_whole(fields[0]), read_whole(fields[1])
        value = 1 if kind == ONES else read_value(fields[2], kind)
        return None if row is None or column is None or value is None else (row, column, value)

    def _expected(
        self, n_bytes: int, numbers: tuple[int, int, float] | None, least_row: int
    ) -> str:
        """Return what was expected instead of a line; "" if the line is valid."""
        header, wording, kind = self._header, self._header.wording, self.rules.values
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
        return "a count of at least 0" if kind == COUNTS and value < 0 else ""
