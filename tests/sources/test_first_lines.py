"""What comes first decides what records are; lines that are no records do not get in its way."""

import os
import threading

import pytest
from feeding import PACKERS, as_list, read_all, write

from bnpstream.sources import Options, open_source
from bnpstream.sources.files import lines as cutting

LONG, BLANK = b"z" * 1_500_000 + b"\n", b"\n" * 1_500_000
HEADERS = {
    "docword.txt": b"2\n3\n3\n",
    "a.mtx": b"%%MatrixMarket matrix coordinate integer general\n2 3 3\n",
}
FILES = {
    "a.jsonl": b'{"id": "a", "text": "senate"}\n{"id": "b", "text": "goal"}\n',
    "a.csv": b"size,kind\n1,x\n2,y\n3,x\n4,x\n",
    "a.log": b"senate vote\ngoal\n",
    "a.svm": b"1 1:.5 3:4\n0 2:1\n",
    "a.ldac": b"2 0:1 3:4\n1 2:1\n",
    "docword.txt": b"1 1 2\n1 2 3\n2 1 1\n",
    "a.mtx": b"1 1 2\n1 2 3\n2 1 1\n",
}


def rows_of(path, **options):
    records, rejects = read_all(open_source(path, Options(**options)))
    return [row for _, _, row, _ in records], rejects


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("name", FILES)
def test_a_first_line_that_is_too_long_is_a_reject(tmp_path, name, suffix):
    header, content = HEADERS.get(name, b""), FILES[name]
    rows, none = rows_of(write(tmp_path, name + suffix, header + content))
    assert none == []
    if name in HEADERS:  # it is an entry, and the record that it is in cannot be known without it
        header, rows = header[:-2] + b"4\n", rows[1:]
    found, [reject] = rows_of(write(tmp_path, name + suffix, header + LONG + content))
    assert found == rows
    assert reject.line == 1 + header.count(b"\n")
    assert "1048576 bytes" in reject.reason


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"a.ldac"}))
def test_blank_lines_come_before_the_first_record(tmp_path, name):
    header, content = HEADERS.get(name, b""), FILES[name]
    rows, _ = rows_of(write(tmp_path, name, header + content))
    assert rows_of(write(tmp_path, name, header + BLANK + content)) == (rows, [])


@pytest.mark.parametrize("format", ["text", None])
def test_a_text_of_long_lines_only_is_all_rejects(tmp_path, format):
    rows, rejects = rows_of(write(tmp_path, "a.txt", LONG * 2), format=format)
    assert (rows, len(rejects)) == ([], 2)


@pytest.mark.parametrize("batch_rows", [1, 2, 3])
def test_a_table_is_resumed_before_its_header(tmp_path, batch_rows):
    long = b"z" * 50 + b"\n"
    path = write(tmp_path, "a.csv", long + b"\n" + long + FILES["a.csv"])
    source = open_source(path, Options(max_line_bytes=40))
    expected = [(r, b.rejects) for b, _ in source.batches(1) for r in as_list(b.rows) or [None]]
    assert len(expected) == 6
    n = 0
    for batch, position in source.batches(batch_rows):
        n += len(batch) + len(batch.rejects)
        rest, rejects = read_all(source, batch_rows, position)
        assert [row for _, _, row, _ in rest] == [row for row, _ in expected[n:] if row]
        assert len(rejects) == max(0, 2 - n)


def test_lines_that_are_no_json_are_not_looked_at_for_ever(tmp_path):
    path = write(tmp_path, "a.txt", (b"word " * 1000 + b"\n") * 400)
    with pytest.raises(ValueError, match="the first 400 lines are not JSON objects"):
        open_source(path, Options(format="jsonl"))
    path = write(tmp_path, "a.jsonl", b"word " * 1000 + b"\n" + LONG + b"no\n" + FILES["a.jsonl"])
    rows, rejects = rows_of(path)
    assert (len(rows), len(rejects)) == (2, 3)


def test_a_feed_is_waited_for_after_blank_and_long_lines(monkeypatch):
    monkeypatch.setattr(cutting, "_LOOK_BYTES", 4000)
    monkeypatch.setattr(cutting, "BLOCK_BYTES", 1000)
    read, written = os.pipe()

    def feed():
        for piece in (b"\n", b"z" * 500 + b"\n", b"\n\n", FILES["a.jsonl"]):
            os.write(written, piece)
        os.close(written)

    thread = threading.Thread(target=feed)
    thread.start()
    options = Options(format="jsonl", max_line_bytes=100)
    rows, rejects = rows_of(f"/dev/fd/{read}", **vars(options))
    thread.join()
    os.close(read)
    assert ([dict(row) for row in rows], len(rejects)) == ([{"senate": 1}, {"goal": 1}], 1)
