"""Lines of a file with their numbers and offsets: many at a time, singly, or peeked at."""

from collections import deque
from collections.abc import Iterator
from os import PathLike
from typing import NamedTuple

from bnpstream.sources.files.byte_reader import BLOCK_BYTES, BYTE_ORDER_MARK, ByteReader
from bnpstream.sources.files.position import Position, another_file, head_of, too_short
from bnpstream.sources.records import BEGINNING, Reject, beginning

_LOOK_BYTES = 16 * BLOCK_BYTES
"""Bytes of live input that are searched for a line."""


class Block(NamedTuple):
    """Some lines of a file."""

    text: bytes
    """Lines, including line ends."""
    end: int
    """Offset in the file after these lines."""
    is_new: bool = False
    """Whether these are the first lines of a followed file after it was cut or replaced."""
    is_ended: bool = True
    """Whether the last line has its line end; if not, one is added and counted."""
    first: bytes = b""
    """The first bytes of the file."""


class LineBlocks:
    """Iterates over the whole lines of a file, many at a time, in bounded memory.

    Parameters
    ----------
    file : ByteReader
        Provides the bytes.
    max_line_bytes : int
        A longer line may lose some bytes; it stays longer than this, and starts its block.
    start : Position, optional
        Where an earlier reading of a plain file stopped; ValueError if the file is shorter or a
        different one. A followed file is then read from its start.
    """

    def __init__(
        self, file: ByteReader, max_line_bytes: int, start: Position | None = None
    ) -> None:
        self._file, self._pieces = file, file.blocks()
        # Two more bytes, so that the line is too long even without a CR; and what is shown of it
        # must not depend on where blocks end.
        self._kept_bytes = max(max_line_bytes + 2, 4 * BEGINNING)
        self._left, self._end, self._is_new = b"", 0, False
        self._begins, self._first = True, b""
        self._restarts = file.restarts
        self._blocks: deque[Block] = deque()
        if start is not None and start.offset is not None:
            # A last line without line end may count as if it had one.
            if file.size is not None and file.size + 1 < start.offset:
                raise too_short(file.path, file.size, "bytes", start.offset)
            file.seek(start.offset)
            self._end, self._begins = start.offset, start.offset == 0
            if start.head is not None and head_of(file.first, start.offset) != start.head:
                if not file.follow:
                    raise another_file(file.path)
                file.begin_again()

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        while not self._blocks:
            if not self._read():
                raise StopIteration
        return self._blocks.popleft()

    def ready(self) -> bool:
        """Return whether more lines are there, without waiting for them."""
        while not self._blocks:
            if not self._file.waiting() or not self._read():
                return False
        return True

    def _read(self) -> bool:
        """Split the next bytes into lines, keeping the start of the last one; False at the end."""
        piece = next(self._pieces, b"")
        is_new = self._file.restarts != self._restarts
        if self._left and (is_new or not piece):  # its line end will never come
            text = self._unmarked(self._left + b"\n")
            self._blocks.append(Block(text, self._end + 1, self._is_new, False, self._first))
            self._left, self._is_new = b"", False
        if is_new:
            self._end, self._is_new, self._restarts = 0, True, self._file.restarts
            self._begins = True
        self._first = self._file.first
        until = piece.rfind(b"\n") + 1
        if until:
            text = self._unmarked(b"".join([self._left, memoryview(piece)[:until]]))
            self._blocks.append(Block(text, self._end + until, self._is_new, True, self._first))
            self._left, self._is_new = piece[until:], False
        else:
            self._left = (self._left + piece)[: self._kept_bytes]
        self._end += len(piece)
        return bool(piece or self._blocks)

    def _unmarked(self, text: bytes) -> bytes:
        """Return lines without a byte order mark."""
        begins, self._begins = self._begins, False
        return text.removeprefix(BYTE_ORDER_MARK) if begins else text


class Lines:
    """Iterates over the whole lines of a file, without line ends, in bounded memory.

    A line ends with LF or CRLF; the last one may have no end, unless the file is followed. A line
    longer than `max_bytes` may be cut, but stays longer than that.

    Parameters
    ----------
    file : ByteReader
        Provides the bytes.
    max_bytes : int
        Most bytes in a line.

    Attributes
    ----------
    number : int
        Lines given; starts again if a followed file was cut or replaced.
    offset : int
        Bytes given, including line ends.
    begun : int
        How often the first line of a file was given; more than once after a cut or replacement.
    """

    def __init__(self, file: ByteReader, max_bytes: int) -> None:
        self._file, self._max_bytes = file, max_bytes
        self.number = self.offset = self.begun = 0
        self._blocks = LineBlocks(file, max_bytes)
        self._lines: list[bytes] = []
        """The rest of a block; the next line is the last element."""
        self._first = b""
        self._has_returns = False

    def __iter__(self) -> Iterator[bytes]:
        while self._lines or self._take_block():
            line = self._lines.pop()
            self.number += 1
            self.offset += len(line) + 1
            if self.number == 1:
                self.begun += 1
            yield line[:-1] if line.endswith(b"\r") else line

    def take(self, n: int) -> list[bytes]:
        """Return up to n of the next lines available; wait for one; none at the end.

        They belong to one file, and all are given at once: `number` is that of the last.
        """
        if not self._lines and not self._take_block():
            return []
        taken = self._lines[: -n - 1 : -1]
        del self._lines[-n:]
        if self.number == 0:
            self.begun += 1
        self.number += len(taken)
        self.offset += sum(map(len, taken)) + len(taken)
        if self._has_returns:
            taken = [line[:-1] if line.endswith(b"\r") else line for line in taken]
        return taken

    def _take_block(self) -> bool:
        block = next(self._blocks, None)
        if block is None:
            return False
        self._has_returns, self._first = b"\r" in block.text, block.first
        if block.is_new:
            self.number = 0
        # The offset is that of the line end, because a long line may have lost bytes.
        self.offset = block.end - len(block.text) - (not block.is_ended)
        self._lines = block.text.split(b"\n")[-2::-1]
        return True

    @property
    def head(self) -> int:
        """Return the checksum that identifies the file when reading continues."""
        return head_of(self._first, self.offset)

    @property
    def may_be_entered(self) -> bool:
        """Return whether reading can continue after this line."""
        return True

    @property
    def began(self) -> int:
        """Return the number of the first line of the last record."""
        return self.number

    def ready(self) -> bool:
        """Return whether the next line is there, without waiting for it."""
        return bool(self._lines) or self._blocks.ready()

    def enter(self, start: Position) -> None:
        """Go to a position of an earlier reading; ValueError if the file is shorter."""
        if start.line == 0:
            return
        if self._file.is_plain and start.offset is not None:
            if self._file.size is not None and self._file.size < start.offset:
                raise too_short(self._file.path, self._file.size, "bytes", start.offset)
            self._blocks = LineBlocks(self._file, self._max_bytes, start)
            self.number, self.offset = start.line, start.offset
            return
        for _ in Lines.__iter__(self):
            if self.number == start.line:
                return
        raise too_short(self._file.path, self.number, "lines", start.line)


