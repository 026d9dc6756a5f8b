"""Decompression of gzip and zstd, piece by piece in bounded memory."""

import zlib
from collections.abc import Callable, Generator
from typing import Protocol

import zstandard

_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_SKIPPED = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
"""Skippable frames; pzstd writes one first."""
_BEGINNINGS = (_GZIP_MAGIC, _ZSTD_MAGIC, *_SKIPPED)
_AT_MOST = 1 << 20
_FIRST_AT_ONCE, _ZEROS_AT_ONCE = 1 << 12, 1 << 12


class _Member(Protocol):
    """One member or frame of compressed data."""

    def unpack(self, data: memoryview) -> tuple[bytes, memoryview]:
        """Return some decompressed bytes, not too many, and the remaining compressed ones."""

    @property
    def is_complete(self) -> bool: ...


class _Gzip:
    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._at_once = _FIRST_AT_ONCE

    def unpack(self, data: memoryview) -> tuple[bytes, memoryview]:
        # The rest is copied; for a short member it is small.
        given, self._at_once = data[: self._at_once], 2 * self._at_once
        before = self._member.copy()
        try:
            found = self._member.decompress(given, _AT_MOST)
        except zlib.error:
            found, n_sound = self._before_damage(before, given)
            if n_sound == 0:
                raise
            return found, data[n_sound:]
        rest = self._member.unconsumed_tail or self._member.unused_data
        return found, data[len(given) - len(rest) :]

    def _before_damage(self, member: "zlib._Decompress", given: memoryview) -> tuple[bytes, int]:
        """Return the data before the first wrong byte, and the number of compressed bytes used."""
        found, at, n = b"", 0, len(given)
        while n > 0:
            trial = member.copy()
            try:
                found += trial.decompress(given[at : at + n])
            except zlib.error:
                n //= 2
            else:
                member, at = trial, at + n
        self._member = member
        return found, at

    @property
    def is_complete(self) -> bool:
        return self._member.eof


class _Zstd:
    """A frame, decompressed block by block, so that the blocks before a damaged one are given."""

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._pieces = _pieces_of_frame()
        self._wanted, self._piece = next(self._pieces), bytearray()

    def unpack(self, data: memoryview) -> tuple[bytes, memoryview]:
        n = self._wanted - len(self._piece)
        self._piece += data[:n]
        found = b""
        while len(self._piece) == self._wanted and not self._frame.eof:
            found += self._frame.decompress(self._piece)
            piece, self._piece = bytes(self._piece), bytearray()
            if not self._frame.eof:
                self._wanted = self._pieces.send(piece)
        return found, data[n:]

    @property
    def is_complete(self) -> bool:
        return self._frame.eof


def _pieces_of_frame() -> Generator[int, bytes, None]:
    """Yield the size of each piece of a zstd frame; receive the piece (RFC 8878, 3.1)."""
    head = yield 5
    if not head.startswith(_ZSTD_MAGIC):  # a skippable frame
        size = yield 3
        yield int.from_bytes(head[4:] + size, "little")
        return
    has_size, is_single = head[4] >> 6, head[4] >> 5 & 1
    yield (1 - is_single) + (0, 1, 2, 4)[head[4] & 3] + (is_single, 2, 4, 8)[has_size]
    is_last = 0
    while not is_last:
        block = int.from_bytes((yield 3), "little")
        is_last, is_repeated = block & 1, block >> 1 & 3 == 1
        yield 1 if is_repeated else block >> 3
    yield 4 * (head[4] >> 2 & 1)


class Unpacker:
    """Decompresses a sequence of members or frames, some bytes at a time."""

    def __init__(self, path: str, name: str, make: Callable[[], _Member]) -> None:
        self._path, self._name, self._make = path, name, make
        self._member: _Member | None = None
        self._packed = memoryview(b"")
        self._damage: ValueError | None = None

    def feed(self, packed: bytes) -> bytes:
        """Take compressed bytes once all earlier ones are used; return some decompressed bytes."""
        self._packed = memoryview(packed)
        return self.take()

    def take(self) -> bytes:
        """Return the next decompressed bytes; none if more must be fed."""
        if self._damage is not None:
            raise self._damage
        found = b""
        while not found:
            if self._member is None:
                # Some writers pad blocks with zeros.
                while self._packed and not self._packed[0]:
                    rest = bytes(self._packed[:_ZEROS_AT_ONCE]).lstrip(b"\0")
                    self._packed = self._packed[
                        min(len(self._packed), _ZEROS_AT_ONCE) - len(rest) :
                    ]
                if not self._packed:
                    break
                self._member = self._make()
            before = len(self._packed)
            try:
                found, self._packed = self._member.unpack(self._packed)
            except (zlib.error, zstandard.ZstdError) as error:
                self._damage = ValueError(
                    f"{self._path}: the {self._name} data are damaged ({error}): fetch it again"
                )
                raise self._damage from error
            if self._member.is_complete:
                self._member = None
            elif not found and len(self._packed) == before:
                break
        return found

    def check_end(self) -> None:
        """Raise ValueError if the file ended inside a member."""
        if self._member is not None:
            raise ValueError(
                f"{self._path}: the {self._name} data are truncated, the file ends before they do: "
                "fetch it again"
            )


def is_beginning(first: bytes) -> bool:
    """Return whether there are too few bytes to detect the compression."""
    return any(len(first) < len(magic) and magic.startswith(first) for magic in _BEGINNINGS)


def find_unpacker(path: str, first: bytes) -> Unpacker | None:
    """Return the decompressor of a file with these first bytes; None if it is not compressed."""
    if first.startswith(_GZIP_MAGIC):
        return Unpacker(path, "gzip", _Gzip)
    if first.startswith((_ZSTD_MAGIC, *_SKIPPED)):
        return Unpacker(path, "zstd", _Zstd)
    return None
