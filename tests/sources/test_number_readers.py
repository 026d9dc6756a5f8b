"""The readers of counts and tables: the same rows in every format, from every position on."""

import os
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from number_files import (
    PACKERS,
    TEXT_FORMATS,
    WRITERS,
    CutReader,
    dense,
    matrix_market,
    random_counts,
    read,
    rejects,
    svmlight,
    write,
)
from scipy import sparse

from bnpstream.datasets import find
from bnpstream.sources import open_source
from bnpstream.sources.files import byte_reader as reading
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import HEAD_BYTES, Position
from bnpstream.sources.files.source import FORMATS, reader_class
from bnpstream.sources.records import Options

CASES = [(format, packer) for format in TEXT_FORMATS for packer in PACKERS]
CASES += [("npz", "plain"), ("npy", "plain")]


@pytest.mark.kernel
@pytest.mark.parametrize(("format", "packer"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_what_was_written(tmp_path, format, packer, seed):
    rows = random_counts(seed)
    path = write(tmp_path, PACKERS[packer](WRITERS[format](rows)))
    vocabulary = write(tmp_path, "\n".join("abcdefghi"), name="vocab.txt")
    source = open_source(path, Options(format=format, vocab=vocabulary))
    assert (source.schema.kind, source.schema.n_features) == ("counts", 9)
    batches = list(source.batches(5))
    assert dense(batches) == rows.tolist()
    assert rejects(batches) == []
    assert [len(records) for records, _ in batches] == [5, 5, 5, 5, 3]
    numbers = [number for records, _ in batches for number in records.numbers]
    assert numbers == list(range(23))
    for records, _ in batches:
        assert isinstance(records.rows, sparse.csr_array)
        assert records.rows.dtype == np.int64
        assert records.rows.indices.dtype == records.rows.indptr.dtype == np.int32
        assert records.rows.has_canonical_format
        assert records.ids == records.numbers
        assert records.excerpts == []


@pytest.mark.parametrize(("format", "packer"), CASES)
@pytest.mark.parametrize("batch_rows", [1, 4, 23])
def test_reading_goes_on_from_every_position(tmp_path, format, packer, batch_rows):
    path = write(tmp_path, PACKERS[packer](WRITERS[format](random_counts(1))))
    whole = read(path, format, 1, n_features=9)
    enters = packer == "plain" and format in ("lda-c", "svmlight")
    for number, (_, start) in enumerate(whole, start=1):
        assert Position.of(start)[:3] == (number, 0, number)
        assert (start["offset"] is not None) == enters
        rest = read(path, format, batch_rows, start, n_features=9)
        assert dense(rest) == dense(whole[number:])
        assert [n for records, _ in rest for n in records.numbers] == list(range(number, 23))
        # Batches end at multiples of their size, whatever the first one begins with.
        assert all(after["in_file"] % batch_rows == 0 for _, after in rest[:-1])
        for _, after in rest:
            assert after == whole[after["records"] - 1][1]


@pytest.mark.parametrize(("format", "packer"), CASES)
def test_a_shorter_file_is_not_the_same(tmp_path, format, packer):
    rows = random_counts(1)
    write(tmp_path, PACKERS[packer](WRITERS[format](rows)))
    *_, (_, start) = read(str(tmp_path / "rows"), format, n_features=9)
    path = write(tmp_path, PACKERS[packer](WRITERS[format](rows[:12])))
    with pytest.raises(ValueError, match=r"it is not the same (file|input); start a new run"):
        read(path, format, 4, start, n_features=9)


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_resuming_reports_the_same_rejects(tmp_path, format):
    text = WRITERS[format](random_counts(2)).decode()
    lines = text.splitlines(keepends=True)
    for i in range(len(lines) // 3, len(lines), 7):
        lines[i] = "x y\n"
    path = write(tmp_path, "".join(lines))
    whole = read(path, format, 1, n_features=9)
    assert len(rejects(whole)) >= 3
    for number, (_, start) in enumerate(whole, start=1):
        rest = read(path, format, 6, start, n_features=9)
        assert rejects(rest) == rejects(whole[number:])
        assert dense(rest) == dense(whole[number:])


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_blocks_may_be_cut_anywhere(tmp_path, monkeypatch, format):
    rows = random_counts(3, n_rows=6)
    content = WRITERS[format](rows).replace(b"\n", b"\r\n")
    lines = content.split(b"\n")
    lines[-3] = b"x" * 50
    path = write(tmp_path, b"\n".join(lines))
    options = {"n_features": 9, "max_line_bytes": 39}
    expected = read(path, format, 4, **options)
    assert len(rejects(expected)) == 1
    for cut in range(len(content)):
        monkeypatch.setattr(CutReader, "cut", cut)
        with CutReader(path) as file:
            reader = reader_class(format)
            schema = reader.find_schema(file, Options(**options))
            found = list(reader(file, schema, Options(**options)).batches(4, Position()))
        assert dense(found) == dense(expected)
        assert rejects(found) == rejects(expected)
        assert [after._asdict() for _, after in found] == [after for _, after in expected]


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 17])
@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_small_blocks(tmp_path, monkeypatch, format, block_bytes):
    rows = random_counts(4)
    path = write(tmp_path, WRITERS[format](rows))
    expected = read(path, format, 4, n_features=9)
    monkeypatch.setattr(reading, "BLOCK_BYTES", block_bytes)
    found = read(path, format, 4, n_features=9)
    assert dense(found) == rows.tolist()
    assert [after for _, after in found] == [after for _, after in expected]


@pytest.mark.parametrize("format", TEXT_FORMATS)
@pytest.mark.parametrize(
    "vary",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace(" ", "\t "),
        lambda text: text.replace("\n", " \n"),
    ],
    ids=["CRLF", "no last line end", "tabs", "trailing blanks"],
)
def test_harmless_variations_read_the_same(tmp_path, format, vary):
    rows = random_counts(5)
    if format == "mtx" and vary("% 1") != "% 1":
        vary = lambda text, vary=vary: text[:50] + vary(text[50:])  # noqa: E731
    path = write(tmp_path, vary(WRITERS[format](rows).decode()))
    batches = read(path, format, n_features=9)
    assert dense(batches) == rows.tolist()
    assert rejects(batches) == []


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_irregular_lines_are_read_with_care(tmp_path, format):
    """Any number of spaces and tabs is one blank; a form feed is none."""
    rows = random_counts(6)
    text = WRITERS[format](rows).decode()
    head, body = text[:60], text[60:]
    batches = read(write(tmp_path, head + body.replace(" ", " \t  ")), format, 4, n_features=9)
    assert dense(batches) == rows.tolist()
    assert rejects(batches) == []
    start = text.index("\n", 65) + 1  # of entries: in the sizes of a matrix it is an error
    head, body = text[:start], text[start:]
    strange = read(write(tmp_path, head + body.replace(" ", " \f")), format, 4, n_features=9)
    assert rejects(strange) != []


