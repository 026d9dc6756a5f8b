"""Every record that was read is a row or a reject, whatever was left out of it."""

import json

from typer.testing import CliRunner

from bnpstream.cli import app
from bnpstream.storage import read_tensors

ENTRIES = "1 1 2\n2 1 1\n1 2 5\n3 2 4\n4 9 1\n"
"""The third belongs to a document that is behind it, the last has a word that is not there."""
DOCWORD = "4\n2\n5\n" + ENTRIES


def fit(*arguments):
    options = ("--engine", "reference", "--batch-rows", "1", "--checkpoint-rows", "1")
    return CliRunner().invoke(app, ["fit", *map(str, arguments), *options])


def test_lines_left_out_of_a_record_are_no_rejected_record(tmp_path):
    path, out = tmp_path / "docword.txt", tmp_path / "run"
    path.write_text(DOCWORD)
    done = fit(path, "--out", out)
    assert done.exit_code == 0, done.output
    document = read_tensors(out / "state.safetensors").document
    assert (document["rows"], document["rejects"], document["position"]["records"]) == (3, 1, 4)
    rejects = [json.loads(line) for line in (out / "rejects.jsonl").read_text().splitlines()]
    assert [(reject["record"], reject.get("is_part")) for reject in rejects] == [
        (0, True),
        (3, None),
    ]


def test_they_count_for_what_is_allowed(tmp_path):
    (tmp_path / "docword.txt").write_text(DOCWORD)
    for most, code in ((1, 1), (2, 0)):
        done = fit(
            tmp_path / "docword.txt", "--out", tmp_path / f"run{most}", "--max-rejects", most
        )
        assert done.exit_code == code, done.output


def test_a_run_whose_counts_do_not_agree_is_not_saved(tmp_path, monkeypatch):
    (tmp_path / "docword.txt").write_text(DOCWORD)
    monkeypatch.setattr("bnpstream.runs.journal.Journal.n_rejects", 2)
    done = fit(tmp_path / "docword.txt", "--out", tmp_path / "run")
    assert done.exit_code == 1
    assert "records were read and 2 rejected" in done.stderr


def test_fit_says_before_it_reads_that_nothing_will_be_kept(tmp_path):
    done = fit(tmp_path / "missing.txt")
    assert done.exit_code == 1
    assert "the run will not be saved: give --out" in done.stderr


def test_predict_and_evaluate_fail_if_every_record_is_rejected(tmp_path):
    (tmp_path / "docword.txt").write_text(DOCWORD)
    assert fit(tmp_path / "docword.txt", "--out", tmp_path / "run").exit_code == 0
    (tmp_path / "bad.txt").write_text("1\n2\n1\n1 9 1\n")
    for command in ("predict", "evaluate"):
        done = CliRunner().invoke(
            app, [command, *map(str, (tmp_path / "run", tmp_path / "bad.txt"))]
        )
        assert done.exit_code == 1, done.output
        assert "no valid records" in done.stderr
