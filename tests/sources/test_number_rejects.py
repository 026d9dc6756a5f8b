"""Bad records of counts and tables: each is named, and the stream goes on."""

import io
import os
import re
import threading
import zipfile

import numpy as np
import pytest
from number_files import TEXT_FORMATS, WRITERS, dense, random_counts, read, rejects, write
from scipy import sparse

from bnpstream.sources import open_source
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position
from bnpstream.sources.formats import entries
from bnpstream.sources.formats.uci import DocwordReader
from bnpstream.sources.records import Options, Reject

MANY_DIGITS = "9" * 19


def check(path, format, line, text, kept, **options):
    """Read with one reject; return why."""
    batches = read(path, format, 2, **options)
    (reject,) = rejects(batches)
    assert reject.source == path
    assert reject.line == line
    assert reject.beginning == text
    kept_rows, numbers = kept
    assert dense(batches) == kept_rows
    assert [n for records, _ in batches for n in records.numbers] == numbers
    return reject


# UCI: documents 2 and 4 have entries; line 6 is the first of document 4.
DOCWORD = "5\n3\n4\n2 1 4\n2 3 1\n{}\n4 3 2\n"
DOCWORD_ROWS = [[0, 0, 0], [4, 0, 1], [0, 0, 0], [0, 0, 2], [0, 0, 0]]
BAD_ENTRIES = {
    "4 2": "three whole numbers of at most 18 digits: docID wordID count",
    "4 2 7 1": "three whole numbers",
    "4 2 x": "three whole numbers",
    "4 2 7.0": "three whole numbers",
    "4 2 +7": "three whole numbers",
    f"4 2 {MANY_DIGITS}": "three whole numbers",
    f"4 {MANY_DIGITS} 1": "three whole numbers",
    "4 0 7": "a wordID in 1..3, as line 2 announces",
    "4 4 7": "a wordID in 1..3, as line 2 announces",
    "4 -1 7": "a wordID in 1..3, as line 2 announces",
    "4 2 0": "a count of at least 1",
    "4 2 -7": "a count of at least 1",
}


@pytest.mark.parametrize("bad", BAD_ENTRIES)
def test_a_bad_entry_rejects_its_document(tmp_path, bad):
    path = write(tmp_path, DOCWORD.format(bad))
    rows = DOCWORD_ROWS[:3] + DOCWORD_ROWS[4:]
    reject = check(path, "uci", 6, bad, (rows, [0, 1, 2, 4]))
    assert reject.record == 3
    assert reject.reason.startswith(f"expected {BAD_ENTRIES[bad]}")


@pytest.mark.parametrize("bad", ["x 2 7", "docs", f"{MANY_DIGITS} 1 1", "4.0 2 7"])
def test_an_entry_of_nobody_knows_what_rejects_the_document_before(tmp_path, bad):
    path = write(tmp_path, DOCWORD.format(bad))
    rows = DOCWORD_ROWS[:1] + DOCWORD_ROWS[2:]
    assert check(path, "uci", 6, bad, (rows, [0, 2, 3, 4])).record == 1


@pytest.mark.parametrize(
    ("bad", "record", "reason"),
    [
        ("1 2 7", 0, "a docID of at least 2: sort the entries by docID"),
        ("1 9 x", 0, "three whole numbers"),
        ("0 2 7", 1, "a docID in 1..5, as line 1 announces"),
        ("-4 2 7", 1, "a docID in 1..5, as line 1 announces"),
        ("6 2 7", 1, "a docID in 1..5, as line 1 announces"),
    ],
)
def test_an_entry_out_of_order_rejects_itself(tmp_path, bad, record, reason):
    path = write(tmp_path, DOCWORD.format(bad))
    reject = check(path, "uci", 6, bad, (DOCWORD_ROWS, [0, 1, 2, 3, 4]))
    assert reject.record == record
    assert reject.reason.startswith(f"expected {reason}")


