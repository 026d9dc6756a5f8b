"""Unpacking of gzip and zstd, piece by piece in bounded memory."""

import zlib
from collections.abc import Callable
from typing import Protocol

import zstandard

__all__ = ["Unpacker", "find_unpacker", "is_beginning"]

_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_AT_MOST = 1 << 20
# zstd unpacks all that it is given, and 4 bytes may become 128 kB: these become 8 MB at most.
_ZSTD_AT_ONCE = 256
_FIRST_AT_ONCE, _ZEROS_AT_ONCE = 1 << 12, 1 << 12


class _Member(Protocol):
    """One member or frame of packed data."""

    def unpack(self, data: memoryview) -> tuple[bytes, memoryview]:
        """Return some unpacked bytes, not too many, and the packed ones that are left."""

    @property
    def is_complete(self) -> bool: ...


class _Gzip:
    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._at_once = _FIRST_AT_ONCE

    def unpack(self, data: memoryview) -> tuple[bytes, memoryview]:
        # What is left over is copied: of a short member only a little.
        given, self._at_once = data[: self._at_once], 2 * self._at_once
        found = self._member.decompress(given, _AT_MOST)
        rest = self._member.unconsumed_tail or self._member.unused_data
        return found, data[len(given) - len(rest) :]

    @property
    def is_complete(self) -> bool:
        return self._member.eof


class _Zstd:
    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    def unpack(self, data: memoryview) -> tuple[bytes, memoryview]:
        given, left = data[:_ZSTD_AT_ONCE], data[_ZSTD_AT_ONCE:]
        found = self._frame.decompress(given)
        if self._frame.unused_data:
            left = data[len(given) - len(self._frame.unused_data) :]
        return found, left

    @property
    def is_complete(self) -> bool:
        return self._frame.eof


class Unpacker:
    """Unpacks a sequence of members or frames, some bytes at a time."""

    def __init__(self, path: str, name: str, make: Callable[[], _Member]) -> None:
        self._path, self._name, self._make = path, name, make
        self._member: _Member | None = None
        self._packed = memoryview(b"")

    def feed(self, packed: bytes) -> bytes:
        """Take packed bytes, all earlier ones being unpacked; return the first of them unpacked."""
        self._packed = memoryview(packed)
        return self.take()

    def take(self) -> bytes:
        """Return the next unpacked bytes; none if more have to be fed."""
        found = b""
        while not found:
            if self._member is None:
                # Some writers fill blocks with zeros.
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
                raise ValueError(
                    f"{self._path}: the {self._name} data are damaged ({error}): fetch it again"
                ) from error
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
    """Return whether too few bytes are there to tell how they are packed."""
    return any(
        len(first) < len(magic) and magic.startswith(first) for magic in (_GZIP_MAGIC, _ZSTD_MAGIC)
    )


def find_unpacker(path: str, first: bytes) -> Unpacker | None:
    """Return what unpacks a file with some first bytes; None if it is not packed."""
    if first.startswith(_GZIP_MAGIC):
        return Unpacker(path, "gzip", _Gzip)
    if first.startswith(_ZSTD_MAGIC):
        return Unpacker(path, "zstd", _Zstd)
    return None
