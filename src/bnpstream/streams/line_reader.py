"""What readers of formats with a record a line share."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from bnpstream.streams.lines import Lines
from bnpstream.streams.records import Position, Records, Reject, UnusableError, beginning
from bnpstream.streams.source import Reader

__all__ = ["Batch", "Cut", "LineReader", "Parsed"]


class Cut(Protocol):
    """A file cut into records, each a line or some."""

    number: int
    """Lines given."""
    offset: int
    """Bytes given."""

    @property
    def began(self) -> int:
        """Return the number of the line that the last record began with."""

    def __iter__(self) -> Iterator[bytes]: ...

    def ready(self) -> bool:
        """Return whether the next record is there, without waiting for it."""

    def enter(self, start: Position) -> None:
        """Go to a position that an earlier reading has seen."""


class Parsed(NamedTuple):
    """What a line says."""

    row: Any
    id: str | int | None = None
    """What the record calls itself, if it does."""
    excerpt: str | None = None


class LineReader(Reader):
    """Reads a file with a record a line; blank lines are no records."""

    @abstractmethod
    def parse(self, line: bytes) -> Parsed:
        """Return what a record says; UnusableError tells why it is rejected."""

    @abstractmethod
    def gather(self, rows: list[Any]) -> Any:
        """Return the rows of a batch as the schema wants them."""

    def cut(self) -> "Cut":
        """Return the lines of the file."""
        return Lines(self.file, self.options.max_line_bytes)

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after a position, and the position after each batch."""
        lines = self.cut()
        lines.enter(start)
        is_plain, max_bytes = self.file.is_plain, self.options.max_line_bytes
        batch = Batch(self.file.path, start.records)
        in_file = start.in_file
        room = batch_rows - in_file % batch_rows
        for line in lines:
            if lines.began == 1:
                in_file = 0
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
                yield batch.records(self.gather), position
                batch = Batch(self.file.path, batch.next_number)
                room = batch_rows - in_file % batch_rows


class Batch:
    """Gathers the records of a batch.

    Parameters
    ----------
    source : str
        Name of the file.
    next_number : int
        Number of its first record in the whole source.
    """

    def __init__(self, source: str, next_number: int) -> None:
        self._source = source
        self.next_number = next_number
        self._rows: list[Any] = []
        self._numbers: list[int] = []
        self._ids: list[str | int] = []
        self._excerpts: list[str] = []
        self._rejects: list[Reject] = []

    def __bool__(self) -> bool:
        return bool(self._rows or self._rejects)

    def add(self, parsed: Parsed) -> None:
        """Append a record."""
        row, id_, excerpt = parsed
        self._rows.append(row)
        self._numbers.append(self.next_number)
        self._ids.append(self.next_number if id_ is None else id_)
        if excerpt is not None:
            self._excerpts.append(excerpt)
        self.next_number += 1

    def reject(self, line: int, reason: str, record: bytes | str) -> None:
        """Note a record that cannot be used."""
        self._rejects.append(
            Reject(self._source, line, self.next_number, reason, beginning(record))
        )
        self.next_number += 1

    def records(self, gather: Callable[[list[Any]], Any]) -> Records:
        """Return what was gathered."""
        return Records(gather(self._rows), self._numbers, self._ids, self._excerpts, self._rejects)