def test_a_document_is_rejected_once_and_all_its_entries_go(tmp_path):
    path = write(tmp_path, "3\n2\n6\n1 1 1\n2 1 5\n2 1 x\n2 9 1\n2 2 5\n3 1 1\n")
    batches = read(path, "uci", 2)
    assert dense(batches) == [[1, 0], [1, 0]]
    assert [(reject.line, reject.record) for reject in rejects(batches)] == [(6, 1)]
    # It is in the batch that would have had the document.
    assert [len(records.rejects) for records, _ in batches] == [1, 0]
    assert [position["records"] for _, position in batches] == [2, 3]


def test_a_document_stays_rejected_while_its_entries_still_come(tmp_path):
    pieces = [b"3\n2\n6\n1 1 1\n2 2 2\n2 1 x\n", b"2 2 1\n", b"1 1 1\n", b"3 1 1\n"]

    class Slow(ByteReader):
        def blocks(self):
            return iter(pieces)

        def waiting(self):
            return False

    with Slow(write(tmp_path, b"".join(pieces))) as file:
        schema = DocwordReader.find_schema(file, Options())
        batches = list(DocwordReader(file, schema, Options()).batches(9, Position()))
    assert [position.in_file for _, position in batches] == [1, 2, 3]
    assert [records.numbers for records, _ in batches] == [[0], [], [2]]
    assert [[reject.line for reject in records.rejects] for records, _ in batches] == [
        [],
        [6, 8],
        [],
    ]
    assert dense(batches) == [[1, 0], [1, 0]]


def test_many_entries_out_of_order_end_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(entries, "MOST_STRAYS", 3)
    strays = ["1 1 1\n"] * 4
    for n_strays in (3, 4):
        text = "9\n2\n7\n1 1 1\n2 1 5\n" + "".join(strays[:n_strays]) + "8 1 1\n9 1 1\n"
        path = write(tmp_path, text)
        batches = open_source(path, Options("uci")).batches(1)
        assert dense([next(batches)]) == [[1, 0]]
        if n_strays == 3:
            assert len(rejects(batches)) == 3
        else:
            assert len(next(batches)[0].rejects) == 3
            with pytest.raises(ValueError, match="line 9: more than 3 entries are out of order"):
                next(batches)


def test_more_entries_than_announced_end_the_file(tmp_path):
    path = write(tmp_path, "4\n2\n2\n1 1 1\n2 1 5\n3 1 1\n")
    batches = open_source(path, Options("uci")).batches(1)
    assert dense([next(batches)]) == [[1, 0]]
    with pytest.raises(ValueError, match="line 6: '3 1 1': expected the end of the file after 2"):
        next(batches)


@pytest.mark.parametrize("format", ["uci", "mtx"])
def test_a_file_that_is_cut_gives_what_is_complete(tmp_path, format):
    rows = random_counts(0)
    rows[-2] = 1
    content = WRITERS[format](rows)
    path = write(tmp_path, content[: content.rindex(b"\n", 0, -1) + 1])
    found = []
    with pytest.raises(ValueError, match="the file is truncated, it ends after line"):  # noqa: PT012
        for batch in open_source(path, Options(format)).batches(100):
            found.append(batch)
    assert dense(found) == rows[:-2].tolist()
    assert found[-1][1]["in_file"] == 21


def test_what_is_rejected_before_the_end_of_a_cut_file_is_reported(tmp_path):
    path = write(tmp_path, "3\n2\n6\n1 1 1\n2 1 x\n")
    found = []
    with pytest.raises(ValueError, match="the file is truncated"):  # noqa: PT012
        for batch in open_source(path, Options("uci")).batches():
            found.append(batch)
    assert dense(found) == [[1, 0]]
    assert [reject.record for reject in rejects(found)] == [1]
    assert found[-1][1]["in_file"] == 2


# Matrix Market