@pytest.mark.parametrize("format", ["uci", "lda-c", "svmlight", "mtx", "npz"])
def test_a_vocabulary_names_the_columns(tmp_path, format):
    path = write(tmp_path, WRITERS[format](random_counts(0)))
    words = write(tmp_path, "".join(f"w{i}\n" for i in range(9)), "vocab")
    assert open_source(path, Options(format, words)).schema.names == tuple(
        f"w{i}" for i in range(9)
    )


@pytest.mark.parametrize("format", ["uci", "mtx", "npz"])
def test_a_vocabulary_of_another_length_is_refused(tmp_path, format):
    path = write(tmp_path, WRITERS[format](random_counts(0)))
    words = write(tmp_path, "senate\nhouse\n", "vocab")
    with pytest.raises(ValueError, match="vocab: has 2 words, but there are 9 columns in"):
        open_source(path, Options(format, words))


@pytest.mark.parametrize("format", ["lda-c", "svmlight"])
def test_a_vocabulary_has_to_agree_with_n_features(tmp_path, format):
    path = write(tmp_path, WRITERS[format](random_counts(0)))
    words = write(tmp_path, "senate\nhouse\n", "vocab")
    with pytest.raises(ValueError, match="vocab: has 2 words, but there are 9 columns in"):
        open_source(path, Options(format, words, n_features=9))


@pytest.mark.parametrize("format", ["uci", "mtx", "npz"])
def test_files_of_a_source_have_the_same_columns(tmp_path, format):
    rows = random_counts(0)
    paths = [
        write(tmp_path, WRITERS[format](rows), "a"),
        write(tmp_path, WRITERS[format](rows[:, :7]), "b"),
    ]
    batches = open_source(paths, Options(format)).batches()
    next(batches)
    with pytest.raises(ValueError, match="b: it has 7 columns, but the source has 9"):
        next(batches)


@pytest.mark.parametrize("format", list(WRITERS))
def test_files_of_a_source_are_numbered_through(tmp_path, format):
    rows = random_counts(7)
    paths = [
        write(tmp_path, WRITERS[format](rows[:10]), "a"),
        write(tmp_path, WRITERS[format](rows[10:]), "b"),
    ]
    whole = read(paths, format, 4, n_features=9)
    assert dense(whole) == rows.tolist()
    assert [n for records, _ in whole for n in records.numbers] == list(range(23))
    assert Position.of(whole[-1][1])[:3] == (23, 1, 13)
    for i, (_, start) in enumerate(whole, start=1):
        rest = read(paths, format, 4, start, n_features=9)
        assert dense(rest) == dense(whole[i:])


