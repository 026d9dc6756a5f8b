"""Damaged Parquet and Arrow files: a reject or a ValueError that names the file, never a crash."""

import io
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from feeding import read_all, write

from bnpstream.sources import Options, open_source

FORMATS = ("parquet", "file", "stream")
MUTANTS = 60
"""Damaged files of each format that a test reads."""


def pack(table, name, **options):
    sink = io.BytesIO()
    if name == "parquet":
        pq.write_table(table, sink, **options)
    else:
        new = pa.ipc.new_stream if name == "stream" else pa.ipc.new_file
        with new(sink, table.schema) as writer:
            writer.write_table(table, **options)
    return sink.getvalue()


def misread(strings, *bad):
    """Return an array of strings, some of which are not UTF-8."""
    cells = [b"\xff\xfe" if i in bad else word.encode() for i, word in enumerate(strings)]
    return pa.array(cells, pa.binary()).view(pa.string())


@pytest.mark.parametrize("name", ["file", "stream"])
@pytest.mark.parametrize("reach", [1 << 30, -5])
def test_offsets_that_lead_out_of_the_file(tmp_path, name, reach):
    """Read without a check, they end the process."""
    words = pa.table({"text": ["w" * i for i in range(1, 12)]})
    offsets = np.cumsum(np.arange(12), dtype=np.int32)
    wrong = offsets.copy()
    wrong[6] = reach
    data = pack(words, name)
    assert data.count(offsets.tobytes()) == 1
    path = write(tmp_path, "a", data.replace(offsets.tobytes(), wrong.tobytes()))
    code = "import sys; from bnpstream.sources import open_source\n"
    code += "print(list(open_source(sys.argv[1]).batches()))"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True)
    assert done.returncode == 1
    assert f"ValueError: {path}: damaged" in done.stderr.decode()


@pytest.mark.parametrize("name", ["file", "stream"])
def test_labels_out_of_the_dictionary(tmp_path, name):
    colours = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 8, pa.int32()), ["red", "blue"])
    data = pack(pa.table({"size": range(16), "colour": colours}), name)
    codes = struct.pack("<16i", *[0, 1] * 8)
    wrong = struct.pack("<16i", *[0, 1] * 7, 1 << 30, -3)
    assert data.count(codes) == 1
    path = write(tmp_path, "a", data.replace(codes, wrong))
    with pytest.raises(ValueError, match=f"{path}: damaged"):
        read_all(open_source(path))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("role", ["text", "label", "word", "key", "id", "dictionary"])
def test_a_cell_that_is_not_utf8_is_one_reject(tmp_path, name, role):
    if (role, name) == ("dictionary", "parquet"):
        return  # Arrow's reader checks these itself: the file is refused
    strings, options = misread(["aa", "bb", "cc", "dd"], 2), Options()
    table = pa.table({"size": [1.0, 2.0, 3.0, 4.0], "colour": strings})
    if role == "dictionary":
        codes = pa.array([0, 1, 2, 3], pa.int8())
        table = table.set_column(1, "colour", pa.DictionaryArray.from_arrays(codes, strings))
    if role == "text":
        table = pa.table({"text": strings})
    if role == "word":
        table = pa.table(
            {"words": pa.ListArray.from_arrays(pa.array(range(5), pa.int32()), strings)}
        )
    if role == "key":
        ends = pa.array(range(5), pa.int32())
        table = pa.table({"counts": pa.MapArray.from_arrays(ends, strings, pa.array([1, 2, 3, 4]))})
    if role == "id":
        table = table.rename_columns({"colour": "id"})
        options = Options(id_field="id")
    path = write(tmp_path, "a", pack(table, name))
    records, [reject] = read_all(open_source(path, options))
    assert [number for number, *_ in records] == [0, 1, 3]
    assert (reject.source, reject.line, reject.record) == (path, 3, 2)
    assert f"column {table.column_names[-1]!r} is not UTF-8" in reject.reason


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("count", [float("nan"), float("inf"), 1e300, -1.0, 0.5, None])
def test_a_count_that_is_none_is_one_reject(tmp_path, name, count):
    kind = pa.map_(pa.string(), pa.float64())
    counts = pa.array([[("aa", 1.0)], [("aa", 2.0), ("bb", count)], [("bb", 3.0)]], kind)
    path = write(tmp_path, "a", pack(pa.table({"counts": counts}), name))
    records, [reject] = read_all(open_source(path))
    assert [row for _, _, row, _ in records] == [{"aa": 1}, {"bb": 3}]
    assert (reject.source, reject.line) == (path, 2)
    assert "the count of 'bb' is" in reject.reason


@pytest.mark.parametrize("name", FORMATS)
def test_a_word_twice_in_a_map_is_one_reject(tmp_path, name):
    kind = pa.map_(pa.string(), pa.int64())
    counts = pa.array([[("aa", 1)], [("aa", 2), ("bb", 1), ("aa", 5)], [("bb", 3)]], kind)
    path = write(tmp_path, "a", pack(pa.table({"counts": counts}), name))
    records, [reject] = read_all(open_source(path))
    assert [row for _, _, row, _ in records] == [{"aa": 1}, {"bb": 3}]
    assert "'aa' occurs twice" in reject.reason