MATRIX = "%%MatrixMarket matrix coordinate {} general\n% comment\n3 2 4\n1 1 4\n{}\n2 2 1\n3 1 2\n"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("2 1", "a row, a column and a value, all whole numbers of at most 18 digits"),
        ("2 1 x", "a row, a column and a value"),
        ("2 1 0.5", "a row, a column and a value"),
        ("2 1 nan", "a row, a column and a value"),
        (f"2 1 {MANY_DIGITS}", "a row, a column and a value"),
        ("2 1 -1", "a count of at least 0"),
        ("2 3 1", "a column in 1..2, as line 3 announces"),
        ("% 2 3", "a row, a column and a value"),
    ],
)
def test_a_bad_entry_of_a_matrix_rejects_its_row(tmp_path, bad, reason):
    path = write(tmp_path, MATRIX.format("integer", bad))
    is_row = bad.startswith("2")
    kept = ([[4, 0], [2, 0]], [0, 2]) if is_row else ([[0, 1], [2, 0]], [1, 2])
    assert check(path, "mtx", 5, bad, kept).reason.startswith(f"expected {reason}")


@pytest.mark.parametrize("bad", ["2 1 x", "2 1 nan", "2 1 1e999", "2 1 1_0", "2 1 0x1p3"])
def test_a_bad_value_of_a_table(tmp_path, bad):
    path = write(tmp_path, MATRIX.format("real", bad))
    reject = check(path, "mtx", 5, bad, ([[4, 0], [2, 0]], [0, 2]))
    assert reject.reason == ("expected a row, a column and a value, the first two whole numbers")


def test_one_entry_out_of_order_is_a_reject(tmp_path):
    entries = [f"{i} 1 1" for i in range(1, 20_001)]
    entries[15_000] = "7 1 1"
    head = "%%MatrixMarket matrix coordinate integer general\n20000 1 20000\n"
    batches = read(write(tmp_path, head + "\n".join(entries)), "mtx")
    (reject,) = rejects(batches)
    assert reject.line == 15_003
    assert reject.record == 6
    assert reject.reason == "expected a row of at least 15000: sort the entries by row"
    assert sum(len(records) for records, _ in batches) == 20_000


HEADERS = {
    "": "%%MatrixMarket matrix coordinate, then integer, real or pattern, then general",
    "hello\n": "%%MatrixMarket matrix coordinate, then",
    "%%MatrixMarket matrix array real general\n2 2\n": "coordinate, not a dense array",
    "%%MatrixMarket matrix coordinate complex general\n": "values that are integer, real or",
    "%%MatrixMarket matrix coordinate real symmetric\n": "general, with all entries",
    "%%MatrixMarket vector coordinate real general\n": "a matrix",
}


@pytest.mark.parametrize("text", HEADERS)
def test_a_banner_that_will_not_do_says_what_to_do(tmp_path, text):
    path = write(tmp_path, text + "x\n")
    message = f"{path}, line 1: {(text or 'x').splitlines()[0]!r}: expected {HEADERS[text]}"
    with pytest.raises(ValueError, match=re.escape(message)):
        open_source(path, Options("mtx"))


@pytest.mark.parametrize(
    "size", ["2 2", "2 2 x", "0 2 1", "2 2 -1", "2 2 1 1", "%", "", "2\x0b2 1", "\x0c"]
)
def test_a_matrix_needs_a_size(tmp_path, size):
    path = write(tmp_path, f"%%MatrixMarket matrix coordinate real general\n{size}")
    with pytest.raises(ValueError, match="expected the size: number of rows, columns and entries"):
        open_source(path, Options("mtx"))


def test_a_matrix_sorted_by_columns_is_refused(tmp_path):
    head = "%%MatrixMarket matrix coordinate integer general\n2 2 3\n"
    path = write(tmp_path, head + "1 1 1\n2 1 1\n1 2 1\n")
    message = r"line 5: '1 2 1': expected a row of at least 2, sorted by row: .*mmwrite"
    with pytest.raises(ValueError, match=message):
        open_source(path, Options("mtx"))


# Lines of pairs

