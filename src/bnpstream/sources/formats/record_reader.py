"""Records that are read one by one: gathered into batches, and out of a file with one per line."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from bnpstream.sources.files.lines import Lines
from bnpstream.sources.files.position import Position, too_short
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.rows import DocumentRows, gather_cells
from bnpstream.sources.records import Records, Reject, Schema, UnusableError, beginning

__all__ = ["PEEKED_RECORDS", "Gatherer", "LineReader", "Parsed", "decode"]

PEEKED_RECORDS = 1000
"""Records at most that tell what the others are."""


class Parsed(NamedTuple):
    """What a record says."""

    row: Any
    """Counts by word, or cells of a table."""
    id: str | int | None = None
    """What the record calls itself, if it does."""
    excerpt: str | None = None
    time: float | None = None


class Gatherer:
    """Gathers records, and makes batches of them.

    Parameters
    ----------
    source : str
        Name of the file.
    schema : Schema
        What rows are.
    next_number : int
        Number of the next record in the whole source.
    """

    def __init__(self, source: str, schema: Schema, next_number: int) -> None:
        self._source = source
        self._rows_of = (
            partial(gather_cells, types=schema.types or ())
            if schema.kind == "table"
            else DocumentRows(schema)
        )
        self.next_number = next_number
        self._batch = Records([], [], [])

    def __bool__(self) -> bool:
        return bool(self._batch.numbers or self._batch.rejects)

    def add(self, parsed: Parsed) -> None:
        """Append a record."""
        row, id_, excerpt, time = parsed
        batch = self._batch
        batch.rows.append(row)
        batch.numbers.append(self.next_number)
        batch.ids.append(self.next_number if id_ is None else id_)
        if excerpt is not None:
            batch.excerpts.append(excerpt)
        if time is not None:
            batch.times.append(time)
        self.next_number += 1

    def reject(self, line: int, reason: str, record: bytes | str) -> None:
        """Note a record that cannot be used."""
        shown = beginning(record)
        self._batch.rejects.append(Reject(self._source, line, self.next_number, reason, shown))
        self.next_number += 1

    def take(self) -> Records:
        """Return what was gathered, and begin the next batch."""
        batch, self._batch = self._batch, Records([], [], [])
        return replace(batch, rows=self._rows_of(batch.rows))


class LineReader(Reader):
    """Reads a file with one record per line; blank lines are no records."""

    @abstractmethod
    def parse(self, line: bytes) -> Parsed:
        """Return what a record says; UnusableError tells why it is rejected."""

    def cut(self) -> Lines:
        """Return the lines of the file."""
        return Lines(self.file, self.options.max_line_bytes)

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after a position, and the position after each batch."""
        lines = self.cut()
        lines.enter(start)
        is_plain, max_bytes = self.file.is_plain, self.options.max_line_bytes
        batch = Gatherer(self.file.path, self.schema, start.records)
        in_file, begun = start.in_file, lines.begun
        skip = start.in_file if start.line == 0 else 0
        room = batch_rows - in_file % batch_rows
        for line in lines:
            if skip > 0:
                skip -= bool(line) and not line.isspace()
                begun = lines.begun
                continue
            if lines.begun != begun:
                begun, in_file = lines.begun, 0
            if line and not line.isspace():
                try:
                    if len(line) > max_bytes:
                        raise UnusableError(f"longer than {max_bytes} bytes")
                    batch.add(self.parse(line))
                except UnusableError as error:
                    batch.reject(lines.began, str(error), line)
                in_file, room = in_file + 1, room - 1
            if room == 0 or (not lines.ready() and batch):
                offset = lines.offset if is_plain else None
                position = Position(batch.next_number, start.file, in_file, lines.number, offset)
                yield batch.take(), position
                room = batch_rows - in_file % batch_rows
        if skip > 0:
            raise too_short(self.file.path, start.in_file - skip, "records", start.in_file)


def decode(line: bytes) -> str:
    """Return a line as text; UnusableError if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise UnusableError(f"not UTF-8: {error.reason} at byte {error.start + 1}") from error
