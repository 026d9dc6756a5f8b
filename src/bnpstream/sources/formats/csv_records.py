"""Records of a CSV file: lines, joined if a quoted field spans several."""

import csv
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum, auto

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.lines import Lines, first_lines
from bnpstream.sources.formats.record_reader import decode
from bnpstream.sources.records import UnusableError


class CsvLines(Lines):
    """Iterates over the records of a CSV file; a header is handed over and left out.

    A quote that is never closed spoils only the line it is in, not all that follow.

    Parameters
    ----------
    file : ByteReader
        Provides the bytes.
    max_bytes : int
        Most bytes in a record.
    delimiter : str
        Delimiter of fields.
    take_header : callable, optional
        Called with the first record of a file if it has a header; returns whether it can be one;
        if not, the next record is tried.
    """

    def __init__(
        self,
        file: ByteReader,
        max_bytes: int,
        delimiter: str,
        take_header: Callable[[bytes], bool] | None = None,
    ) -> None:
        super().__init__(file, max_bytes)
        self._delimiter, self._take_header = delimiter, take_header
        # Python's own limit applies to the whole process, so it is only ever raised.
        csv.field_size_limit(max(csv.field_size_limit(), max_bytes))
        self._looks_ahead = self._header_due = False
        self._again: deque[tuple[bytes, int, int, int]] = deque()
        self._n_open = 0
        """Lines put back, with a quote open at both their beginning and their end."""
        self._began = 0
        self._records = iter(self)

    def take(self, n: int) -> list[bytes]:
        """Return the next record, if there is one."""
        record = next(self._records, None)
        return [] if record is None else [record]

    def look_ahead(self, *, at_least: int = 1) -> Iterator[bytes]:
        """Yield the first records of the file without taking them."""
        lines = first_lines(self._file, at_least=at_least, max_bytes=self._max_bytes)
        self._lines, self._looks_ahead = lines[::-1], True
        return iter(self)

    def _take_block(self) -> bool:
        return not self._looks_ahead and super()._take_block()

    @property
    def may_be_entered(self) -> bool:
        """Return whether reading can continue here, after the header."""
        return not self._header_due

    @property
    def began(self) -> int:
        """Return the number of the first line of the last record."""
        return self._began

    def ready(self) -> bool:
        """Return whether the first line of the next record is there, without waiting for it."""
        return bool(self._again) or super().ready()

    def __iter__(self) -> Iterator[bytes]:
        for record in self._each_line():
            self._began = self.number
            if self.number == 1:
                self._header_due = self._take_header is not None
            if b'"' in record:
                record = self._close(record)
            if self._header_due and record.strip() and len(record) <= self._max_bytes:
                assert self._take_header is not None
                self._header_due = not self._take_header(record)
                if not self._header_due:
                    continue
            yield record

    def _each_line(self) -> Iterator[bytes]:
        """Yield lines, starting with those that were put back."""
        while True:
            if not self._again:
                self._skip_empty()
                if not self._read_line():
                    return
            line, self.number, self.offset, self.begun = self._again.popleft()
            self._n_open = max(0, self._n_open - 1)
            yield line

    def _skip_empty(self) -> None:
        """Skip empty lines between records; there may be millions."""
        lines = self._lines
        while self.number > 0 and lines and not lines[-1]:
            lines.pop()
            self.number += 1
            self.offset += 1

    def _read_line(self) -> bool:
        """Append the next line of the file to those that were put back; False at the end."""
        line = next(super().__iter__(), None)
        if line is not None:
            self._again.append((line, self.number, self.offset, self.begun))
        return line is not None

    def _close(self, first: bytes) -> bytes:
        """Return a line together with those that its open quote spans, if they make a record.

        Each line is examined once: a quote that stays open does so for whichever line opened it.
        """
        if _state(first, self._delimiter) is not _State.OPEN:
            return first
        place = self.number, self.offset, self.begun
        state = _State.OPEN
        while state is _State.OPEN and (len(self._again) > self._n_open or self._read_line()):
            line, number, offset, _ = self._again[self._n_open]
            if number == 1 or len(first) + offset - place[1] > self._max_bytes:
                break
            state = self._state_after(line)
            self._n_open += state is _State.OPEN
        self.number, self.offset, self.begun = place
        if state is not _State.WHOLE:
            return first
        lines = [first]
        for _ in range(self._n_open + 1):
            line, self.number, self.offset, self.begun = self._again.popleft()
            lines.append(line)
        self._n_open = 0
        return b"\n".join(lines)

    def _state_after(self, line: bytes) -> "_State":
        """Return the state after a line that starts inside quotes."""
        if b'"' not in line.replace(b'""', b""):
            return _State.OPEN  # inside quotes, two quotes stand for one
        return _state(b'"' + line, self._delimiter)


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
    """Return whether a record is complete, continues in the next line, or is invalid."""

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