PAIRS = {
    "lda-c": "1 0:4\n{}\n2 1:7 2:2\n",
    "svmlight": "1 1:4\n{}\n2 2:7 3:2\n",
}
BAD_PAIRS = [
    ("lda-c", "", "n and n pairs id:count, all whole numbers of at most 18 digits; 0 stands"),
    ("lda-c", "1:7 2:2", "n and n pairs"),
    ("lda-c", "2 1:7 2:x", "n and n pairs"),
    ("lda-c", "2 1:7 2:1.0", "n and n pairs"),
    ("lda-c", "2 1:7 -2:1", "n and n pairs"),
    ("lda-c", f"1 1:{MANY_DIGITS}", "n and n pairs"),
    ("lda-c", "3 1:7 2:2", "3 pairs id:count, as its first number says, not 2"),
    ("lda-c", "1 1:7 2:2", "1 pairs id:count, as its first number says, not 2"),
    ("lda-c", "1 3:7", "word ids in 0..2, because there are 3 words"),
    ("lda-c", "1 1:0", "counts of at least 1: leave out words that do not occur"),
    ("svmlight", "1:7 2:2", "a label and pairs id:value, with whole numbers as ids"),
    ("svmlight", "1 2", "a label and pairs"),
    ("svmlight", "1 x:2", "a label and pairs"),
    ("svmlight", "1 -1:2", "a label and pairs"),
    ("svmlight", "1 1 :2", "a label and pairs"),
    ("svmlight", "1 1: 2", "a label and pairs"),
    ("svmlight", "1 1:2 quid:3", "a label and pairs"),
    ("svmlight", "1 qid:x 1:3", "a label and pairs"),
    ("svmlight", "1 1:2 qid:3", "a label and pairs"),
    ("svmlight", "1 qid: 1:3", "a label and pairs"),
    ("svmlight", "1 qid:3 qid:4 1:3", "a label and pairs"),
    ("svmlight", f"1 {MANY_DIGITS}:2", "a label and pairs"),
    ("svmlight", "1 1:x", "values that are whole numbers"),
    ("svmlight", "1 1:nan", "values that are whole numbers"),
    ("svmlight", f"1 1:{MANY_DIGITS}", "values that are whole numbers"),
    ("svmlight", "1 4:7", "ids in 1..3, because there are 3 columns"),
    ("svmlight", "1 0:7", "ids in 1..3, because there are 3 columns"),
]


@pytest.mark.parametrize(("format", "bad", "reason"), BAD_PAIRS)
def test_a_bad_line_is_a_reject(tmp_path, format, bad, reason):
    # The bad line is in the second file, so that it does not decide what values are.
    first = write(tmp_path, PAIRS[format].format("0"), "first")
    path = write(tmp_path, PAIRS[format].format(bad))
    batches = list(open_source([first, path], Options(format)).batches())
    assert rejects(batches[:1]) == []
    assert dense(batches[:1]) == [[4, 0, 0], [0, 0, 0], [0, 7, 2]]
    (reject,) = rejects(batches)
    assert reject == Reject(path, 2, 4, reject.reason, bad)
    assert reject.reason.startswith(f"expected {reason}")
    assert batches[1][0].numbers == [3, 5]
    assert dense(batches[1:]) == [[4, 0, 0], [0, 7, 2]]


def test_later_values_have_to_fit_what_the_first_records_are(tmp_path):
    counts = "1 1:4\n" * 200_000
    batches = read(write(tmp_path, counts + "1 1:0.5\n1 1:-2\n1 1:3\n"), "svmlight")
    assert [reject.reason for reject in rejects(batches)] == [
        "expected values that are whole numbers, like those of the first records",
        "expected values of at least 0, like those of the first records",
    ]
    assert dense(batches[-1:])[-1] == [3]


@pytest.mark.parametrize("bad", ["1 1:x", "1 1:nan", "1 1:-inf", "1 1:1e999"])
def test_a_table_takes_finite_numbers_only(tmp_path, bad):
    batches = read(write(tmp_path, f"1 1:0.5\n{bad}\n1 1:-2\n"), "svmlight")
    assert [reject[1:3] + reject[4:5] for reject in rejects(batches)] == [(2, 1, bad)]
    assert rejects(batches)[0].reason == "expected values that are numbers"
    assert dense(batches) == [[0.5], [-2.0]]


