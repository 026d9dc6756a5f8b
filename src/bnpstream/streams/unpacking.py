"""Unpacking of gzip and zstd, piece by piece in bounded memory."""

import zlib
from collections.abc import Callable
from typing import Protocol

import zstandard

__all__ = ["MAGIC_BYTES", "Unpacker", "find_unpacker"]

MAGIC_BYTES = 4
"""First bytes of a file that tell how it is packed."""
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_AT_MOST = 1 << 20


class _Member(Protocol):
    """One member or frame of packed data."""

    def unpack(self, data: bytes) -> tuple[bytes, bytes]:
        """Return some unpacked bytes, not too many, and the packed ones that are left."""

    @property
    def is_complete(self) -> bool: ...


class _Gzip:
    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)

    def unpack(self, data: bytes) -> tuple[bytes, bytes]:
        found = self._member.decompress(data, _AT_MOST)
        return found, self._member.unconsumed_tail or self._member.unused_data

    @property
    def is_complete(self) -> bool:
        return self._member.eof


class _Zstd:
    # It unpacks all that it is given, so it is given little.
    _AT_ONCE = 1 << 16

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    def unpack(self, data: bytes) -> tuple[bytes, bytes]:
        found = self._frame.decompress(data[: self._AT_ONCE])
        return found, self._frame.unused_data + data[self._AT_ONCE :]

    @property
    def is_complete(self) -> bool:
        return self._frame.eof


class Unpacker:
    """Unpacks a sequence of members or frames, some bytes at a time."""

    def __init__(self, path: str, name: str, make: Callable[[], _Member]) -> None:
        self._path, self._name, self._make = path, name, make
        self._member: _Member | None = None
        self._packed = b""

    def feed(self, packed: bytes) -> bytes:
        """Take packed bytes, all earlier ones being unpacked; return the first of them unpacked."""
        self._packed = packed
        return self.take()

    def take(self) -> bytes:
        """Return the next unpacked bytes; none if more have to be fed."""
        found = b""
        while not found:
            if self._member is None:
                self._packed = self._packed.lstrip(b"\0")  # what some writers fill blocks with
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


def find_unpacker(path: str, first: bytes) -> Unpacker | None:
    """Return what unpacks a file with some first bytes; None if it is not packed."""
    if first.startswith(_GZIP_MAGIC):
        return Unpacker(path, "gzip", _Gzip)
    if first.startswith(_ZSTD_MAGIC):
        return Unpacker(path, "zstd", _Zstd)
    return None