@pytest.mark.parametrize("name", FORMATS)
def test_types_that_have_no_place_here_are_refused_with_the_file(tmp_path, name):
    schema = open_source(write(tmp_path, "a", pack(pa.table({"a": ["x"]}), name))).schema
    for cells in (
        pa.array([1 << 62], pa.timestamp("ns")),
        pa.array([b"\x00\xff"], pa.binary()),
        pa.array([[1]], pa.list_(pa.int8())),
        pa.array([{"b": 1}]),
        pa.array([1 << 40], pa.duration("us")),
    ):
        path = write(tmp_path, "b", pack(pa.table({"a": cells}), name))
        records, [reject] = read_all(open_source(path, schema=schema))
        assert records == []
        assert (reject.source, reject.line) == (path, 1)
        assert "column 'a'" in reject.reason


@pytest.mark.parametrize("name", FORMATS)
def test_a_column_that_occurs_twice_is_refused(tmp_path, name):
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    path = write(tmp_path, "a", pack(table, name))
    with pytest.raises(ValueError, match=f"{path}: has several columns 'a'"):
        read_all(open_source(path))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("batch_rows", [1, 3, 8, 1000])
def test_what_stands_before_the_damage_is_delivered(tmp_path, name, batch_rows):
    """Whatever the batch size: here 20 rows of 30 are sound."""
    table = pa.table({"a": [float(7**i % 1000003) for i in range(30)]})
    options = {"row_group_size": 10, "compression": "zstd"} if name == "parquet" else {}
    if name != "parquet":
        options = {"max_chunksize": 10}
    data = bytearray(pack(table, name, **options))
    if name == "parquet":
        meta = pq.ParquetFile(io.BytesIO(bytes(data))).metadata.row_group(2).column(0)
        start = meta.dictionary_page_offset or meta.data_page_offset
        data[start : start + meta.total_compressed_size] = b"\xa5" * meta.total_compressed_size
    else:
        at = data.rindex(b"\xff\xff\xff\xff", 0, data.index(table["a"].to_numpy()[20:].tobytes()))
        data[at + 8 : at + 72] = b"\xa5" * 64
    path = write(tmp_path, "a", bytes(data))
    batches, found = open_source(path).batches(batch_rows), []
    with pytest.raises(ValueError, match=f"{path}: damaged"):
        found.extend(batch.rows[:, 0].tolist() for batch, _ in batches)
    assert [x for rows in found for x in rows] == table["a"].to_pylist()[:20]


READ = """if True:
    import sys
    from bnpstream.sources import Options, open_source
    for path in sys.argv[1:]:
        for options in (Options(), Options(counts_field="tally"), Options(time_field="when")):
            try:
                for batch, position in open_source(path, options).batches(7):
                    assert len(batch) + len(batch.rejects) <= 7
            except ValueError as error:
                assert str(error).startswith(path), error
"""


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_turned_over_never_end_the_process(tmp_path, name):
    rng = np.random.default_rng((FORMATS.index(name), 22))
    table = pa.table(
        {
            "id": [f"r{i}" for i in range(20)],
            "size": pa.array([None if i == 3 else i for i in range(20)], pa.int16()),
            "colour": pa.array(["red", "blue"] * 10).dictionary_encode(),
            "words": [["aa", "bb"], [], None, ["cc"]] * 5,
            "tally": pa.array([[("aa", 2)], []] * 10, pa.map_(pa.string(), pa.int64())),
            "when": pa.array(range(20), pa.timestamp("ns")),
        }
    )
    sound, paths = pack(table, name), []
    for i in range(MUTANTS):
        data = bytearray(sound)
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(len(data)))] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
        if i % 8 == 7:
            data = data[: int(rng.integers(1, len(data)))]
        paths.append(write(tmp_path, f"a{i}", bytes(data)))
    done = subprocess.run([sys.executable, "-c", READ, *paths], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"


def test_keys_that_are_all_null_never_end_the_process():
    """A column of such a map may not even be looked at as another type."""
    path = str(CORPUS / "numbered.null_keys.arrows")
    code = "import sys; from bnpstream.sources import Options, open_source\n"
    code += "print(list(open_source(sys.argv[1], Options(counts_field='counts')).batches()))"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True)
    assert done.returncode == 1
    assert f"ValueError: {path}: damaged" in done.stderr.decode()


@pytest.mark.parametrize("batch_rows", [1, 2, 7])
def test_a_row_group_with_fewer_rows_than_announced_is_damaged(batch_rows):
    path = CORPUS / "short_group.parquet"
    batches, found = open_source(str(path)).batches(batch_rows), []
    message = f"{path}: damaged: row 1 is the last of row group 2"
    with pytest.raises(ValueError, match=message):
        found.extend(batch.numbers for batch, _ in batches)
    assert found == [[0]]
