"""Vectors in a field of JSON lines, and in a column of Parquet and Arrow."""

import io
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from feeding import write

from bnpstream.runs.overview import Run
from bnpstream.sources import Options, open_source
from bnpstream.storage import read_checkpoint
from commands import run, run_json

N, LENGTH = 1100, 5
VECTOR = Options(vector_field="vector")
FORMATS = ["jsonl", "parquet", "file", "stream"]


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(N, LENGTH))


def json_lines(vectors, **fields):
    """Return records with their vectors, and with other fields that are given for each."""
    columns = {"id": range(len(vectors)), "vector": vectors, **fields}
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows).encode()


def table_bytes(table, name):
    sink = io.BytesIO()
    if name == "parquet":
        pq.write_table(table, sink, row_group_size=100)
    else:
        new = pa.ipc.new_stream if name == "stream" else pa.ipc.new_file
        with new(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    return sink.getvalue()


def arrow_bytes(vectors, name, type_, **fields):
    """Return a table with rows that are lists, None among them, in a format."""
    arrays = {"id": pa.array(range(len(vectors))), "vector": pa.array(vectors, type_)}
    return table_bytes(pa.table({**arrays, **fields}), name)


def save(folder, name, vectors, **fields):
    """Write vectors in a format, and return the path."""
    rows = [None if row is None else list(row) for row in vectors]
    if name == "jsonl":
        return write(folder, "vectors", json_lines(rows, **fields))
    return write(folder, "vectors", arrow_bytes(rows, name, pa.list_(pa.float64()), **fields))


def read(source, batch_rows, start=None):
    """Return all rows, numbers, ids and rejects."""
    batches = [records for records, _ in source.batches(batch_rows, start)]
    return (
        np.concatenate([batch.rows for batch in batches]),
        [number for batch in batches for number in batch.numbers],
        [id_ for batch in batches for id_ in batch.ids],
        [reject for batch in batches for reject in batch.rejects],
    )


def same_bits(found, expected):
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def of_npy(folder, vectors, batch_rows=1024):
    np.save(folder / "vectors.npy", vectors)
    with open_source(str(folder / "vectors.npy")) as source:
        return read(source, batch_rows)


@pytest.mark.parametrize("batch_rows", [1, 7, 1024])
@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_those_of_a_matrix_of_numpy(tmp_path, vectors, name, batch_rows):
    rows, numbers, _, _ = of_npy(tmp_path, vectors)
    with open_source(save(tmp_path, name, vectors), VECTOR) as source:
        schema = source.schema
        found = read(source, batch_rows)
    assert (schema.kind, schema.n_features, schema.names) == ("table", LENGTH, None)
    assert schema.fields == {"id": "id", "vector": "vector"}
    assert same_bits(found[0], rows)
    assert found[1:] == (numbers, numbers, [])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("is_fixed", [True, False])
@pytest.mark.parametrize("name", FORMATS[1:])
def test_numbers_of_columns_stay_as_narrow_as_they_are(tmp_path, vectors, name, is_fixed, dtype):
    narrow = vectors.astype(dtype)
    type_ = pa.list_(pa.from_numpy_dtype(narrow.dtype), LENGTH if is_fixed else -1)
    path = write(tmp_path, "vectors", arrow_bytes(list(narrow), name, type_))
    with open_source(path, VECTOR) as source:
        assert same_bits(read(source, 64)[0], of_npy(tmp_path, narrow)[0])


@pytest.mark.parametrize("name", FORMATS)
def test_reading_goes_on_from_any_batch(tmp_path, vectors, name):
    some = list(vectors[:40])
    some[9] = some[9][:2]
    with open_source(save(tmp_path, name, some), VECTOR) as source:
        whole = read(source, 1024)
        batches = list(source.batches(7))
        for records, position in batches[:-1]:
            rest = read(source, 7, position)
            at = whole[1].index(rest[1][0])
            assert rest[1][0] > records.numbers[-1]
            assert same_bits(rest[0], whole[0][at:])
            assert rest[1:3] == (whole[1][at:], whole[2][at:])


def test_rejects_of_json_lines_say_where_and_why(tmp_path):
    lines = [
        '{"vector": [1, 2.5]}',
        '{"vector": [1, 2, 3]}',
        '{"vector": [1, null]}',
        '{"vector": ["1", 2]}',
        '{"vector": [true, 2]}',
        '{"vector": [1, NaN]}',
        '{"vector": [-1e999, 1]}',
        '{"vector": null}',
        '{"vector": "1, 2"}',
        '{"other": 1}',
        '{"vector": []}',
        '{"vector": [0, -0.0]}',
    ]
    path = write(tmp_path, "a.jsonl", "\n".join(lines))
    for batch_rows in (1, 7, 1024):
        with open_source(path, VECTOR) as source:
            rows, numbers, _, rejects = read(source, batch_rows)
        assert same_bits(rows, np.array([[1, 2.5], [0, -0.0]]))
        assert numbers == [0, 11]
        assert [(reject.line, reject.record) for reject in rejects] == [
            (i + 1, i) for i in range(1, 11)
        ]
        assert all(reject.beginning == lines[reject.record] for reject in rejects)
        reasons = [reject.reason for reject in rejects]
        assert reasons[:4] == [
            "column 'vector' has 3 numbers, not 2",
            "column 'vector' has None at 1, not a finite number",
            "column 'vector' has 1 at 0, not a finite number",
            "column 'vector' has True at 0, not a finite number",
        ]
        assert all("JSON" in reason or "finite" in reason for reason in reasons[4:6])
        assert reasons[6:] == [
            "column 'vector' is missing",
            "column 'vector' has '1, 2', not an array of numbers",
            "has none of the columns, such as 'vector'",
            "column 'vector' has 0 numbers, not 2",
        ]


@pytest.mark.parametrize("name", FORMATS[1:])
@pytest.mark.parametrize("is_fixed", [True, False])
def test_rejects_of_columns_say_where_and_why(tmp_path, name, is_fixed):
    vectors = [[1.0, 2.0], None, [3.0, None], [np.inf, 4.0], [5.0, np.nan], [6.0, 7.0]]
    vectors += [] if is_fixed else [[8.0], []]
    type_ = pa.list_(pa.float32(), 2 if is_fixed else -1)
    path = write(tmp_path, "vectors", arrow_bytes(vectors, name, type_))
    for batch_rows in (1, 7, 1024):
        with open_source(path, VECTOR) as source:
            rows, numbers, ids, rejects = read(source, batch_rows)
        assert same_bits(rows, np.array([[1, 2], [6, 7]], dtype=np.float32))
        assert numbers == ids == [0, 5]
        expected = {
            1: "column 'vector' is missing",
            2: "column 'vector' has nan at 1, not a finite number",
            3: "column 'vector' has inf at 0, not a finite number",
            4: "column 'vector' has nan at 1, not a finite number",
            6: "column 'vector' has 1 numbers, not 2",
            7: "column 'vector' has 0 numbers, not 2",
        }
        assert {reject.record: reject.reason for reject in rejects} == {
            record: reason for record, reason in expected.items() if record < len(vectors)
        }
        assert [reject.line - 1 for reject in rejects] == [reject.record for reject in rejects]
        assert rejects[2].beginning == "{'vector': [inf, 4.0]}"


@pytest.mark.parametrize("name", FORMATS)
def test_a_text_beside_a_vector_is_kept_to_be_looked_at(tmp_path, vectors, name):
    texts = ["one", None, "x" * 200]
    for field, options in (
        ("text", VECTOR),
        ("body", Options(vector_field="vector", text_field="body")),
    ):
        path = save(tmp_path, name, vectors[:3], words=[["a"]] * 3, **{field: texts})
        with open_source(path, options) as source:
            [(batch, _)] = source.batches()
            assert source.schema.fields == {"id": "id", "text": field, "vector": "vector"}
        assert batch.excerpts == ["one", "", "x" * 160]
        assert same_bits(batch.rows, vectors[:3])
    schema = source.schema
    with open_source(save(tmp_path, name, vectors[:3]), options, schema) as source:
        [(batch, _)] = source.batches()
    assert (batch.excerpts, batch.rejects) == (["", "", ""], [])


def test_most_first_records_say_how_long_vectors_are(tmp_path):
    lines = ['{"vector": []}', '{"vector": [1]}', '{"vector": [1, 2]}', '{"vector": [3, 4]}']
    path = write(tmp_path, "a.jsonl", "\n".join(lines))
    assert open_source(path, VECTOR).schema.n_features == 2
    told = Options(vector_field="vector", n_features=1)
    assert read(open_source(path, told), 7)[1] == [1]


@pytest.mark.parametrize(
    ("name", "content", "options", "reason"),
    [
        ("a.jsonl", '{"v": [1]}', {}, "it has v; vector_field names an array"),
        ("a.jsonl", '{"v": [1]}', {"vector_field": "w"}, "has no column 'w'; it has v"),
        ("a.jsonl", '{"v": "1"}', {"vector_field": "v"}, "none of the first records has .* 'v'"),
        ("a.jsonl", '{"v": [1]}', {"vector_field": "v", "columns": ("v",)}, "both given"),
        ("a.jsonl", '{"v": [1]}', {"vector_field": "v", "counts_field": "v"}, "both given"),
        ("a.csv", "v,w\n1,2\n", {"vector_field": "v"}, "csv have no arrays"),
        ("a.txt", "some text\n", {"vector_field": "v"}, "text have no arrays"),
    ],
)
def test_what_cannot_be_understood_is_said(tmp_path, name, content, options, reason):
    with pytest.raises(ValueError, match=reason):
        open_source(write(tmp_path, name, content), Options(**options))


@pytest.mark.parametrize("name", FORMATS[1:])
def test_lists_of_whole_numbers_are_no_vectors(tmp_path, name):
    path = write(tmp_path, "vectors", arrow_bytes([[1, 2]], name, pa.list_(pa.int64())))
    with pytest.raises(ValueError, match=r"none of the first records has .* 'vector'"):
        open_source(path, VECTOR)
    with pytest.raises(ValueError, match=r"'vector' is of type list.*not of lists of floating"):
        list(open_source(path, Options(vector_field="vector", n_features=2)).batches())


@pytest.mark.parametrize("name", ["jsonl", "parquet"])
def test_commands_take_vectors_and_go_on_to_the_same_bits(tmp_path, name):
    rng = np.random.default_rng(1)
    labels = rng.integers(4, size=300)
    vectors = np.eye(64)[labels] + 0.03 * rng.normal(size=(300, 64))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[150] = np.nan
    np.save(tmp_path / "vectors.npy", vectors)
    rows = [*vectors[:150], [1.0, 2.0, 3.0], *vectors[151:]]
    path = save(tmp_path, name, rows, text=[f"about {k}" for k in labels])
    out, other, pace = tmp_path / "run", tmp_path / "other", ("--batch-rows", 32, "-q")
    run("fit", tmp_path / "vectors.npy", "--out", other, *pace)
    given = ("fit", path, "--vector-field", "vector", "--out", out, *pace)
    stopped = run(*given, "--max-rejects", 0, code=1)
    assert "line 151: column 'vector' has 3 numbers, not 64" in stopped
    said = run_json("fit", "--out", out, "--resume", "--max-rejects", 1, *pace)
    assert (said["rows"], said["rejects"]) == (299, 1)
    mine, theirs = (read_checkpoint(folder).arrays for folder in (out, other))
    assert all(same_bits(mine[key], theirs[key]) for key in theirs)
    shown = Run(out).clusters_frame()["exemplars"]
    assert {text[:6] for texts in shown for text in texts} == {"about "}
    sound = [i for i in range(300) if i != 150]
    answers = [json.loads(line) for line in run("predict", out, path, "--json").splitlines()]
    assert [answer["record"] for answer in answers] == sound
    assert run_json("evaluate", out, path)["documents"] == 299
    command = [sys.executable, "-m", "bnpstream", "stream", path, "--vector-field", "vector", "-q"]
    streamed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert sorted({json.loads(line)["record"] for line in streamed.splitlines()}) == sound
