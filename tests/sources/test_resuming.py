"""Resuming from any position gives the records of an uninterrupted read."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from feeding import read_all, records_of, write

from bnpstream.sources import Options, open_source

N = 23
TEXTS = [f"word{i % 5} and word{i % 7}, number {i}" for i in range(N)]


def json_texts(first):
    lines = [f'{{"id": "d{first + i}", "text": "{text}"}}' for i, text in enumerate(TEXTS)]
    lines[4] = '{"id": 3'
    lines[9] = ""
    return "\n".join(lines).encode()


def json_table(first):
    return "".join(f'{{"a": {first + i}, "b": {i / 2}}}\n' for i in range(N)).encode()


def csv_table(first):
    lines = ["id;note;size"]
    for i in range(N):
        lines.append(f'{first + i};"two\nlines; ""{i}""";{i / 4}')
    lines[5] = "only;two"
    lines[7] = '3;"never closed;1'
    return "\r\n".join(lines).encode()


def csv_numbers(first):
    return "".join(f"{first + i},{i / 4},\n" for i in range(N)).encode()


def text(first):
    return "\n\n".join(TEXTS).encode() + b"\n" + b"\xff\n"


def arrow_table(first):
    return pa.table(
        {
            "id": [f"r{first + i}" for i in range(N)],
            "size": pa.array([None if i == 3 else float(i) for i in range(N)]),
            "colour": ["red" if i % 2 else None for i in range(N)],
        }
    )


def arrow_stream(first, new=pa.ipc.new_stream):
    table, sink = arrow_table(first), io.BytesIO()
    with new(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=6)
    return sink.getvalue()


def arrow_file(first):
    return arrow_stream(first, pa.ipc.new_file)


def parquet(first):
    sink = io.BytesIO()
    pq.write_table(arrow_table(first), sink, row_group_size=6)
    return sink.getvalue()


CASES = {
    "texts.jsonl": (json_texts, {}),
    "hashed.jsonl": (json_texts, {"hash_bits": 6}),
    "table.jsonl": (json_table, {}),
    "table.csv": (csv_table, {}),
    "notes.csv": (csv_table, {"text_field": "note"}),
    "numbers.csv": (csv_numbers, {"columns": ("column2", "column1")}),
    "text.txt": (text, {"format": "text"}),
    "stream.arrow": (arrow_stream, {}),
}
PLAIN_ONLY = {"file.arrow": (arrow_file, {}), "table.parquet": (parquet, {})}


@pytest.mark.parametrize(
    ("name", "suffix"),
    [(name, suffix) for name in CASES for suffix in ("", ".gz", ".zst")]
    + [(name, "") for name in PLAIN_ONLY],
)
@pytest.mark.parametrize("batch_rows", [1, 4, 1000])
def test_every_position_is_a_place_to_go_on(tmp_path, name, suffix, batch_rows):
    make, options = {**CASES, **PLAIN_ONLY}[name]
    for part in range(3):
        write(tmp_path, f"{part}{name}{suffix}", make(100 * part))
    pattern = str(tmp_path / f"*{name}{suffix}")
    source = open_source(pattern, Options(**options))
    records, rejects = read_all(source, batch_rows)
    assert len(records) + len(rejects) >= 3 * (N - 1)
    numbers = sorted([number for number, *_ in records] + [reject.record for reject in rejects])
    assert numbers == list(range(len(numbers)))

    seen = n_rejects = 0
    for batch, position in source.batches(batch_rows):
        seen, n_rejects = seen + len(batch), n_rejects + len(batch.rejects)
        assert position["records"] == seen + n_rejects
        assert (position["offset"] is not None) == (suffix == "" and name.split(".")[1] in PLAIN)
        # A new process knows the schema of the first, and the position.
        again = open_source(pattern, Options(**options), source.schema)
        rest = read_all(again, 3, position)
        assert rest == (records[seen:], rejects[n_rejects:])
    assert (seen, n_rejects) == (len(records), len(rejects))


@pytest.mark.parametrize("name", [*CASES, *PLAIN_ONLY])
def test_a_batch_may_be_cut_between_any_two_records(tmp_path, name):
    make, options = {**CASES, **PLAIN_ONLY}[name]
    for part in range(2):
        write(tmp_path, f"{part}{name}", make(100 * part))
    source = open_source(str(tmp_path / f"*{name}"), Options(**options))
    records, rejects = read_all(source, 1000)
    start = source.beginning()
    batches = list(source.batches(10))
    for batch, end in batches:
        for number in range(start["records"] + 1, end["records"] + 1):
            head = batch.between(0, number)
            position = source.after(start, head)
            assert position["records"] == number
            rest = read_all(
                open_source(source.paths, Options(**options), source.schema), 7, position
            )
            n_rejects = sum(reject.record < number for reject in rejects)
            assert rest == (records[number - n_rejects :], rejects[n_rejects:])
        start = end
    assert source.after(end, batch.between(0, 0)) == end


def test_a_shorter_file_is_not_entered_after_a_cut(tmp_path):
    source = open_source(write(tmp_path, "a.txt", "aa\nbb\ncc\n"))
    [(batch, _)] = source.batches()
    position = source.after(source.beginning(), batch)
    write(tmp_path, "a.txt", "aa\n")
    with pytest.raises(ValueError, match="has 1 records, but 3 were read before"):
        list(source.batches(start=position))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.txt"])
def test_a_file_that_lacks_one_byte_is_not_entered(tmp_path, name):
    lines = {"a.jsonl": '{"x":1}\n{"x":2}\n', "a.csv": "x\n1\n2\n", "a.txt": "aa\nbb\n"}[name]
    source = open_source(write(tmp_path, name, lines))
    [(_, position)] = source.batches()
    write(tmp_path, name, lines[:-1])
    with pytest.raises(ValueError, match=f"has {len(lines) - 1} bytes, but {len(lines)} were"):
        list(source.batches(start=position))


def test_places_are_lines_of_files(tmp_path):
    for part in range(2):
        write(tmp_path, f"{part}.csv", "size,colour\n1,red\nbad\n2,blue\n")
    source = open_source(str(tmp_path / "*.csv"))
    found = [(place.source, place.line) for batch, _ in source.batches() for place in batch.places]
    assert found == [(path, line) for path in source.paths for line in (2, 4)]


PLAIN = {"jsonl", "csv", "txt"}


@pytest.mark.parametrize("name", [*CASES, *PLAIN_ONLY])
def test_any_size_of_batches_gives_the_same_records(tmp_path, name):
    make, options = {**CASES, **PLAIN_ONLY}[name]
    source = open_source(write(tmp_path, name, make(0)), Options(**options))
    whole = read_all(source, 1000)
    for batch_rows in (1, 2, 7):
        batches = [batch for batch, _ in source.batches(batch_rows)]
        assert all(len(batch) + len(batch.rejects) <= batch_rows for batch in batches)
        assert [record for batch in batches for record in records_of(batch)] == whole[0]
        assert [reject for batch in batches for reject in batch.rejects] == whole[1]
