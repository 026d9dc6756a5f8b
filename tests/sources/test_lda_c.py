"""The LDA-C reader and the label reader: what they accept, and how they refuse."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from bnpstream.datasets import find
from bnpstream.sources import read_labels, read_lda_c

SMALL = "2 0:4 2:1\n0\n2 1:7 2:2\n"
SMALL_ROWS = [[4, 0, 1], [0, 0, 0], [0, 7, 2]]


def write(folder: Path, content: str | bytes, name: str = "news.ldac") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_lines_are_rows(tmp_path):
    counts = read_lda_c(write(tmp_path, SMALL))
    assert isinstance(counts, sparse.csr_array)
    assert counts.dtype == np.int64
    assert counts.indices.dtype == counts.indptr.dtype == np.int32
    assert counts.toarray().tolist() == SMALL_ROWS


def test_n_words_gives_the_columns(tmp_path):
    counts = read_lda_c(str(write(tmp_path, SMALL)), n_words=5)
    assert counts.toarray().tolist() == [[*row, 0, 0] for row in SMALL_ROWS]


def test_gzip_is_recognised_by_content_and_not_by_name(tmp_path):
    zipped = write(tmp_path, gzip.compress(SMALL.encode()), "zipped.txt")
    plain = write(tmp_path, SMALL, "plain.gz")
    assert read_lda_c(zipped).toarray().tolist() == SMALL_ROWS
    assert read_lda_c(plain).toarray().tolist() == SMALL_ROWS


@pytest.mark.parametrize(
    "text",
    [
        SMALL.rstrip("\n"),
        SMALL.replace("\n", " \r\n"),
        SMALL.replace(" ", "\t"),
        SMALL.replace(" ", "   "),
        SMALL.replace("\n0", "\n  00"),
        SMALL.replace("2 1:7 2:2", "2 2:2 1:7"),
        SMALL.replace("2 1:7 2:2", "3 1:3 2:2 1:4"),
    ],
    ids=["no last line end", "CRLF", "tabs", "spaces", "zeros", "unsorted", "repeated pair"],
)
def test_harmless_variations_read_the_same(tmp_path, text):
    counts = read_lda_c(write(tmp_path, text))
    assert counts.toarray().tolist() == SMALL_ROWS
    assert counts.has_canonical_format
    assert counts.nnz == 4


@pytest.mark.parametrize("seed", range(3))
def test_random_documents(tmp_path, seed):
    rng = np.random.default_rng((2, seed))
    dense = rng.integers(1, 2000, size=(50, 30)) * (rng.random((50, 30)) < 0.2)
    lines = []
    for row in dense:
        pairs = [f"{word}:{count}" for word, count in enumerate(row) if count]
        lines.append(" ".join([str(len(pairs)), *pairs]))
    path = write(tmp_path, "\n".join(lines))
    assert np.array_equal(read_lda_c(path, n_words=30).toarray(), dense)


# What replaces line 3 of a sound file, and what the message must say besides file, line and value.
BAD_LINES = {
    "": "n and n pairs id:count, all whole numbers of at most 18 digits; 0 stands for",
    "1:7 2:2": "n and n pairs",
    "2 1:7 2": "n and n pairs",
    "2 1:7 2:": "n and n pairs",
    "2 1:7 :2": "n and n pairs",
    "2 1:7 2 :2": "n and n pairs",
    "2 1:7 2: 2": "n and n pairs",
    "2 1:7:2:2": "n and n pairs",
    "2 1:7,2:2": "n and n pairs",
    "2 1:7 2:x": "n and n pairs",
    "2 1:7 2:2.0": "n and n pairs",
    "2 1:7 2:-2": "n and n pairs",
    "2 1:7 -2:2": "n and n pairs",
    "2 1:7 2:9999999999999999999": "n and n pairs id:count, all whole numbers of at most 18 digits",
    "2 1:7 9999999999999999999:2": "n and n pairs",
    "2 1:7 2:\u0667": "n and n pairs",
    "3 1:7 2:2": "3 pairs id:count, as its first number says, not 2",
    "1 1:7 2:2": "1 pairs id:count, as its first number says, not 2",
    "2 1:7 3:2": "word ids in 0..2, because there are 3 words",
    "2 1:7 2:0": "counts of at least 1: leave out words that do not occur",
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_is_named(tmp_path, bad):
    path = write(tmp_path, SMALL.replace("2 1:7 2:2", bad) + "1 0:1\n")
    message = f"{path}, line 3: {bad!r}: expected {BAD_LINES[bad]}"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_lda_c(path, n_words=3)


def test_a_bad_value_after_an_empty_document_is_on_its_own_line(tmp_path):
    path = write(tmp_path, "0\n0\n1 0:0\n")
    with pytest.raises(ValueError, match="line 3: '1 0:0': expected counts of at least 1"):
        read_lda_c(path)


def test_an_empty_file_is_refused(tmp_path):
    path = write(tmp_path, "")
    with pytest.raises(ValueError, match=re.escape(f"{path}: the file is empty")):
        read_lda_c(path)


def test_n_words_must_be_positive(tmp_path):
    with pytest.raises(ValueError, match="n_words is 0: give at least 1, or None"):
        read_lda_c(write(tmp_path, SMALL), n_words=0)


def test_truncated_gzip(tmp_path):
    path = write(tmp_path, gzip.compress(SMALL.encode())[:-8])
    with pytest.raises(ValueError, match=re.escape(f"{path}: the gzip data are truncated")):
        read_lda_c(path)


def test_nyt_is_what_its_provenance_says():
    try:
        path = find("nyt8447") / "nyt.ldac.gz"
    except FileNotFoundError as error:
        pytest.skip(str(error))
    counts = read_lda_c(path)
    assert counts.nnz == 963_063
    assert counts.sum() == 1_221_626
    # Another way to read three of its lines: token by token.
    with gzip.open(path, "rt") as file:
        lines = file.read().splitlines()
    assert counts.shape[0] == len(lines) == 8447
    for row in (0, 4000, 8446):
        pairs = [tuple(map(int, pair.split(":"))) for pair in lines[row].split()[1:]]
        document = counts[[row]]
        stored = zip(document.indices.tolist(), document.data.tolist(), strict=True)
        assert sorted(pairs) == list(stored)


def test_labels(tmp_path):
    labels = read_labels(write(tmp_path, "3\r\n-1\n 20 \n7"))
    assert labels.dtype == np.intp
    assert labels.tolist() == [3, -1, 20, 7]
    assert read_labels(write(tmp_path, gzip.compress(b"3\n1\n"))).tolist() == [3, 1]


@pytest.mark.parametrize("bad", ["", "x", "1 2", "1.5", "9999999999999999999"])
def test_a_bad_label_is_named(tmp_path, bad):
    path = write(tmp_path, f"3\n{bad}\n1\n")
    message = f"{path}, line 2: {bad!r}: expected a whole number, the document's label"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_labels(path)
