"""Records of a CSV file: lines, joined where a quoted field goes on over several."""

import csv
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum, auto

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position
from bnpstream.sources.formats.lines import Lines, decode, first_lines
from bnpstream.sources.records import UnusableError

__all__ = ["CsvLines", "PeekedLines", "cut_fields"]


class CsvLines:
    """Iterates over the records of a CSV file; a header is handed over and left out.

    A quote that is never closed spoils one line and not all that follow: the record is that line.

    Parameters
    ----------
    lines : Lines
        Lines of the file.
    delimiter : str
        Between fields.
    max_bytes : int
        Bytes of a record at most.
    take_header : callable, optional
        What to do with the first record of a file, if it is a header.
    """

    def __init__(
        self,
        lines: Lines,
        delimiter: str,
        max_bytes: int,
        take_header: Callable[[bytes], None] | None = None,
    ) -> None:
        self._lines, self._delimiter, self._max_bytes = lines, delimiter, max_bytes
        self._take_header = take_header
        # Python's own limit holds for all of a process, so it is only ever raised.
        csv.field_size_limit(max(csv.field_size_limit(), max_bytes))
        self._header_due = False
        self._again: deque[tuple[bytes, int, int]] = deque()
        self.began = self.number = self.offset = self.begun = 0

    def ready(self) -> bool:
        """Return whether the first line of the next record is there, without waiting for it."""
        return bool(self._again) or self._lines.ready()

    def enter(self, start: Position) -> None:
        """Go to a position that an earlier reading has seen."""
        self._lines.enter(start)
        self.number, self.offset = self._lines.number, self._lines.offset

    def __iter__(self) -> Iterator[bytes]:
        for entry in self._entries():
            record, self.number, self.offset = entry
            self.began = self.number
            if self.number == 1:
                self.begun += 1
                self._header_due = self._take_header is not None
            if b'"' in record:
                record = self._close(record)
            if self._header_due and record.strip():
                self._header_due = False
                assert self._take_header is not None
                self._take_header(record)
            else:
                yield record

    def _entries(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield lines, their numbers and the bytes up to their ends."""
        lines = iter(self._lines)
        while True:
            if self._again:
                yield self._again.popleft()
                continue
            line = next(lines, None)
            if line is None:
                return
            yield line, self._lines.number, self._lines.offset

    def _close(self, first: bytes) -> bytes:
        """Return a line and those that a quote in it reaches over, if they make a record."""
        state = _state(first, self._delimiter)
        lines, n_bytes = [first], len(first)
        taken: list[tuple[bytes, int, int]] = []
        for entry in self._entries() if state is _State.OPEN else ():
            line, number, _ = entry
            taken.append(entry)
            lines.append(line)
            n_bytes += len(line) + 1
            if number == 1 or n_bytes > self._max_bytes:
                break
            # Inside quotes two quotes are a character, so that only others can end them.
            if b'"' in line.replace(b'""', b""):
                state = _state(b"\n".join(lines), self._delimiter)
                if state is not _State.OPEN:
                    break
        if taken and state is _State.WHOLE:
            _, self.number, self.offset = taken[-1]
            return b"\n".join(lines)
        self._again.extendleft(reversed(taken))
        return first


class PeekedLines(Lines):
    """Iterates over the first lines of a file without taking them."""

    def __init__(self, file: ByteReader, max_bytes: int, *, at_least: int = 1) -> None:
        super().__init__(file, max_bytes)
        self._lines = first_lines(file, at_least=at_least)

    def _read(self) -> bool:
        return False


def cut_fields(record: bytes, delimiter: str) -> list[str]:
    """Return the fields of a record; UnusableError if its quotes are wrong.

    Examples
    --------
    >>> cut_fields(b'1,"a ""b"", c",', ",")
    ['1', 'a "b", c', '']
    """
    text = decode(record)
    if '"' not in text:
        return text.split(delimiter)  # three times as fast
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise UnusableError(f"not CSV: {error}") from error


class _State(Enum):
    WHOLE = auto()
    OPEN = auto()
    WRONG = auto()


class _MoreWantedError(Exception):
    pass


def _state(record: bytes, delimiter: str) -> _State:
    """Return whether a record is whole, goes on in the next line, or cannot be one."""

    def lines() -> Iterator[str]:
        yield record.decode(errors="replace")
        raise _MoreWantedError

    try:
        next(csv.reader(lines(), delimiter=delimiter, strict=True))
    except _MoreWantedError:
        return _State.OPEN
    except csv.Error:
        return _State.WRONG
    return _State.WHOLE
