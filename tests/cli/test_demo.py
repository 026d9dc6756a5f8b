"""``bnpstream demo`` as a person and as a program would run it."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from bnpstream import __version__
from commands import run, run_json


def bnpstream(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "bnpstream", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def test_demos_print_tables_and_write_reports(tmp_path):
    out = tmp_path / "new" / "folder"
    done = bnpstream("demo", "--out", str(out))
    assert done.returncode == 0, done.stderr
    text, digits = done.stdout, run("demo", "digits", "--out", out)  # into the same folder
    for printed in (text, digits):
        assert f"report: {out / 'report.html'}" in printed
    for part in ("topics", "scipy.stats", "NMI", "nats, one-step-ahead"):
        assert part in text
    for part in ("clusters, largest first", "chosen by hand", "NMI", "rows/s", "nats"):
        assert part in digits
    assert "data:image/png" in (out / "report.html").read_text()
    assert sum("%" in line.split("│")[2] for line in text.splitlines() if "│" in line) <= 15
    assert "weight" in run("clusters", out / "run")


def test_text_is_the_default_and_the_report_has_its_numbers(tmp_path):
    result = run_json("demo", "--out", tmp_path)
    assert result["rows"] > 1500
    assert result["topic_nmi"] > 0.5
    assert len(result["topics"]) == result["n_topics"] > 8
    shares = [topic["share"] for topic in result["topics"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0)
    page = (tmp_path / "report.html").read_text()
    assert f"{result['n_topics']} topics, {result['n_clusters']} clusters" in page
    assert all(f"{share:.2%}" in page for share in shares)
    assert f"{result['log_evidence_per_row']:.4g}" in page


def test_digits_as_json_are_one_document(tmp_path):
    result = run_json("demo", "digits", "--out", tmp_path)
    assert result["rows"] == 1797
    assert result["n_clusters"] == len(result["clusters"])
    assert sum(cluster["weight"] for cluster in result["clusters"]) == pytest.approx(1.0)
    assert sum(cluster["images"] for cluster in result["clusters"]) == 1797
    assert result["nmi"] > 0.65
    weights = [cluster["weight"] for cluster in result["clusters"]]
    assert weights == sorted(weights, reverse=True)


def test_another_demo_is_a_usage_error(tmp_path):
    assert "demo dance: give text or digits" in run("demo", "dance", "--out", tmp_path, code=2)


def test_demo_without_matplotlib_says_what_to_install(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "matplotlib" else find(name, *more),
    )
    assert "bnpstream[report]" in run("demo", "digits", "--out", tmp_path / "out")
    assert not (tmp_path / "out" / "report.html").exists()


def test_version_and_help():
    lines = bnpstream("--version").stdout.splitlines()
    assert lines[0] == f"bnpstream {__version__}"
    assert f"numpy {np.__version__}" in lines
    assert "demo" in bnpstream("--help").stdout


def test_an_unknown_command_is_a_usage_error():
    assert bnpstream("dmeo").returncode == 2
