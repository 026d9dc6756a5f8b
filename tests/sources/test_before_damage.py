"""Packed files that break off: whole lines before the damage come first, whatever the batches."""

import gzip
import itertools
from contextlib import suppress

import numpy as np
import pytest
import zstandard
from feeding import records_of

from bnpstream.sources import open_source
from bnpstream.sources.files.compression import find_unpacker

CONTENT = {
    "a.csv": "note,size\n" + "".join(f"w{i},{i}\n" for i in range(4000)),
    "a.jsonl": "".join(f'{{"text": "word{i} rain"}}\n' for i in range(4000)),
    "a.txt": "".join(f"word{i} rain\n" for i in range(4000)),
}


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_what_stands_before_the_damage_comes_first(tmp_path, name, pack):
    data = CONTENT[name].encode()
    path = tmp_path / name
    parts = [pack(data[at : at + 1000]) for at in range(0, len(data), 1000)]
    path.write_bytes(b"".join(parts)[: -len(parts[-1]) // 2])
    found = {}
    for batch_rows in (1, 7, 500, 100_000):
        batches, found[batch_rows] = open_source(str(path)).batches(batch_rows), []
        with pytest.raises(ValueError, match=f"{path}: .*truncated"):
            found[batch_rows].extend(records_of(batch) for batch, _ in batches)
        found[batch_rows] = [record for batch in found[batch_rows] for record in batch]
    assert len(found[1]) > 3800
    assert all(records == found[1] for records in found.values())


SKIPPED = b"\x51\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
"""A frame of zstd that is to be skipped."""


def unpacked(packed, at_a_time):
    """Yield what is unpacked of bytes that come a few at a time."""
    unpacker = find_unpacker("a", packed)
    for at in range(0, len(packed), at_a_time):
        yield unpacker.feed(packed[at : at + at_a_time])
        while piece := unpacker.take():
            yield piece
    unpacker.check_end()


@pytest.mark.parametrize("at_a_time", [1 << 20, 1000, 7])
@pytest.mark.parametrize("said", [{}, {"write_checksum": True}, {"write_content_size": False}])
def test_frames_of_any_layout(said, at_a_time):
    rng = np.random.default_rng((95, 1))
    data = b"abc def\n" * 40_000 + rng.bytes(10_000)  # repeated, packed and raw blocks
    frames = [zstandard.ZstdCompressor(level=n, **said).compress(data) for n in (1, 19)]
    whole = SKIPPED.join([*frames, zstandard.compress(b""), zstandard.compress(b"end")])
    assert b"".join(unpacked(whole, at_a_time)) == data + data + b"end"


@pytest.mark.parametrize("at_a_time", [1 << 20, 1000, 99])
@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_everything_before_a_wrong_byte_comes_first(name, at_a_time):
    rng = np.random.default_rng((95, 2))
    data = b"".join(b"%d rain\n" % n for n in rng.integers(10**6, size=60_000))
    pack = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}[name]
    packed = bytearray(pack(data))
    packed[len(packed) // 2] ^= 255
    found: list[bytes] = []
    with pytest.raises(ValueError, match=f"a: the {name} data are damaged"):
        found.extend(unpacked(bytes(packed), at_a_time))
    joined = b"".join(found)
    n_same = sum(1 for _ in itertools.takewhile(bool, map(int.__eq__, joined, data)))
    assert n_same > 0.2 * len(data)  # blocks of zstd have 128 kB


@pytest.mark.parametrize("at_a_time", [1 << 20, 1])
def test_damage_is_told_again_and_nothing_after_it(at_a_time):
    packed = bytearray(gzip.compress(b"a\nb\n"))
    packed[-8] ^= 1
    unpacker, found = find_unpacker("a", bytes(packed)), []
    for at in range(0, len(packed), at_a_time):
        with suppress(ValueError):
            found.append(unpacker.feed(bytes(packed[at : at + at_a_time])))
    assert b"".join(found) == b"a\nb\n"
    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            unpacker.take()
