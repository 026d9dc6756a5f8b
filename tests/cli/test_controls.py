"""Control characters in data reach neither a terminal nor a page: they are shown."""

import json

import pytest
from typer.testing import CliRunner

from bnpstream.cli import app
from bnpstream.cli.output import json_bytes

BAD = "\x1b[31m\x07\x9b\x7f"
SHOWN = r"\x1b[31m\x07\x9b\x7f"


def bnpstream(*arguments, code=0):
    """Run a command; return its result."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run over words, ids and rejected records with control characters."""
    folder = tmp_path_factory.mktemp("controls")
    word = f"{BAD}goal"
    records = [{"id": f"{BAD}{i}", "words": [word, "team"] * (1 + i % 3)} for i in range(40)]
    lines = [json.dumps(record) for record in records] + [json.dumps({"id": BAD, "words": 7})]
    source = folder / "a.jsonl"
    source.write_text("\n".join(lines), encoding="utf-8")
    said = bnpstream("fit", source, "--out", folder / "run")
    return folder / "run", source, said


def harmless(done):
    """Return what a command printed, if nothing of it controls a terminal."""
    for text in (done.stdout, done.stderr):
        assert not set(text) & set(BAD.replace("[31m", ""))
    return done.stdout + done.stderr


def test_tables_and_messages(run):
    folder, source, fitted = run
    assert SHOWN in harmless(fitted)
    assert SHOWN in harmless(bnpstream("clusters", folder))
    assert SHOWN in harmless(bnpstream("clusters", folder, "--id", "0"))
    assert SHOWN in harmless(bnpstream("predict", folder, source))
    missing = harmless(bnpstream("fit", folder / BAD, code=1))
    assert SHOWN in missing


def test_json_says_the_same_in_escapes(run):
    folder, source, _ = run
    done = bnpstream("predict", folder, source, "--json")
    harmless(done)
    assert json.loads(done.stdout.splitlines()[0])["id"] == f"{BAD}0"
    assert json.loads(json_bytes(BAD)) == BAD


def test_the_report(run):
    folder, _, _ = run
    done = bnpstream("report", folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    harmless(done)
    assert SHOWN in page
    assert not set(page) & set(BAD.replace("[31m", ""))