@pytest.mark.parametrize("format", ["lda-c", "svmlight"])
def test_no_ids_at_all(tmp_path, format):
    path = write(tmp_path, "0\n0\n")
    with pytest.raises(ValueError, match=r"no .* has a (word|value): give --n-features"):
        open_source(path, Options(format))
    assert dense(read(path, format, n_features=2)) == [[0, 0], [0, 0]]


# Long lines


@pytest.mark.parametrize("format", TEXT_FORMATS)
@pytest.mark.parametrize("length", [101, 150, 3_000_000])
@pytest.mark.parametrize(
    ("n_kept", "filling"), [(None, b" "), (2, b" "), (2, b"x"), (2, b"1"), (0, b" ")]
)
def test_a_line_that_is_too_long_is_a_reject(tmp_path, format, length, n_kept, filling):
    rows = np.ones((6, 2), dtype=int)
    lines = WRITERS[format](rows).split(b"\n")
    whole = read(write(tmp_path, b"\n".join(lines)), format, max_line_bytes=100)
    assert rejects(whole) == []
    lines[-3] = lines[-3][:n_kept].ljust(length, filling)
    path = write(tmp_path, b"\n".join(lines))
    batches = read(path, format, 2, max_line_bytes=100, n_features=2)
    (reject,) = rejects(batches)
    assert reject.line == len(lines) - 2
    assert reject.reason == "expected a line of at most 100 bytes"
    assert reject.beginning == lines[-3][:200].decode()
    assert len(dense(batches)) == 5
    # Positions after it are right.
    for i, (_, position) in enumerate(batches, start=1):
        rest = read(path, format, 2, position, max_line_bytes=100, n_features=2)
        assert dense(rest) == dense(batches[i:])


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_a_line_may_be_as_long_as_allowed(tmp_path, format):
    rows = np.ones((6, 2), dtype=int)
    lines = WRITERS[format](rows).split(b"\n")
    lines[-2] = lines[-2].ljust(100)
    batches = read(write(tmp_path, b"\n".join(lines)), format, max_line_bytes=100)
    assert rejects(batches) == []
    assert dense(batches) == rows.tolist()


# npz


def save(path, **arrays) -> str:
    """Write the arrays of a small matrix, some replaced."""
    matrix = {
        "format": np.array(b"csr"),
        "shape": np.array([4, 3]),
        "indptr": np.array([0, 1, 3, 3, 4]),
        "indices": np.array([0, 0, 2, 1], dtype=np.int32),
        "data": np.array([4, 7, 2, 1]),
    }
    np.savez_compressed(path, **matrix | arrays)
    return str(path)


def test_a_matrix_that_scipy_reads(tmp_path):
    for indices in ([0, 0, 2, 1], [0, 2, 0, 1], [0, 2, 2, 1]):
        path = save(tmp_path / "rows.npz", indices=np.array(indices))
        batches = read(path, "npz", 3)
        assert dense(batches) == sparse.load_npz(path).toarray().tolist()
        assert all(records.rows.has_canonical_format for records, _ in batches)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.uint64, ">i4", ">u2", np.bool_, np.float32, ">f8", np.float16]
)
def test_types_of_values(tmp_path, dtype):
    data = np.array([1, 1, 0, 1], dtype=dtype)
    path = save(tmp_path / "rows.npz", data=data, indices=np.array([0, 2, 0, 1], dtype=">i8"))
    batches = read(path, "npz", 3)
    kind = np.float64 if data.dtype.kind == "f" else np.int64
    assert all(records.rows.dtype == kind for records, _ in batches)
    assert dense(batches) == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]
    if kind == np.int64:
        assert sum(records.rows.nnz for records, _ in batches) == 3


