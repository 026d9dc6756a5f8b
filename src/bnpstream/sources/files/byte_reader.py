"""Bytes of a file, of standard input or of a growing file, decompressed if necessary."""

import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

from bnpstream.sources.files.compression import Unpacker, find_unpacker, is_beginning
from bnpstream.sources.files.position import HEAD_BYTES

BLOCK_BYTES = 1 << 20
POLL_SECONDS = 0.2
"""Seconds between two looks at a growing file."""
LOOK_SECONDS = 0.25
"""Seconds to wait for more live input once its first line is there."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class StoppedError(Exception):
    """Reading was stopped while it waited for more input."""


class ByteReader:
    """Reads bytes in order; gzip and zstd are decompressed.

    Parameters
    ----------
    path : str
        A file; "-" is standard input.
    follow : bool
        Wait for more at the end of a file, as `tail -F` does; a file that is cut or replaced is
        read from its start.

    Attributes
    ----------
    consumed : int
        Bytes read, as stored.
    size : int or None
        Size in bytes, as stored, if known.
    first : bytes
        The first bytes as stored, at most HEAD_BYTES of those read.
    restarts : int
        How often a followed file was cut or replaced and read again from its start.
    stopped : Event
        When set, waiting for more ends with `StoppedError`.
    """

    def __init__(self, path: str, *, follow: bool = False) -> None:
        self.path, self.follow = path, follow
        self.consumed = self.restarts = 0
        self.stopped = Event()
        self._file: int = sys.stdin.fileno() if path == "-" else os.open(path, os.O_RDONLY)
        status = os.fstat(self._file)
        self._regular = stat.S_ISREG(status.st_mode)
        self.size: int | None = status.st_size if self._regular and not follow else None
        self._inode = status.st_ino
        self.first = self._ahead = b""
        self._ended = False
        self._unpacker: Unpacker | None = None
        self._started = False
        self._look_until: float | None = None

    @property
    def is_plain(self) -> bool:
        """Return whether it is an uncompressed file, in which `seek` works."""
        self._start()
        return self._regular and self.path != "-" and self._unpacker is None

    @property
    def is_live(self) -> bool:
        """Return whether it may grow while it is read: a pipe, or a followed file."""
        return self.follow or not self._regular

    @property
    def ended(self) -> bool:
        """Return whether nothing follows what was peeked."""
        return self._ended

    def peek(self, n: int = BLOCK_BYTES, *, lines: int = 1) -> bytes:
        """Return up to n of the next bytes without taking them; fewer only at the end.

        Live input may give fewer, if these have this many lines.
        """
        while len(self._ahead) < n and not self._ended:
            if self._ahead.count(b"\n") >= lines and not self._more_comes_soon():
                break
            try:
                found = self._read()  # before the sum, as it may start with what was read ahead
            except ValueError:
                if self._ahead.count(b"\n") < lines:
                    raise
                break  # what precedes the damage is sound; `read` will report the damage
            self._ahead += found
        return self._ahead[:n]

    def seek(self, offset: int) -> None:
        """Continue at a byte of a plain file."""
        self._start()
        os.lseek(self._file, offset, os.SEEK_SET)
        self.consumed, self._ahead, self._ended = offset, b"", False

    def begin_again(self) -> None:
        """Continue at the first byte of a plain file that has replaced another."""
        self.seek(0)
        self.restarts += 1

    def read(self) -> bytes:
        """Return the next bytes available; none at the end."""
        if self._ahead:
            found, self._ahead = self._ahead, b""
            return found
        return self._read()

    def blocks(self) -> Iterator[bytes]:
        """Yield all bytes."""
        while block := self.read():
            yield block

    def waiting(self) -> bool:
        """Return whether `read` would return, or fail, at once."""
        if not self._ahead and self._unpacker is not None:
            try:
                self._ahead = self._unpacker.take()
            except ValueError:
                return True
        return bool(self._ahead) or self._stored_waits(0.0)

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path != "-":
            os.close(self._file)

    def __enter__(self) -> "ByteReader":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> None:
        """Detect the compression from the first bytes."""
        if not self._started:
            self._started = True
            self._ahead = self._begin(self._stored())

    def _begin(self, first: bytes) -> bytes:
        """Return the first bytes of a file, decompressed if they are compressed."""
        while first and is_beginning(first) and (more := self._stored()):
            first += more
        self._unpacker = find_unpacker(self.path, first)
        return first if self._unpacker is None else self._unpacker.feed(first)

    def _read(self) -> bytes:
        if not self._started:
            self._start()
            return self.read()
        if self._unpacker is not None and (found := self._unpacker.take()):
            return found
        while not self._ended:
            restarts = self.restarts
            stored = self._stored()
            if not stored:
                if self._unpacker is not None:
                    self._unpacker.check_end()
                self._ended = True
                break
            if self.restarts != restarts:
                found = self._begin(stored)
            else:
                found = stored if self._unpacker is None else self._unpacker.feed(stored)
            if found:
                return found
        return b""

    def _stored(self) -> bytes:
        """Return the next bytes as stored, waiting for them if the file grows."""
        while True:
            if self._regular or self._stored_waits(POLL_SECONDS):
                try:
                    found = os.read(self._file, BLOCK_BYTES)
                except OSError as error:  # which does not know whose number this is
                    raise OSError(error.errno, error.strerror, self.path) from error
                if self.consumed == len(self.first):
                    self.first += found[: HEAD_BYTES - self.consumed]
                self.consumed += len(found)
                if found or not (self.follow and self._regular):
                    return found
                time.sleep(POLL_SECONDS)
                self._look_again()
            if self.stopped.is_set():
                raise StoppedError

    def _stored_waits(self, seconds: float) -> bool:
        """Return whether `_stored` would answer at once, or after this many seconds."""
        if not self._regular:
            return bool(select.select([self._file], [], [], seconds)[0])
        if not self.follow or os.fstat(self._file).st_size > self.consumed:
            return True
        time.sleep(seconds)
        return os.fstat(self._file).st_size > self.consumed

    def _more_comes_soon(self) -> bool:
        """Return whether bytes are there, or arrive before the time to look is over."""
        now = time.monotonic()
        self._look_until = self._look_until or now + LOOK_SECONDS
        return self._stored_waits(max(0.0, self._look_until - now))

    def _look_again(self) -> None:
        """Start again with a followed file if it was cut or replaced."""
        try:
            now = Path(self.path).stat()
        except FileNotFoundError:  # being replaced
            return
        if now.st_ino != self._inode:
            if os.fstat(self._file).st_size > self.consumed:
                return  # the old file first
            os.close(self._file)
            self._file = os.open(self.path, os.O_RDONLY)
            self._inode = os.fstat(self._file).st_ino
        elif now.st_size < self.consumed:
            os.lseek(self._file, 0, os.SEEK_SET)
        else:
            return
        self.consumed, self.first = 0, b""
        self.restarts += 1
