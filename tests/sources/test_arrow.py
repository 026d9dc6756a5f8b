"""Parquet and Arrow: types, texts, counts, pipes, and what is refused."""

import gzip
import io
import math
import os
import subprocess
import sys
import threading
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from feeding import read_all, write

from bnpstream.sources import Options, open_source
from bnpstream.sources.files.byte_reader import ByteReader

TABLE = pa.table(
    {
        "id": ["a", "b", None],
        "whole": pa.array([1, None, 3], pa.int16()),
        "exact": [Decimal("0.50"), Decimal("1.50"), None],
        "single": pa.array([1.5, math.nan, 2.5], pa.float32()),
        "sold": [True, None, False],
        "colour": pa.array(["red", "blue", None]).dictionary_encode(),
        "when": pa.array([1, 2, 3], pa.timestamp("s")),
        "nothing": pa.nulls(3),
    }
)
ROWS = [
    [1.0, 0.5, 1.5, True, "red"],
    [None, 1.5, None, None, "blue"],
    [3.0, None, 2.5, False, None],
]


def pack(table, name):
    sink = io.BytesIO()
    if name == "parquet":
        pq.write_table(table, sink)
    else:
        new = pa.ipc.new_stream if name == "stream" else pa.ipc.new_file
        with new(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


@pytest.fixture(params=["parquet", "file", "stream"])
def save(request, tmp_path):
    """Return what writes a table into a file whose name says nothing."""
    return lambda table: write(tmp_path, "data", pack(table, request.param))


def test_columns_become_cells(save):
    source = open_source(save(TABLE))
    assert source.schema.names == ("whole", "exact", "single", "sold", "colour")
    assert source.schema.types == ("number", "number", "number", "truth", "label")
    records, rejects = read_all(source)
    assert [row for _, _, row, _ in records] == ROWS
    assert [id_ for _, id_, _, _ in records] == ["a", "b", 2]
    assert rejects == []
    assert source.progress() == 1.0


def test_columns_can_be_chosen(save):
    path = save(TABLE)
    [(batch, _)] = open_source(path, Options(columns=("single", "whole"))).batches()
    np.testing.assert_array_equal(batch.rows, [[1.5, 1], [math.nan, math.nan], [2.5, 3]])
    assert batch.rows.dtype == np.float64
    with pytest.raises(ValueError, match="'when' does not hold numbers"):
        open_source(path, Options(columns=("when",)))
    with pytest.raises(ValueError, match="has no column 'size'; it has id, whole"):
        open_source(path, Options(columns=("size",)))
    records, [reject] = read_all(open_source(path, Options(id_field="id")))
    assert [number for number, *_ in records] == [0, 1]
    assert (reject.line, reject.record) == (3, 2)
    assert "is not a string or a whole number" in reject.reason


def test_texts_and_counts_become_documents(save):
    table = pa.table(
        {
            "id": [5, 6, 7],
            "text": ["The house, the vote", None, ""],
            "words": [["aa", "b", "aa"], [], None],
            "tally": pa.array([[("aa", 2)], [], [("b", -1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    path = save(table)
    records, [reject] = read_all(open_source(path))
    assert records == [
        (0, 5, {"the": 2, "house": 1, "vote": 1}, "The house, the vote"),
        (2, 7, {}, ""),
    ]
    assert (reject.line, reject.reason) == (2, "column 'text' is missing")
    records, [reject] = read_all(open_source(path, Options(counts_field="words")))
    assert [row for _, _, row, _ in records] == [{"aa": 2, "b": 1}, {}]
    assert (reject.record, reject.reason) == (2, "column 'words' is missing")
    records, [reject] = read_all(open_source(path, Options(counts_field="tally")))
    assert [row for _, _, row, _ in records] == [{"aa": 2}, {}]
    assert "negative" in reject.reason
    [(batch, _)] = open_source(path, Options(hash_bits=4)).batches()
    assert batch.rows.sum(axis=1).tolist() == [4, 0]


def test_infinite_numbers_are_rejected(save):
    records, [reject] = read_all(open_source(save(pa.table({"a": [1.0, -math.inf, 2.0]}))))
    assert [row for _, _, row, _ in records] == [(1.0,), (2.0,)]
    assert (reject.line, reject.beginning) == (2, "{'a': -inf}")


def test_a_later_file_is_matched_by_name(save):
    schema = open_source(save(TABLE)).schema
    later = TABLE.select(["colour", "sold", "single", "exact", "whole"])
    records, _ = read_all(open_source(save(later), schema=schema))
    assert [row for _, _, row, _ in records] == ROWS
    assert [id_ for _, id_, _, _ in records] == [0, 1, 2]
    with pytest.raises(ValueError, match="has no column 'sold'"):
        read_all(open_source(save(TABLE.drop_columns("sold")), schema=schema))
    other = TABLE.set_column(1, "whole", pa.array(["x", "y", "z"]))
    with pytest.raises(ValueError, match="'whole' is of type string, not of numbers"):
        read_all(open_source(save(other), schema=schema))


def test_a_shorter_file_is_refused(save):
    source = open_source(save(TABLE))
    *_, (_, position) = source.batches()
    with pytest.raises(ValueError, match="has 2 rows, but 3 were read before"):
        read_all(open_source(save(TABLE.slice(0, 2)), schema=source.schema), start=position)


def test_a_parquet_file_announces_its_rows(tmp_path):
    path = write(tmp_path, "a.parquet", pack(TABLE, "parquet"))
    assert open_source(path).n_records == 3
    assert open_source([path, path]).n_records is None


def test_row_groups_before_a_position_are_not_read(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(100)}), path, row_group_size=10)
    asked = []
    iter_batches = pq.ParquetFile.iter_batches

    def spy(self, **options):
        asked.extend(options["row_groups"])
        return iter_batches(self, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    source = open_source(str(path))
    position = [position for _, position in source.batches(7)][9]
    asked.clear()
    records, _ = read_all(source, 7, position)
    assert asked == [7, 8, 9]
    assert [row for _, _, row, _ in records] == [(float(i),) for i in range(70, 100)]


def test_batches_cross_record_batches(tmp_path):
    sink = io.BytesIO()
    table = pa.table({"a": [float(i) for i in range(20)]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for start in (0, 3, 11, 11, 12):
            writer.write_batch(table.slice(start, 3).to_batches()[0])
    source = open_source(write(tmp_path, "a.arrow", sink.getvalue()))
    assert [len(batch) for batch, _ in source.batches(4)] == [4, 4, 4, 3]
    assert [len(batch) for batch, _ in source.batches(1000)] == [15]


def test_the_stream_format_comes_by_a_pipe_and_packed(tmp_path):
    data = pack(TABLE, "stream")
    code = """if True:
        from bnpstream.sources import open_source
        for batch, position in open_source("-").batches():
            print(batch.rows.tolist(), position["in_file"])
    """
    for content in (data, gzip.compress(data)):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, input=content, capture_output=True, check=True)
        assert done.stdout.decode() == f"{ROWS} 3\n"


def test_a_live_stream_is_answered_batch_by_batch(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    seen = [threading.Event() for _ in range(3)]
    table = pa.table({"a": [1.0, 2.0]})

    def feed():
        with path.open("wb", buffering=0) as pipe, pa.ipc.new_stream(pipe, table.schema) as writer:
            for event in seen:
                writer.write_table(table)
                assert event.wait(10)

    writer = threading.Thread(target=feed)
    writer.start()
    for event, (batch, _) in zip(seen, open_source(str(path)).batches(), strict=True):
        assert batch.rows.tolist() == [[1.0], [2.0]]
        event.set()
    writer.join()


@pytest.mark.parametrize("name", ["parquet", "file"])
def test_an_index_at_the_end_needs_a_plain_file(tmp_path, name):
    data = pack(TABLE, name)
    with pytest.raises(ValueError, match="needs a plain file, as its index is at the end"):
        open_source(write(tmp_path, "a.gz", data))
    with pytest.raises(ValueError, match="needs a plain file"):
        open_source(write(tmp_path, "a", data), follow=True)
    code = "from bnpstream.sources import open_source; open_source('-')"
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True)
    assert b"use the stream format of Arrow" in done.stderr


@pytest.mark.parametrize("name", ["parquet", "file", "stream"])
def test_a_damaged_file_is_named(tmp_path, name):
    path = write(tmp_path, "a", pack(TABLE, name)[:-400])
    with pytest.raises(ValueError, match="a: damaged, or not in this format"):
        read_all(open_source(path))


def test_without_pyarrow_the_way_out_is_said(tmp_path, monkeypatch):
    path = write(tmp_path, "a.parquet", pack(TABLE, "parquet"))
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'bnpstream\[arrow\]'"):
        open_source(path)
    with ByteReader(path) as file:
        assert file.peek(4) == b"PAR1"
