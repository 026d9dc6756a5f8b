"""``bnpstream demo`` as a person and as a program would run it."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bnpstream import __version__


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
    text, digits = (bnpstream("demo", name, "--out", str(out)) for name in ("text", "digits"))
    for done in (text, digits):  # the second into the same folder
        assert done.returncode == 0, done.stderr
        assert f"report: {out / 'report.html'}" in done.stdout
    for part in ("topics", "scipy.stats", "NMI", "nats, one-step-ahead"):
        assert part in text.stdout
    for part in ("clusters, largest first", "chosen by hand", "NMI", "rows/s", "nats"):
        assert part in digits.stdout
    assert "data:image/png" in (out / "report.html").read_text()
    assert "weight" in bnpstream("clusters", str(out / "run")).stdout


def test_text_is_the_default_and_the_report_has_its_numbers(tmp_path):
    done = bnpstream("demo", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
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
    done = bnpstream("demo", "digits", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["rows"] == 1797
    assert result["n_clusters"] == len(result["clusters"])
    assert sum(cluster["weight"] for cluster in result["clusters"]) == pytest.approx(1.0)
    assert sum(cluster["images"] for cluster in result["clusters"]) == 1797
    assert result["nmi"] > 0.65
    weights = [cluster["weight"] for cluster in result["clusters"]]
    assert weights == sorted(weights, reverse=True)


def test_another_demo_is_a_usage_error(tmp_path):
    done = bnpstream("demo", "dance", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "demo dance: give text or digits" in done.stderr


def test_demo_without_matplotlib_says_what_to_install(tmp_path):
    hide = (
        "import importlib.util as u, sys; find = u.find_spec;"
        "u.find_spec = lambda name, *a: None if name == 'matplotlib' else find(name, *a);"
        "sys.argv = ['bnpstream', 'demo', 'digits', '--out', sys.argv[1]];"
        "from bnpstream.cli import app; app()"
    )
    done = subprocess.run(
        [sys.executable, "-c", hide, str(tmp_path / "out")],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "bnpstream[report]" in done.stdout
    assert not (tmp_path / "out" / "report.html").exists()


def test_version_and_help():
    lines = bnpstream("--version").stdout.splitlines()
    assert lines[0] == f"bnpstream {__version__}"
    assert f"numpy {np.__version__}" in lines
    assert "demo" in bnpstream("--help").stdout


def test_an_unknown_command_is_a_usage_error():
    assert bnpstream("dmeo").returncode == 2
