"""What readers of formats with a record a line share."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Protocol

from bnpstream.sources.files.position import Position
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.lines import Lines
from bnpstream.sources.formats.record_batch import Gatherer, Parsed
from bnpstream.sources.records import Records, UnusableError

__all__ = ["Cut", "LineReader"]


class Cut(Protocol):
    """A file cut into records, each a line or some."""

    number: int
    """Lines given."""
    offset: int
    """Bytes given."""
    begun: int
    """How often the first line of a file was given."""

    @property
    def began(self) -> int:
        """Return the number of the line that the last record began with."""

    def __iter__(self) -> Iterator[bytes]: ...

    def ready(self) -> bool:
        """Return whether the next record is there, without waiting for it."""

    def enter(self, start: Position) -> None:
        """Go to a position that an earlier reading has seen."""


class LineReader(Reader):
    """Reads a file with a record a line; blank lines are no records."""

    @abstractmethod
    def parse(self, line: bytes) -> Parsed:
        """Return what a record says; UnusableError tells why it is rejected."""

    def cut(self) -> "Cut":
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
            raise ValueError(
                f"{self.file.path}: it has {start.in_file - skip} records, but {start.in_file} "
                "were read before: it is not the same input; start afresh"
            )
