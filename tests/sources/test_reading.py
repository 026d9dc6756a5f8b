"""Bytes: packed, cut short, seen before they are taken, and bounded in memory."""

import gzip
import tracemalloc

import pytest
from feeding import PACKERS, write

from bnpstream.sources.files import byte_reader as reading
from bnpstream.sources.files.byte_reader import ByteReader

LONG = b"".join(b"line %d\n" % i for i in range(40_000))


@pytest.mark.parametrize("suffix", PACKERS)
def test_looking_takes_nothing(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 1000)
    with ByteReader(write(tmp_path, "a" + suffix, LONG)) as file:
        for n in (1, 10, 5000):
            assert file.peek(n) == LONG[:n]
        assert not file.ended
        assert b"".join(file.blocks()) == LONG
        assert file.ended
        assert (file.read(), file.peek(), file.consumed) == (b"", b"", file.size)


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_members_and_frames_follow_each_other(tmp_path, block, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", block)
    parts = [b"one\n", b"", b"three\n" * 50]
    for data in (
        b"".join(map(gzip.compress, parts)) + b"\0\0\0",
        b"".join(map(PACKERS[".zst"], parts)),
    ):
        path = tmp_path / "a"
        path.write_bytes(data)
        with ByteReader(str(path)) as file:
            assert b"".join(file.blocks()) == b"".join(parts)


@pytest.mark.parametrize(("pack", "name"), [(PACKERS[".gz"], "gzip"), (PACKERS[".zst"], "zstd")])
def test_truncated_and_damaged_data_are_named(tmp_path, pack, name):
    packed = pack(LONG)
    path = tmp_path / "a"
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    for data, what in [(packed[:-9], "truncated"), (bytes(damaged), "damaged")]:
        path.write_bytes(data)
        expected = f"a: the {name} data are (truncated|{what})"
        with ByteReader(str(path)) as file, pytest.raises(ValueError, match=expected):
            list(file.blocks())


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_what_unpacks_to_very_much_is_unpacked_bit_by_bit(tmp_path, suffix):
    n_bytes = 100_000_000
    path = write(tmp_path, "a" + suffix, bytes(n_bytes))
    tracemalloc.start()
    with ByteReader(path) as file:
        n_read = sum(map(len, file.blocks()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_read == n_bytes
    assert peak < 20_000_000


def test_a_plain_file_can_be_entered_anywhere(tmp_path):
    with ByteReader(write(tmp_path, "a", LONG)) as file:
        assert file.is_plain
        file.peek(100)
        file.seek(12_345)
        assert b"".join(file.blocks()) == LONG[12_345:]
    # The bytes there look like gzip, but the file is not.
    with ByteReader(write(tmp_path, "a", b"plain\n" + gzip.compress(b"x"))) as file:
        file.seek(6)
        assert file.read() == gzip.compress(b"x")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_packed_file_is_not_plain(tmp_path, suffix):
    with ByteReader(write(tmp_path, "a" + suffix, LONG)) as file:
        assert not file.is_plain


def test_an_empty_file(tmp_path):
    with ByteReader(write(tmp_path, "a", b"")) as file:
        assert (file.is_plain, file.peek(), file.read(), file.ended) == (True, b"", b"", True)
