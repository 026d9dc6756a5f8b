"""The UCI docword reader: what it accepts, what it delivers, and how it refuses."""

import gzip
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from bnpstream.datasets import find
from bnpstream.kernels.text.parser import IRREGULAR
from bnpstream.sources import iter_docword, read_docword, read_vocabulary
from bnpstream.sources.files import byte_reader as reading
from bnpstream.sources.formats.entries import EntryReader

SMALL = "5\n3\n4\n2 1 4\n2 3 1\n4 2 7\n4 3 2\n"
SMALL_ROWS = [[0, 0, 0], [4, 0, 1], [0, 0, 0], [0, 7, 2], [0, 0, 0]]


def write(folder: Path, content: str | bytes, name: str = "docword.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def random_docword(seed: int) -> tuple[str, np.ndarray]:
    """Return the text of a docword file with gaps and repeated pairs, and its dense counts."""
    rng = np.random.default_rng((1, seed))
    n_documents, n_words, n_entries = 40, 11, 150
    documents = np.sort(rng.integers(3, n_documents - 2, n_entries))
    words = rng.integers(n_words, size=n_entries)
    counts = rng.integers(1, 2000, n_entries)
    dense = np.zeros((n_documents, n_words), dtype=np.int64)
    lines = [f"{n_documents}", f"{n_words}", f"{n_entries}"]
    for document, word, count in zip(documents, words, counts, strict=True):
        dense[document, word] += count
        lines.append(f"{document + 1} {word + 1} {count}")
    return "\n".join(lines) + "\n", dense


@pytest.fixture
def kos() -> Path:
    try:
        return find("kos") / "docword.kos.txt.gz"
    except FileNotFoundError as error:
        pytest.skip(str(error))


def test_documents_without_entries_are_empty_rows(tmp_path):
    counts = read_docword(write(tmp_path, SMALL))
    assert isinstance(counts, sparse.csr_array)
    assert counts.dtype == np.int64
    assert counts.indices.dtype == counts.indptr.dtype == np.int32
    assert counts.toarray().tolist() == SMALL_ROWS


def test_positions_count_delivered_documents(tmp_path):
    delivered = list(iter_docword(write(tmp_path, SMALL), batch_rows=2))
    assert [position for _, position in delivered] == [2, 4, 5]
    assert [batch.toarray().tolist() for batch, _ in delivered] == [
        SMALL_ROWS[:2],
        SMALL_ROWS[2:4],
        SMALL_ROWS[4:],
    ]


def test_gzip_is_recognised_by_content_and_not_by_name(tmp_path):
    zipped = write(tmp_path, gzip.compress(SMALL.encode()), "zipped.txt")
    plain = write(tmp_path, SMALL, "plain.txt.gz")
    assert read_docword(zipped).toarray().tolist() == SMALL_ROWS
    assert read_docword(str(plain)).toarray().tolist() == SMALL_ROWS


def test_a_file_without_entries_is_all_empty_rows(tmp_path):
    counts = read_docword(write(tmp_path, "3\n2\n0\n"))
    assert counts.shape == (3, 2)
    assert counts.nnz == 0


@pytest.mark.parametrize(
    "text",
    [
        SMALL.rstrip("\n"),
        SMALL.replace("\n", "\r\n"),
        SMALL.replace(" ", "\t"),
        SMALL.replace("\n4 ", "\n\n \n  4 ") + "\n\n",
        SMALL.replace("4 2 7", "4 2 3\n4 2 4").replace("3\n4\n", "3\n5\n", 1),
        SMALL.replace("2 1 4\n2 3 1", "2 3 1\n2 1 4"),
    ],
    ids=["no last line end", "CRLF", "tabs", "blank lines", "repeated pair", "words unsorted"],
)
def test_harmless_variations_read_the_same(tmp_path, text):
    counts = read_docword(write(tmp_path, text))
    assert counts.toarray().tolist() == SMALL_ROWS
    assert counts.has_canonical_format
    assert counts.nnz == 4


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("batch_rows", [1, 3, 39, 40, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_batches_do_not_depend_on_where_blocks_are_cut(
    tmp_path, monkeypatch, seed, batch_rows, block_bytes
):
    text, dense = random_docword(seed)
    monkeypatch.setattr(reading, "BLOCK_BYTES", block_bytes)
    delivered = list(iter_docword(write(tmp_path, text), batch_rows))
    sizes = [batch.shape[0] for batch, _ in delivered]
    assert all(size == batch_rows for size in sizes[:-1])
    assert [position for _, position in delivered] == np.cumsum(sizes).tolist()
    assert np.array_equal(np.concatenate([batch.toarray() for batch, _ in delivered]), dense)


@pytest.mark.parametrize("seed", range(3))
def test_both_spellings_of_the_parser_agree(tmp_path, monkeypatch, seed):
    text, dense = random_docword(seed)
    monkeypatch.setattr(
        EntryReader, "parse", lambda _, text, building: building.progress._replace(status=IRREGULAR)
    )
    assert np.array_equal(read_docword(write(tmp_path, text)).toarray(), dense)


def test_a_missing_last_line_end_needs_no_slow_parse(tmp_path, monkeypatch):
    monkeypatch.delattr(EntryReader, "judge")
    assert read_docword(write(tmp_path, SMALL.rstrip("\n"))).toarray().tolist() == SMALL_ROWS


def test_a_batch_does_not_keep_its_block_alive(tmp_path):
    batch, _ = next(iter_docword(write(tmp_path, SMALL), batch_rows=2))
    for array in (batch.data, batch.indices, batch.indptr):
        owner = array if array.base is None else array.base
        assert owner.size == array.size


def test_memory_does_not_grow_with_the_file(tmp_path):
    def peak(n_documents: int) -> int:
        lines = "".join(f"{document} 1 1\n" for document in range(1, n_documents + 1))
        path = write(tmp_path, f"{n_documents}\n1\n{n_documents}\n{lines}")
        del lines
        tracemalloc.start()
        for _ in iter_docword(path):
            pass
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    assert peak(600_000) < 1.2 * peak(200_000)


# What replaces line 6 of a sound file, and what the message must say besides file, line and value.
BAD_LINES = {
    "4 2": "three whole numbers of at most 18 digits: docID wordID count",
    "4 2 7 1": "three whole numbers",
    "4 2 x": "three whole numbers",
    "4 2 7.5": "three whole numbers",
    "4 2 1_0": "three whole numbers",
    "4 2 +7": "three whole numbers",
    "4 - 2 7": "three whole numbers",
    "4,2,7": "three whole numbers",
    "4 2 9999999999999999999999": "three whole numbers of at most 18 digits",
    "4 2 \u0667": "three whole numbers",
    "0 2 7": "a docID in 1..5, as line 1 announces",
    "-4 2 7": "a docID in 1..5",
    "6 2 7": "a docID in 1..5",
    "1 2 7": "a docID of at least 2: sort the entries by docID",
    "4 0 7": "a wordID in 1..3, as line 2 announces",
    "4 4 7": "a wordID in 1..3",
    "4 2 0": "a count of at least 1",
    "4 2 -7": "a count of at least 1",
}


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_is_named(tmp_path, monkeypatch, bad, block_bytes):
    monkeypatch.setattr(reading, "BLOCK_BYTES", block_bytes)
    path = write(tmp_path, SMALL.replace("4 2 7", bad))
    message = f"{path}, line 6: {bad!r}: expected {BAD_LINES[bad]}"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_docword(path)


def test_line_numbers_count_blank_lines(tmp_path):
    path = write(tmp_path, SMALL.replace("4 2 7", "\n\n4 2 x"))
    with pytest.raises(ValueError, match="line 8: '4 2 x'"):
        read_docword(path)


@pytest.mark.parametrize("pair", ["4 2\n7 4 3 2", "4 2 7 4\n3 2", "\n4 2 7 4 3 2"])
def test_six_numbers_on_two_lines_are_not_two_entries(tmp_path, pair):
    path = write(tmp_path, SMALL.replace("4 2 7\n4 3 2", pair))
    with pytest.raises(ValueError, match=r"line [67]: '[ \d]+': expected three whole numbers"):
        read_docword(path)


def test_a_long_bad_line_is_shown_in_part(tmp_path):
    path = write(tmp_path, SMALL.replace("4 2 7", "x" * 10_000))
    with pytest.raises(ValueError, match=r"line 6: 'x{80}\.\.\.': expected"):
        read_docword(path)


@pytest.mark.parametrize(
    ("header", "line", "shown", "expected"),
    [
        ("", 1, "", "the number of documents D, at least 1"),
        ("doc\n3\n4\n", 1, "doc", "the number of documents D"),
        ("0\n3\n4\n", 1, "0", "the number of documents D"),
        ("5 3 4\n", 1, "5 3 4", "the number of documents D"),
        ("5\n-3\n4\n", 2, "-3", "the number of words W"),
        ("5\n3\n", 3, "", "the number of entries NNZ, at least 0"),
        ("5\n3\n2 1 4\n", 3, "2 1 4", "the number of entries NNZ"),
        ("5\n\x0b3\n4\n", 2, "\x0b3", "the number of words W"),
    ],
)
def test_a_bad_header_is_named(tmp_path, header, line, shown, expected):
    path = write(tmp_path, header)
    message = f"{path}, line {line}: {shown!r}: expected {expected}"
    with pytest.raises(ValueError, match=re.escape(message)):
        next(iter_docword(path))


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_fewer_entries_than_announced(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr(reading, "BLOCK_BYTES", block_bytes)
    path = write(tmp_path, SMALL.removesuffix("4 3 2\n"))
    message = (
        f"{path}: the file is truncated, it ends after line 6 with 3 entries; "
        "expected the 4 that line 3 announces"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        read_docword(path)


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_more_entries_than_announced(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr(reading, "BLOCK_BYTES", block_bytes)
    path = write(tmp_path, SMALL + "5 1 1\n5 2 1\n")
    message = f"{path}, line 8: '5 1 1': expected the end of the file after 4 entries"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_docword(path)


def test_a_document_that_may_be_cut_short_is_not_delivered(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 1)
    batches = iter_docword(write(tmp_path, SMALL.removesuffix("4 3 2\n")), batch_rows=1)
    assert [next(batches)[1] for _ in range(3)] == [1, 2, 3]
    with pytest.raises(ValueError, match="truncated"):
        next(batches)


@pytest.mark.parametrize("lost_bytes", [1, 8, 20])
def test_truncated_gzip(tmp_path, lost_bytes):
    path = write(tmp_path, gzip.compress(SMALL.encode())[:-lost_bytes])
    with pytest.raises(ValueError, match=re.escape(f"{path}: the gzip data are truncated")):
        read_docword(path)


# Byte 10 is the first after gzip's own header: 7 starts a block of a type that does not exist.
@pytest.mark.parametrize(("position", "value"), [(10, 7), (-5, 0)], ids=["data", "checksum"])
def test_damaged_gzip(tmp_path, position, value):
    content = bytearray(gzip.compress(SMALL.encode()))
    assert content[position] != value
    content[position] = value
    path = write(tmp_path, bytes(content))
    with pytest.raises(ValueError, match=re.escape(f"{path}: the gzip data are damaged (")):
        read_docword(path)


def test_batch_rows_must_be_positive(tmp_path):
    with pytest.raises(ValueError, match="batch_rows is 0: a batch needs at least 1 row"):
        next(iter_docword(write(tmp_path, SMALL), batch_rows=0))


def test_vocabulary(tmp_path):
    content = "senate\r\nna\u00efve\nline\u2028separator\nhouse".encode()
    words = ["senate", "na\u00efve", "line\u2028separator", "house"]
    assert read_vocabulary(write(tmp_path, content)) == words
    assert read_vocabulary(write(tmp_path, gzip.compress(content))) == words


def test_vocabulary_refuses_an_empty_line(tmp_path):
    path = write(tmp_path, "senate\n\nhouse\n")
    message = f"{path}, line 2: '': expected a word, because line numbers are word ids"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_vocabulary(path)


def test_vocabulary_refuses_what_is_not_utf8(tmp_path):
    path = write(tmp_path, b"senate\nna\xefve\n")
    message = f"{path}, line 2: 'na\\\\xefve': expected UTF-8 text"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_vocabulary(path)


def test_kos_is_what_the_repository_publishes(kos, monkeypatch):
    # The slow spelling is for bad lines only: a sound corpus must never need it.
    monkeypatch.delattr(EntryReader, "judge")
    counts = read_docword(kos)
    assert counts.shape == (3430, 6906)
    assert counts.nnz == 353_160
    assert counts.sum() == 467_714


@pytest.mark.parametrize("batch_rows", [1, 100, 1024, 3430, 10_000])
def test_kos_in_batches_is_kos(kos, batch_rows):
    whole = read_docword(kos)
    batches, positions = zip(*iter_docword(kos, batch_rows), strict=True)
    assert positions[-1] == 3430
    joined = sparse.vstack(batches, format="csr")
    assert np.array_equal(joined.indptr, whole.indptr)
    assert np.array_equal(joined.indices, whole.indices)
    assert np.array_equal(joined.data, whole.data)
