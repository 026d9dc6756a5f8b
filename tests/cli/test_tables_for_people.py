"""What the commands print about tables, and about files that are not what the run read."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from bnpstream.cli import app
from commands import run, run_json

N_ROWS = 240
COLOURS = ("red", "green", "blue")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a file of three kinds of rows, a run of it, and what `fit` said."""
    folder = tmp_path_factory.mktemp("table")
    rng, path = np.random.default_rng((90, 0)), folder / "sales.jsonl"
    kind = rng.integers(3, size=N_ROWS)
    rows = [
        {"price": 2000 + 1000 * k + rng.normal(), "colour": COLOURS[k], "sold": k == 2}
        for k in kind.tolist()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(app, ["fit", str(path), "--out", str(folder / "run")])
    assert done.exit_code == 0, done.output
    return folder / "run", done


def test_fit_names_the_types_of_columns_and_the_families_it_chose(table):
    _, done = table
    assert "price (number), colour (label), sold (boolean)" in done.stderr
    assert "family: DiagonalGaussian, Bernoulli, Categorical" in done.stdout


def test_a_table_shows_what_sets_clusters_apart(table):
    folder, _ = table
    shown = run("clusters", folder)
    assert "most unusual" in shown
    assert "means" not in shown
    assert "other" not in shown  # no row had an unknown label
    flat = " ".join(shown.replace("│", " ").split())
    assert "colour = blue" in flat
    assert "price 4,000" in flat
    assert "means" in run("clusters", folder, "--id", "0")


def test_groups_of_clusters_have_a_table_of_their_own(table):
    folder, _ = table
    shown = run("clusters", folder, "--coarse", "2", "--top", "1")
    assert "clusters merged into 2 groups" in shown
    assert "1 smaller group not shown; see --top" in shown


def test_predict_counts_invalid_records_and_says_how_it_read_the_file(table, tmp_path):
    folder, _ = table
    other = tmp_path / "other.csv"
    other.write_text("price;colour\n" + "a;b\n" * 30)
    message = run("predict", folder, other, code=1)
    assert message.count("other.csv, line") == 10
    assert "31 invalid records in all" in message
    assert "it was read as jsonl, like the records of the run: give --format" in message


def test_one_topic_is_shown_with_all_its_clusters_and_typical_records(table):
    folder, _ = table
    whole = run_json("clusters", folder)
    first = whole["topics"][0]
    one = run_json("clusters", folder, "--topic", first["id"])
    assert one["topics"] == [first]
    assert one["clusters"] == [c for c in whole["clusters"] if c["topic"] == first["id"]]
    shown = run("clusters", folder, "--topic", first["id"])
    assert shown.count("%") == 1 + len(one["clusters"])
    assert "record " in shown
    assert "topic 999 does not exist" in run("clusters", folder, "--topic", 999, code=1)
