"""Unpacking of gzip and zstd, piece by piece in bounded memory."""

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import zstandard

__all__ = ["Unpacker", "find_unpacker", "is_beginning"]

_AT_LEAST = 1 << 20
"""Bytes that are unpacked at a time, if there are as many."""


class _Packing(NamedTuple):
    name: str
    magic: bytes
    member: Callable[[], Any]
    """Makes what unpacks one member or frame."""
    at_once: int
    """Packed bytes that become 8 MB at most: a thousand times as many, or 128 kB for every 4."""


_PACKINGS = (
    _Packing("gzip", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31), 1 << 13),
    _Packing(
        "zstd", b"\x28\xb5\x2f\xfd", lambda: zstandard.ZstdDecompressor().decompressobj(), 1 << 8
    ),
)


class Unpacker:
    """Unpacks a sequence of members or frames, some bytes at a time."""

    def __init__(self, path: str, packing: _Packing) -> None:
        self._path, self._packing = path, packing
        self._member: Any = None
        self._packed = memoryview(b"")
        self._damage: Exception | None = None

    def feed(self, packed: bytes) -> bytes:
        """Take packed bytes, all earlier ones being unpacked; return the first of them unpacked."""
        self._packed = memoryview(packed)
        return self.take()

    def take(self) -> bytes:
        """Return the next unpacked bytes; none if more have to be fed."""
        found: list[bytes] = []
        n_found = 0
        while n_found < _AT_LEAST and self._damage is None:
            if self._member is None:
                # Some writers fill blocks with zeros.
                self._packed = memoryview(bytes(self._packed).lstrip(b"\0"))
            if not self._packed:
                break
            self._member = self._member or self._packing.member()
            given = self._packed[: self._packing.at_once]
            try:
                found.append(self._member.decompress(given))
            except (zlib.error, zstandard.ZstdError) as error:
                self._damage = error
                break
            n_found += len(found[-1])
            self._packed = self._packed[len(given) - len(self._member.unused_data) :]
            if self._member.eof:
                self._member = None
        if not n_found and self._damage is not None:
            raise ValueError(
                f"{self._path}: the {self._packing.name} data are damaged ({self._damage}): "
                "fetch it again"
            ) from self._damage
        return b"".join(found)

    def check_end(self) -> None:
        """Raise ValueError if the file ended inside a member."""
        if self._member is not None:
            raise ValueError(
                f"{self._path}: the {self._packing.name} data are truncated, the file ends before "
                "they do: fetch it again"
            )


def is_beginning(first: bytes) -> bool:
    """Return whether too few bytes are there to tell how they are packed."""
    return any(
        len(first) < len(packing.magic) and packing.magic.startswith(first) for packing in _PACKINGS
    )


def find_unpacker(path: str, first: bytes) -> Unpacker | None:
    """Return what unpacks a file with some first bytes; None if it is not packed."""
    for packing in _PACKINGS:
        if first.startswith(packing.magic):
            return Unpacker(path, packing)
    return None