def first_lines(
    file: ByteReader, *, at_least: int = 1, at_most: int | None = None, max_bytes: int | None = None
) -> list[bytes]:
    """Return the first whole lines of a file that can be records, without taking them.

    Blank lines and lines that are too long are left out. If looking ahead shows nothing else, the
    file is opened a second time and read further, in bounded memory.

    Parameters
    ----------
    file : ByteReader
        Provides the bytes.
    at_least : int
        Lines wanted: live input is waited for, other files are read further.
    at_most : int, optional
        Lines that suffice; None for all that looking ahead shows.
    max_bytes : int, optional
        Most bytes in a line.

    Raises
    ------
    ValueError
        If all lines are blank.
    """
    fit, is_filled = _looked_at(file, BLOCK_BYTES, at_least, max_bytes)
    if len(fit) < at_least and not file.ended:
        if file.is_live or file.path == "-":
            fit, is_filled = _looked_at(file, _LOOK_BYTES, at_least, max_bytes)
        else:
            with ByteReader(file.path) as again:
                fit, is_filled = _searched(again, at_least, max_bytes or _LOOK_BYTES)
    if not is_filled:
        raise ValueError(f"{file.path}: no records: the file is empty")
    return fit[:at_most]


def _looked_at(
    file: ByteReader, n_bytes: int, at_least: int, max_bytes: int | None
) -> tuple[list[bytes], bool]:
    """Return the usable lines at the beginning, and whether there is more than blanks."""
    found, fit, n_lines = b"", list[bytes](), at_least
    while True:
        try:
            found = file.peek(n_bytes, lines=n_lines)
        except ValueError:
            if not found:
                raise
            return fit, bool(found.strip())  # `read` will report the damage
        lines = found.removeprefix(BYTE_ORDER_MARK).split(b"\n")
        if not file.ended or len(found) == n_bytes:
            lines.pop()  # it may be incomplete
        fit = _fit(lines, max_bytes)
        if len(fit) >= at_least or file.ended or len(found) == n_bytes:
            return fit, bool(found.strip())
        n_lines = len(lines) + 1  # the next line of a feed is waited for


def _searched(file: ByteReader, at_least: int, max_bytes: int) -> tuple[list[bytes], bool]:
    """Return the first usable lines of a file, and whether there is more than blanks."""
    fit: list[bytes] = []
    size, is_filled = 0, False
    for block in LineBlocks(file, max_bytes):
        if block.text.isspace():
            continue
        is_filled = True
        fit += _fit(block.text.split(b"\n"), max_bytes)
        size += len(block.text)
        if len(fit) >= at_least and size >= BLOCK_BYTES:
            break
    return fit, is_filled


def _fit(lines: list[bytes], max_bytes: int | None) -> list[bytes]:
    """Return the lines that are neither blank nor too long, without line ends."""
    filled = (line.removesuffix(b"\r") for line in lines if line.strip())
    return [line for line in filled if max_bytes is None or len(line) <= max_bytes]


def read_lines(path: str | PathLike[str]) -> list[bytes]:
    r"""Return the lines of a file (plain, gzip or zstd) without line ends.

    Raises
    ------
    ValueError
        If compressed data are truncated or damaged.

    Examples
    --------
    >>> import gzip
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "words")
    ...     n_bytes = path.write_bytes(gzip.compress(b"senate\r\nhouse\n"))
    ...     read_lines(path)
    [b'senate', b'house']
    """
    with ByteReader(str(path)) as file:
        lines = b"".join(file.blocks()).split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def unexpected_line(
    path: str | PathLike[str], number: int, line: bytes, expected: str
) -> ValueError:
    r"""Return an error about a line that is not what was expected.

    Examples
    --------
    >>> unexpected_line("docword.txt", 7, b"3 1\n", "three whole numbers")
    ValueError("docword.txt, line 7: '3 1': expected three whole numbers")
    """
    return Reject(str(path), number, 0, f"expected {expected}", beginning(line)).error()
