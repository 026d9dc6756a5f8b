"""Lines of a file, with their numbers and offsets."""

from collections.abc import Iterator
from itertools import islice

from bnpstream.sources.files.byte_reader import BLOCK_BYTES, BYTE_ORDER_MARK, ByteReader
from bnpstream.sources.files.position import Position
from bnpstream.sources.records import UnusableError

__all__ = ["PEEKED_RECORDS", "Lines", "decode", "first_lines"]

PEEKED_RECORDS = 1000
"""Records at most that tell what the others are."""


class Lines:
    """Iterates over the whole lines of a file, without their ends, in bounded memory.

    A line ends by LF or CRLF; the last one may have no end, unless the file is followed. Of a line
    longer than `max_bytes` a little more than that is given, so that its length tells.

    Parameters
    ----------
    file : ByteReader
        The bytes.
    max_bytes : int
        Bytes of a line at most.

    Attributes
    ----------
    number : int
        Lines given; it starts again where a file that is followed was cut or replaced.
    offset : int
        Bytes given, ends of lines included.
    begun : int
        How often the first line of a file was given: more than once if it was cut or replaced.
    """

    def __init__(self, file: ByteReader, max_bytes: int) -> None:
        self._file, self._max_bytes = file, max_bytes
        self.number = self.offset = self.begun = 0
        self._lines: list[bytes] = []
        self._next = 0
        self._carry = b""
        self._dropped = self._dropped_first = 0
        self._end_bytes = 1
        self._new_file: bytes | None = None

    def __iter__(self) -> Iterator[bytes]:
        while self._next < len(self._lines) or self._fill():
            line = self._lines[self._next]
            if self._next == 0:
                self.offset += self._dropped_first
            self._next += 1
            self.number += 1
            self.offset += len(line) + self._end_bytes
            if self.number == 1:
                self.begun += 1
                line = line.removeprefix(BYTE_ORDER_MARK)
            yield line[:-1] if line.endswith(b"\r") else line

    @property
    def began(self) -> int:
        """Return the number of the last line."""
        return self.number

    def ready(self) -> bool:
        """Return whether the next line is there, without waiting for it."""
        while self._next == len(self._lines):
            if not self._file.waiting() or not self._read():
                return False
        return True

    def enter(self, start: Position) -> None:
        """Go to a position that an earlier reading has seen.

        Raises
        ------
        ValueError
            If the file is shorter than that.
        """
        if start.line == 0:
            return
        size = self._file.size
        if self._file.is_plain and start.offset is not None:
            if size is not None and size < start.offset:
                raise ValueError(
                    f"{self._file.path}: it has {size} bytes, but {start.offset} were read "
                    "before: it is not the same file; start afresh"
                )
            self._file.seek(start.offset)
            self.number, self.offset = start.line, start.offset
            return
        for _ in self:
            if self.number == start.line:
                return
        raise ValueError(
            f"{self._file.path}: it has {self.number} lines, but {start.line} were read before: "
            "it is not the same input; start afresh"
        )

    def _fill(self) -> bool:
        """Read on until there is a whole line; False at the end."""
        while self._next == len(self._lines):
            if not self._read():
                return False
        return True

    def _read(self) -> bool:
        """Cut the next bytes into lines, keeping the beginning of the last; False at the end."""
        self._lines, self._next = [], 0
        if self._new_file is not None:
            block, self._new_file = self._new_file, None
            self.number = self.offset = 0
        else:
            restarts = self._file.restarts
            block = self._file.read()
            if self._file.restarts != restarts:
                # What the old file ended with is a line, as nobody will write its end.
                if self._carry:
                    self._new_file = block
                    self._give_carry()
                    return True
                self.number = self.offset = 0
        if not block:
            if not self._carry:
                return False
            self._end_bytes = 0
            self._give_carry()
            return True
        lines = block.split(b"\n")
        lines[0] = self._carry + lines[0]
        self._carry = lines.pop()
        if lines:
            self._lines, self._dropped_first, self._dropped = lines, self._dropped, 0
        # Two bytes more, so that it is too long without a CR too.
        excess = len(self._carry) - self._max_bytes - 2
        if excess > 0:
            self._carry = self._carry[:-excess]
            self._dropped += excess
        return True

    def _give_carry(self) -> None:
        self._lines, self._carry = [self._carry], b""
        self._dropped_first, self._dropped = self._dropped, 0


def decode(line: bytes) -> str:
    """Return a line as text; UnusableError if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise UnusableError(f"not UTF-8: {error.reason} at byte {error.start + 1}") from error


def first_lines(file: ByteReader, *, at_least: int = 1, at_most: int | None = None) -> list[bytes]:
    """Return the first whole lines of a file that are not blank, without taking them.

    Parameters
    ----------
    file : ByteReader
        The bytes.
    at_least : int
        Lines that live input is waited for.
    at_most : int, optional
        Lines that are enough; None for all.

    Raises
    ------
    ValueError
        If there is none.
    """
    for n_bytes in (BLOCK_BYTES, 16 * BLOCK_BYTES):
        found = file.peek(n_bytes, lines=at_least)
        lines = found.removeprefix(BYTE_ORDER_MARK).split(b"\n")
        if not file.ended or len(found) == n_bytes:
            lines.pop()  # it may go on
        filled = (line.removesuffix(b"\r") for line in lines if line.strip())
        if kept := list(islice(filled, at_most)):
            return kept
    what = f"no line ends in the first {n_bytes} bytes" if found.strip() else "it is empty"
    raise ValueError(f"{file.path}: there is no record: {what}")
