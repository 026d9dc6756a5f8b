"""What records are taken for is said before the first one is read."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from bnpstream.cli import app
from bnpstream.runs.overview import Run
from bnpstream.sources import Options, open_source

N = 40
NOTES = [f"note {i} of its own" for i in range(N)]
COLUMNS = {
    "size": [float(i % 7) for i in range(N)],
    "colour": ["red", "green"] * (N // 2),
    "note": NOTES,
}


def write(folder, name):
    """Write the table in a format; return where it is."""
    path = folder / name
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    if name == "a.parquet":
        pq.write_table(pa.table(COLUMNS), path, row_group_size=3)
    elif name == "a.arrow":
        table = pa.table(COLUMNS)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    elif name == "a.jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [",".join(COLUMNS), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.arrow"])
def test_strings_that_all_differ_are_no_labels(tmp_path, name):
    path = write(tmp_path, name)
    schema = open_source(path).schema
    assert schema.names == ("size", "colour")
    assert list(schema.left_out) == ["note"]
    named = open_source(path, Options(columns=("size", "note"))).schema
    assert (named.names, named.left_out) == (("size", "note"), {})
    assert open_source(path, Options(id_field="note")).schema.left_out == {}
    assert open_source(path, Options(text_field="note")).schema.kind == "documents"
    rows = [row for batch, _ in open_source(path).batches(7) for row in batch.rows.tolist()]
    [(whole, _)] = open_source(path).batches()
    assert rows == whole.rows.tolist()


def test_a_table_of_texts_alone_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("title\n" + "\n".join(NOTES))
    with pytest.raises(ValueError, match=r"'title' differs in nearly every row: name it as text_f"):
        open_source(str(path))


def test_commands_say_so_first_and_a_run_keeps_it(tmp_path):
    path, out = write(tmp_path, "a.csv"), str(tmp_path / "run")

    def run(*arguments):
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == 0, done.output
        return done

    done = run("fit", path, "--out", out, "--json")
    warning, told = [line for line in done.stderr.splitlines() if "note" in line]
    assert warning.startswith("warning: column 'note' is left out, as it is different in nearly")
    assert "size (number), colour (label); left out: note; family: " in told
    assert json.loads(done.stdout)["schema"]["left_out"].keys() == {"note"}
    assert Run(tmp_path / "run").schema.left_out.keys() == {"note"}
    resumed = run("fit", "--out", out, "--resume", "--quiet")
    assert resumed.stderr.startswith("warning: column 'note' is left out")
    few = tmp_path / "few.jsonl"  # too few to tell, and of another format
    few.write_text('{"size": 1.0, "colour": "red", "note": "a"}\n')
    scored = run("evaluate", out, str(few), "--format", "jsonl", "--json")
    assert "records: jsonl, table of 2 columns: size (number), colour (label)" in scored.stderr
    assert json.loads(scored.stdout)["schema"]["columns"] == {"size": "number", "colour": "label"}
