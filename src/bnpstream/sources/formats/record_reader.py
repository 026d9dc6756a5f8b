"""Records read one by one: gathered into batches, and read from files with one per line."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from bnpstream.sources.files.lines import Lines
from bnpstream.sources.files.position import Position, too_short
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.rows import DocumentRows, TextRows, excerpt_of_text, gather_cells
from bnpstream.sources.formats.vectors import gather_vectors
from bnpstream.sources.records import (
    Options,
    Place,
    Records,
    Reject,
    Schema,
    UnusableError,
    beginning,
)

PEEKED_RECORDS = 1000
"""Most records used to determine the schema."""


class Parsed(NamedTuple):
    """A parsed record."""

    row: Any
    """A text, counts by word, a vector, or cells of a table."""
    id: str | int | None = None
    """Its own id, if it has one."""
    excerpt: str | None = None
    """What people see of counts or of a vector; a text needs none."""
    time: float | None = None


class Gatherer:
    """Gathers records into batches.

    Parameters
    ----------
    source : str
        Name of the file.
    schema : Schema
        Schema of the rows.
    next_number : int
        Number of the next record in the whole source.
    """

    def __init__(self, source: str, schema: Schema, next_number: int) -> None:
        self._source = source
        self._rows_of: Callable[[Any], Any]
        self._has_texts = schema.kind != "table" and "counts" not in schema.fields
        if "vector" in schema.fields:
            self._rows_of = partial(gather_vectors, length=schema.n_features or 0)
        elif schema.kind == "table":
            self._rows_of = partial(gather_cells, types=schema.types or ())
        else:
            self._rows_of = TextRows(schema) if self._has_texts else DocumentRows(schema)
        self.next_number = next_number
        self._batch = Records([], [], [])

    def __bool__(self) -> bool:
        return bool(self._batch.numbers or self._batch.rejects)

    def add(self, parsed: Parsed) -> None:
        """Append a record."""
        row, id_, excerpt, time = parsed
        if excerpt is not None:
            self._batch.excerpts.append(excerpt)
        if time is not None:
            self._batch.times.append(time)
        self.extend([row], [id_])

    def extend(self, rows: Sequence[Any], ids: Sequence[str | int | None]) -> None:
        """Append records without excerpts and times."""
        batch, numbers = self._batch, range(self.next_number, self.next_number + len(rows))
        batch.rows.extend(rows)
        batch.numbers.extend(numbers)
        batch.ids.extend(
            [number if id_ is None else id_ for number, id_ in zip(numbers, ids, strict=True)]
        )
        self.next_number += len(rows)

    def reject(self, line: int, reason: str, record: bytes | str) -> None:
        """Note a record that cannot be used."""
        reject = Reject.at(self.place(line), self.next_number, reason, beginning(record))
        self._batch.rejects.append(reject)
        self.next_number += 1

    def place(self, line: int) -> Place:
        """Return the place of a record that starts at a line."""
        return Place(self._source, line)

    def take(self) -> Records:
        """Return the batch, and start the next one."""
        batch, self._batch = self._batch, Records([], [], [])
        excerpts = list(map(excerpt_of_text, batch.rows)) if self._has_texts else batch.excerpts
        return replace(batch, rows=self._rows_of(batch.rows), excerpts=excerpts)


class LineParser(ABC):
    """Turns lines, or messages treated as lines, into records; blank ones are skipped.

    Parameters
    ----------
    schema : Schema
        Schema of the records.
    options : Options
        The user's options.
    """

    def __init__(self, schema: Schema, options: Options) -> None:
        self.schema, self.options = schema, options

    @abstractmethod
    def parse(self, line: bytes) -> Parsed:
        """Parse a line; UnusableError says why it is rejected."""

    def add(self, lines: Sequence[bytes], number: int, batch: Gatherer) -> int:
        """Add the records in lines, given the number of the first; return how many there are."""
        n_before, max_bytes = batch.next_number, self.options.max_line_bytes
        for i, line in enumerate(lines):
            if not line or line.isspace():
                continue
            try:
                if len(line) > max_bytes:
                    raise UnusableError(f"longer than {max_bytes} bytes")
                batch.add(self.parse(line))
            except UnusableError as error:
                batch.reject(number + i, str(error), line)
        return batch.next_number - n_before


class LineReader(Reader, LineParser):
    """Reads a file with one record per line."""

    def cut(self) -> Lines:
        """Return the lines of the file."""
        return Lines(self.file, self.options.max_line_bytes)

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after a position, and the position after each batch.

        If the file is damaged, the records before the damage come first, then the error.
        """
        lines = self.cut()
        lines.enter(start)
        self._skip(lines, start)
        batch = Gatherer(self.file.path, self.schema, start.records)
        in_file, begun = start.in_file, lines.begun
        room, damage = batch_rows - in_file % batch_rows, None
        while damage is None:
            try:
                taken = lines.take(room)
            except ValueError as error:
                taken, damage = [], error
            if not taken:
                break
            if lines.begun != begun:
                begun, in_file = lines.begun, 0
            number = lines.began - len(taken) + 1
            n_records = self.add(taken, number, batch) if any(taken) else 0
            in_file, room = in_file + n_records, room - n_records
            try:
                is_due = room == 0 or not lines.ready()
            except ValueError as error:
                is_due, damage = True, error
            if is_due and batch:
                yield batch.take(), self._after(batch, lines, start.file, in_file)
                room = batch_rows - in_file % batch_rows
        if batch:  # only blank lines followed
            yield batch.take(), self._after(batch, lines, start.file, in_file)
        if damage is not None:
            raise damage

    def _after(self, batch: Gatherer, lines: Lines, file: int, in_file: int) -> Position:
        """Return the position after everything gathered."""
        position = Position(batch.next_number, file, in_file)
        if not lines.may_be_entered:
            return position
        if not self.file.is_plain:
            return position._replace(line=lines.number)
        return position._replace(line=lines.number, offset=lines.offset, head=lines.head)

    def _skip(self, lines: Lines, start: Position) -> None:
        """Skip the records before a position without a known line."""
        left = start.in_file if start.line == 0 else 0
        while left > 0:
            taken = lines.take(left)
            if not taken:
                raise too_short(self.file.path, start.in_file - left, "records", start.in_file)
            left -= sum(bool(line) and not line.isspace() for line in taken)


def decode(line: bytes) -> str:
    """Return a line as text; UnusableError if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise UnusableError(f"not UTF-8: {error.reason} at byte {error.start + 1}") from error