@pytest.mark.parametrize("format", ["uci", "mtx", "npz"])
def test_the_number_of_records_is_announced(tmp_path, format):
    path = write(tmp_path, WRITERS[format](random_counts(0)))
    assert open_source(path, Options(format)).n_records == 23


@pytest.mark.parametrize("format", ["lda-c", "svmlight"])
def test_without_n_features_the_largest_id_is_looked_for(tmp_path, format):
    rows = random_counts(8)
    rows[:, 7:] = 0
    rows[20, 6] = 1
    path = write(tmp_path, WRITERS[format](rows))
    assert open_source(path, Options(format)).schema.n_features == 7
    assert dense(read(path, format, 4)) == rows[:, :7].tolist()


@pytest.mark.parametrize("format", ["lda-c", "svmlight"])
def test_a_pipe_needs_n_features(tmp_path, format):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    content = WRITERS[format](random_counts(0))
    writer = threading.Thread(target=Path(path).write_bytes, args=(content,))
    writer.start()
    with pytest.raises(ValueError, match="give --n-features or --vocab"):
        open_source(path, Options(format))
    writer.join()


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_a_pipe_is_delivered_as_it_comes(tmp_path, format):
    rows = random_counts(9)
    content = WRITERS[format](rows)
    half = content.index(b"\n", len(content) // 2) + 5
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    seen = threading.Event()

    def feed():
        with Path(path).open("wb", 0) as pipe:
            pipe.write(content[:half])
            assert seen.wait(20)
            pipe.write(content[half:])

    writer = threading.Thread(target=feed)
    writer.start()
    batches = open_source(path, Options(format, n_features=9)).batches(100)
    found = [next(batches)]
    assert 3 < len(found[0][0]) < 20  # nothing more will come before we say so
    seen.set()
    found += list(batches)
    writer.join()
    assert dense(found) == rows.tolist()
    assert [n for records, _ in found for n in records.numbers] == list(range(23))
    position = found[0][1]
    assert dense(
        read(write(tmp_path, content), format, 100, {**position, "offset": None}, n_features=9)
    ) == dense(found[1:])


@pytest.mark.parametrize("format", TEXT_FORMATS)
@pytest.mark.parametrize("packer", ["gzip", "zstd"])
def test_a_packed_file_that_is_cut_gives_what_is_complete(tmp_path, format, packer):
    rows = random_counts(0, n_rows=20_000)
    packed = PACKERS[packer](WRITERS[format](rows))
    path = write(tmp_path, packed[: len(packed) // 2])
    found = []
    with pytest.raises(ValueError, match=f"the {packer} data are truncated"):  # noqa: PT012
        for batch in open_source(path, Options(format, n_features=9)).batches(1024):
            found.append(batch)
    got = dense(found)
    assert 5_000 < len(got) < 15_000
    assert got == rows[: len(got)].tolist()
    assert rejects(found) == []


@pytest.mark.parametrize("format", list(WRITERS))
def test_memory_does_not_grow_with_the_file(tmp_path, format):
    def peak(n_rows: int) -> int:
        # Long numbers, so that there are many blocks of few lines.
        path = write(tmp_path, WRITERS[format](np.full((n_rows, 1), 10**17)))
        source = open_source(path, Options(format, n_features=1))
        tracemalloc.start()
        for _ in source.batches():
            pass
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    peak(1000)
    # One block more or less does not matter; the longer file has five more megabytes.
    assert peak(300_000) < peak(100_000) + 2e6 < 8e6


def test_kos_is_what_it_is(kos):
    folder = find("kos")
    options = Options("uci", vocab=str(folder / "vocab.kos.txt"))
    source = open_source(str(folder / "docword.kos.txt.gz"), options)
    assert source.schema.names == tuple(kos.feature_names)
    assert source.n_records == 3430
    batches = list(source.batches(1000))
    assert rejects(batches) == []
    rows = sparse.vstack([records.rows for records, _ in batches], format="csr")
    assert (rows != kos.counts).nnz == 0
    again = sparse.vstack([records.rows for records, _ in source.batches(1000, batches[1][1])])
    assert (again != kos.counts[2000:]).nnz == 0


def test_every_format_here_is_registered():
    assert {reader_class(name).format for name in WRITERS} == set(WRITERS) <= set(FORMATS)


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_a_followed_file_may_be_replaced(tmp_path, format):
    rows = random_counts(11)
    old, new = (WRITERS[format](part).rstrip(b"\n") for part in (rows[:9], rows[9:]))

    class Replaced(ByteReader):
        def blocks(self):
            yield old
            self.restarts += 1
            self.first = new[:HEAD_BYTES]
            yield new[:3]
            yield new[3:]

    with Replaced(write(tmp_path, old)) as file:
        reader, options = reader_class(format), Options(n_features=9)
        batches = reader(file, reader.find_schema(file, options), options).batches(5, Position())
        if format in ("uci", "mtx"):
            with pytest.raises(ValueError, match="it was cut or replaced while it was read"):
                list(batches)
            return
        found = list(batches)
    assert dense(found) == rows.tolist()
    assert [n for records, _ in found for n in records.numbers] == list(range(23))
    assert [after[:3] for _, after in found] == [
        (5, 0, 5),
        (9, 0, 9),
        (14, 0, 5),
        (19, 0, 10),
        (23, 0, 14),
    ]
    start = found[2][1]
    rest = read(write(tmp_path, new, "new"), format, 5, start._asdict(), n_features=9)
    assert dense(rest) == dense(found[3:])


# Tables


TABLES = {
    "svmlight": svmlight,
    "mtx": lambda rows: matrix_market(rows, "real"),
    "npz": WRITERS["npz"],
}


def random_table(seed: int) -> np.ndarray:
    rng = np.random.default_rng((63, seed))
    rows = rng.normal(size=(23, 9)) * 10.0 ** rng.integers(-12, 12, size=(23, 9))
    few_digits = rng.random((23, 9)) < 0.7
    rows[few_digits] = [float(f"{value:.4g}") for value in rows[few_digits]]
    rows[rng.random((23, 9)) < 0.4] = 0.0
    return rows


@pytest.mark.kernel
@pytest.mark.parametrize("format", TABLES)
@pytest.mark.parametrize("seed", range(3))
def test_real_values_make_a_table(tmp_path, format, seed):
    rows = random_table(seed)
    path = write(tmp_path, TABLES[format](rows))
    source = open_source(path, Options(format, n_features=9))
    assert source.schema.kind == "table"
    assert source.schema.types == ("number",) * 9
    batches = list(source.batches(5))
    assert all(isinstance(records.rows, np.ndarray) for records, _ in batches)
    assert np.array_equal(np.concatenate([records.rows for records, _ in batches]), rows)
    for i, (_, start) in enumerate(batches, start=1):
        assert dense(source.batches(5, start)) == dense(batches[i:])


@pytest.mark.parametrize("format", TABLES)
def test_a_table_may_not_be_too_wide(tmp_path, format):
    rows = np.zeros((3, 2001))
    rows[:, -1] = 0.5
    path = write(tmp_path, TABLES[format](rows))
    message = "the values are real numbers in 2001 columns, and tables have at most 2000"
    with pytest.raises(ValueError, match=message):
        open_source(path, Options(format))


def test_a_pattern_has_ones(tmp_path):
    rows = (random_counts(0) > 0).astype(int)
    path = write(tmp_path, matrix_market(rows, "pattern"))
    source = open_source(path, Options("mtx"))
    assert source.schema.kind == "counts"
    assert dense(source.batches(4)) == rows.tolist()


def test_ids_of_svmlight_may_count_from_0(tmp_path):
    rows = random_counts(10)
    path = write(tmp_path, svmlight(rows, first_id=0))
    for options in (Options("svmlight"), Options("svmlight", n_features=9)):
        source = open_source(path, options)
        assert source.schema.n_features == 9
        assert dense(source.batches(4)) == rows.tolist()
        # The schema tells, so that it is not guessed again from other records.
        rest = write(tmp_path, "0 1:1 8:1\n", "rest")
        again = open_source(rest, options, source.schema)
        assert dense(again.batches()) == [[0, 1, 0, 0, 0, 0, 0, 0, 1]]


@pytest.mark.parametrize("spelling", ["3", "3.0", "3.", "+3", "0.3e1", "30e-1", "0.03E+2", "003"])
def test_counts_of_svmlight_may_be_spelt_as_real_numbers(tmp_path, spelling):
    path = write(tmp_path, f"1 1:{spelling} 2:1\n")
    source = open_source(path, Options("svmlight"))
    assert source.schema.kind == "counts"
    assert dense(source.batches()) == [[3, 1]]


def test_counts_of_zero_are_left_out(tmp_path):
    ((records, _),) = read(write(tmp_path, "1 1:0 2:3\n"), "svmlight")
    assert records.rows.nnz == 1
    assert records.rows.toarray().tolist() == [[0, 3]]


def test_queries_and_comments_of_svmlight_are_skipped(tmp_path):
    text = "# a 1:2\n\n+1 qid:7 1:4 # 2:9\n  # b\n 0.5  1:1#2:3\n-1 qid:12\n1,3 2:5\n"
    batches = read(write(tmp_path, text), "svmlight")
    assert dense(batches) == [[4, 0], [1, 0], [0, 0], [0, 5]]
    assert rejects(batches) == []
