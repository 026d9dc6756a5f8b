"""Formats by name and by content; nothing is taken from the file."""

import io
import os
import threading

import pytest
from feeding import PACKERS, write
from scipy import sparse

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.detection import guess_format

NPZ = io.BytesIO()
sparse.save_npz(NPZ, sparse.csr_array([[1, 0], [0, 2]]))

CERTAIN = {
    "uci": b"3\n2\n3\n1 1 4\n1 2 1\n3 2 5\n",
    "lda-c": b"2 0:4 2:1\n0\n1 1:5\n",
    "svmlight": b"# a comment\n1 3:0.5 7:1\n-1 qid:3 2:1e-3 # note\n+1\n",
    "mtx": b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 3\n",
    "jsonl": b'{"a": 1}\n{"a": 2}\n',
}
OTHERS = {
    "csv": b"a,b\n1,2\n3,4\n",
    "tsv": b"a\tb\n1\t2\n3\t4\n",
    "text": b"One day, he said, it rained.\nThe end.\nNo, not yet.\n",
}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("name", ["data", "data.txt"])
@pytest.mark.parametrize("expected", [*CERTAIN, *OTHERS])
def test_content_is_known_without_a_name(tmp_path, expected, name, suffix):
    content = {**CERTAIN, **OTHERS}[expected]
    with ByteReader(write(tmp_path, name + suffix, content)) as file:
        assert guess_format(file) == expected
        assert b"".join(file.blocks()) == content


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "docword.a.txt", "a.mtx"])
@pytest.mark.parametrize("expected", CERTAIN)
def test_certain_content_wins_over_the_name(tmp_path, expected, name):
    with ByteReader(write(tmp_path, name, CERTAIN[expected])) as file:
        assert guess_format(file) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.CSV.gz", "csv"),
        ("a.tsv", "tsv"),
        ("a.ndjson.zst", "jsonl"),
        ("a.log", "text"),
        ("docword.kos.txt", "uci"),
        ("a.svm", "svmlight"),
        ("a.ldac", "lda-c"),
        ("a.feather", "arrow"),
    ],
)
def test_the_name_decides_where_the_content_does_not(tmp_path, name, expected):
    with ByteReader(write(tmp_path, name, b"some words\nand more\nand no end\n")) as file:
        assert guess_format(file) == expected


def test_an_svmlight_file_whose_labels_happen_to_count_is_told_by_its_name(tmp_path):
    content = b"1 3:1\n2 1:1 2:1\n"
    for name, expected in [("a.svmlight", "svmlight"), ("a.txt", "lda-c")]:
        with ByteReader(write(tmp_path, name, content)) as file:
            assert guess_format(file) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (NPZ.getvalue(), "npz"),
        (b"\x93NUMPY\x01\0", "npy"),
        (b"PAR1\x15\x04", "parquet"),
        (b"ARROW1\0\0", "arrow"),
        (b"\xff\xff\xff\xff0\x02\0\0", "arrow"),
        (b"\xef\xbb\xbf" + CERTAIN["jsonl"], "jsonl"),
        (b'{"a": 1}\nbroken\n{"a": 2}\n', "jsonl"),
        (b'{"a": \n', "jsonl"),
        (b"{curly} prose\nand more\n", "text"),
        (b"3\n2\n3\n", "text"),
        (b"3\n2\n3\n1 1 4\n1 2\n", "text"),
        (b'a;"x\ny";1\n', "text"),
        (b"one line, one comma\n", "text"),
        (b"x" * 2_000_000, "text"),
        (b'{"text": "' + b"x" * 2_000_000 + b'"}\n', "jsonl"),
        (b"1 3:0.5\n2 1:1 2:1\n", "svmlight"),
        (b"1 3:1e2\n2 1:1 2:1\n", "svmlight"),
        (b"0\n0\n", "text"),
        (b"a;b,c\n1;2,3\n4;5\n", "csv"),
    ],
)
def test_other_contents(tmp_path, content, expected):
    with ByteReader(write(tmp_path, "data", content)) as file:
        assert guess_format(file) == expected


def test_unknown_bytes_and_empty_files_are_refused(tmp_path):
    for content, message in [(b"\0\1\2", "give --format"), (b"", "empty"), (b"\n \n", "empty")]:
        path = write(tmp_path, "data", content)
        with ByteReader(path) as file, pytest.raises(ValueError, match=message):
            guess_format(file)


@pytest.mark.parametrize("expected", [*CERTAIN, *OTHERS])
def test_a_pipe_loses_nothing(tmp_path, expected):
    content = {**CERTAIN, **OTHERS}[expected]
    path = tmp_path / "pipe"
    os.mkfifo(path)
    finish = threading.Event()

    def feed():
        with path.open("wb", buffering=0) as pipe:
            pipe.write(content)
            finish.wait(10)
            pipe.write(b"more")

    writer = threading.Thread(target=feed)
    writer.start()
    with ByteReader(str(path)) as file:
        assert guess_format(file) == expected  # although the pipe is still open
        finish.set()
        assert b"".join(file.blocks()) == content + b"more"
    writer.join()
