"""Lines: numbers, offsets, ends of lines, lines that are too long, and the batches of them."""

import tracemalloc
from zlib import crc32

import numpy as np
import pytest
from feeding import PACKERS, write

from bnpstream.sources import Options, open_source
from bnpstream.sources.files import byte_reader as reading
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.lines import Lines, first_lines
from bnpstream.sources.files.position import Position


def cut(path, max_bytes=100):
    """Return (line, number, bytes up to its end) of every line."""
    with ByteReader(path) as file:
        lines = Lines(file, max_bytes)
        return [(line, lines.number, lines.offset) for line in lines]


@pytest.mark.parametrize("block", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("suffix", PACKERS)
def test_any_blocks_give_the_lines_of_the_file(tmp_path, suffix, seed, block, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", block)
    rng = np.random.default_rng((601, seed))
    content = bytes(rng.choice(list(b"ab\r\n\n"), 200).tolist())
    parts = content.split(b"\n")
    ends = np.cumsum([len(part) + 1 for part in parts]).tolist()
    expected = [(part.removesuffix(b"\r"), i + 1, ends[i]) for i, part in enumerate(parts)]
    if parts[-1]:
        expected[-1] = (expected[-1][0], len(parts), len(content))
    else:
        expected.pop()
    assert cut(write(tmp_path, "a" + suffix, content)) == expected


@pytest.mark.parametrize("block", [1, 10, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_long_line_is_cut_and_the_next_ones_are_whole(tmp_path, block, end, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", block)
    content = end.join([b"x" * 20, b"y" * 21, b"z" * 500, b"w", b"v" * 30])
    found = cut(write(tmp_path, "a", content), max_bytes=20)
    assert [len(line) > 20 for line, _, _ in found] == [False, True, True, False, True]
    assert [line[:1] for line, _, _ in found] == [b"x", b"y", b"z", b"w", b"v"]
    n = len(end)
    assert [offset for *_, offset in found] == [
        20 + n,
        41 + 2 * n,
        541 + 3 * n,
        542 + 4 * n,
        572 + 4 * n,
    ]


@pytest.mark.parametrize("at", [19, 20, 21, 22])
def test_a_return_inside_a_long_line_does_not_make_it_short(tmp_path, at, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 1)
    [(line, _, _)] = cut(write(tmp_path, "a", b"x" * at + b"\r" + b"y" * 30), max_bytes=20)
    assert len(line) > 20


def test_a_line_without_end_takes_little_memory(tmp_path):
    path = write(tmp_path, "a.txt", b"first\n" + b"x" * 50_000_000 + b"\nlast\n")
    source = open_source(path, Options(format="text", max_line_bytes=1000))
    tracemalloc.start()
    [(batch, _)] = source.batches()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert batch.rows == [{"first": 1}, {"last": 1}]
    assert batch.numbers == [0, 2]
    [reject] = batch.rejects
    assert (reject.line, reject.record, reject.beginning) == (2, 1, "x" * 200)
    assert "longer than 1000 bytes" in reject.reason
    assert peak < 10_000_000


def test_batches_end_at_multiples(tmp_path):
    path = write(tmp_path, "a.txt", "aa\n\nbb\n" * 10)
    source = open_source(path)
    found = [(len(batch), position) for batch, position in source.batches(6)]
    assert [n for n, _ in found] == [6, 6, 6, 2]
    assert [position["in_file"] for _, position in found] == [6, 12, 18, 20]
    head = crc32(b"aa\n\nbb\n" * 3)
    assert Position.of(found[0][1]) == Position(6, 0, in_file=6, line=9, offset=21, head=head)
    # From a position that another size has left, too.
    assert [len(batch) for batch, _ in source.batches(5, found[0][1])] == [4, 5, 5]


def test_rejected_records_count_in_a_batch(tmp_path):
    path = write(tmp_path, "a.jsonl", b'{"text": "aa"}\nbad\n' * 4)
    found = [(len(batch), len(batch.rejects)) for batch, _ in open_source(path).batches(3)]
    assert found == [(2, 1), (1, 2), (1, 1)]


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_that_is_shorter_than_a_position_is_refused(tmp_path, suffix):
    path = write(tmp_path, "a.txt" + suffix, "aa\n" * 10)
    *_, (_, position) = open_source(path).batches()
    write(tmp_path, "a.txt" + suffix, "aa\n" * 9)
    with pytest.raises(ValueError, match="it is not the same"):
        next(open_source(path).batches(start=position))


def test_the_first_lines_are_whole(tmp_path):
    with ByteReader(write(tmp_path, "a", "one\r\n\ntwo")) as file:
        assert first_lines(file) == [b"one", b"two"]
    long = b"x" * 1_500_000
    with ByteReader(write(tmp_path, "a", b"one\n" + long + b"\ntwo\n")) as file:
        assert first_lines(file) == [b"one"]
    with ByteReader(write(tmp_path, "a", long + b"\ntwo\n")) as file:
        assert first_lines(file) == [long, b"two"]
    blank = write(tmp_path, "a", b"\n \n")
    with ByteReader(blank) as file, pytest.raises(ValueError, match="no records: the file is"):
        first_lines(file)