@pytest.mark.parametrize(
    ("arrays", "reason", "beginning"),
    [
        ({"indices": np.array([0, 3, 2, 1])}, "columns in 0..2", "3:7 2:2"),
        ({"indices": np.array([0, 0, -1, 1])}, "columns in 0..2", "0:7 -1:2"),
        ({"data": np.array([4, 7, -2, 1])}, "values of at least 0", "0:7 2:-2"),
        ({"data": np.array([4, 2**63, 2, 1], dtype=np.uint64)}, "values", f"0:{2**63} 2:2"),
        ({"data": np.array([4, np.nan, 2, 1])}, "finite values", "0:nan 2:2.0"),
        ({"data": np.array([4, 7, -np.inf, 1])}, "finite values", "0:7.0 2:-inf"),
    ],
)
def test_a_bad_row_of_an_archive(tmp_path, arrays, reason, beginning):
    path = save(tmp_path / "rows.npz", **arrays)
    reject = check(path, "npz", 2, beginning, ([[4, 0, 0], [0, 0, 0], [0, 1, 0]], [0, 2, 3]))
    assert reject.record == 1
    assert reject.reason.startswith(f"expected {reason}")


BAD_ARCHIVES = [
    ({"format": np.array(b"csc")}, "the matrix is stored as 'csc', not as 'csr'"),
    ({"data": np.array([1j, 1, 1, 1])}, "the values are of type complex128"),
    ({"data": np.array(["a", "b", "c", "d"])}, "the values are of type <U1"),
    ({"data": np.array([1, None, 1, 1])}, "data: holds Python objects, which are not loaded"),
    ({"data": np.array([1, 2, 3])}, "its arrays do not belong together"),
    ({"indptr": np.array([0, 1, 3])}, "its arrays do not belong together"),
    ({"shape": np.array([4])}, "shape: the array is cut short"),
    ({"shape": np.array([4, 0])}, "not a matrix of numbers"),
    ({"shape": np.array([4 + 1j, 3])}, "its shape and columns are not whole numbers"),
    ({"shape": np.array([4.5, 3])}, "its shape and columns are not whole numbers"),
]


@pytest.mark.parametrize(("arrays", "message"), BAD_ARCHIVES)
def test_an_archive_that_will_not_do_is_refused(tmp_path, arrays, message):
    path = save(tmp_path / "rows.npz", **arrays)
    with pytest.raises(ValueError, match=re.escape(message)):
        open_source(path, Options("npz"))


@pytest.mark.parametrize(
    "indptr",
    [
        *([0, 3, 1, 3, 4], [0, 1, 3, 3, 9], [-1, 1, 3, 3, 4], [1, 1, 3, 3, 4]),
        [0, 2, np.iinfo(np.int64).min, -1, 4],  # differences wrap around
    ],
)
def test_bounds_out_of_order(tmp_path, indptr):
    path = save(tmp_path / "rows.npz", indptr=np.array(indptr))
    with pytest.raises(ValueError, match="the bounds of rows are out of order"):
        read(path, "npz")


def test_other_archives_are_refused(tmp_path):
    np.savez(tmp_path / "rows.npz", np.ones((3, 2)))
    with pytest.raises(ValueError, match="no array 'format' in the archive"):
        open_source(str(tmp_path / "rows.npz"), Options("npz"))
    path = write(tmp_path, b"PK no archive")
    with pytest.raises(ValueError, match="the archive is damaged"):
        open_source(path, Options("npz"))


def test_a_damaged_archive_gives_what_is_sound(tmp_path):
    rows = np.random.default_rng((64, 0)).integers(1, 10**9, size=(20_000, 5))
    file = io.BytesIO()
    sparse.save_npz(file, sparse.csr_array(rows))
    content = bytearray(file.getvalue())
    with zipfile.ZipFile(file) as archive:
        member = archive.getinfo("data.npy")
    content[member.header_offset + member.compress_size // 2] ^= 255
    path = write(tmp_path, bytes(content))
    found = []
    with pytest.raises(ValueError, match="data: the archive is damaged"):  # noqa: PT012
        for batch in open_source(path, Options("npz")).batches():
            found.append(batch)
    assert 1024 <= len(dense(found)) < 20_000


def test_an_archive_cannot_come_through_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(WRITERS["npz"](random_counts(0)),))
    writer.start()
    with pytest.raises(ValueError, match="cannot be read from a pipe"):
        open_source(str(path), Options("npz"))
    writer.join()
