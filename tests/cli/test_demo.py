"""``bnpstream demo`` as a person and as a program would run it."""

import json
import subprocess
import sys

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


def test_demo_prints_a_table_and_writes_the_report(tmp_path):
    out = tmp_path / "new" / "folder"
    for _ in range(2):  # again into the same folder
        done = bnpstream("demo", "--out", str(out))
        assert done.returncode == 0, done.stderr
    for part in ("clusters in order of weight", "NMI", "rows/s", "nats"):
        assert part in done.stdout
    assert f"report: {out / 'report.html'}" in done.stdout
    assert "data:image/png" in (out / "report.html").read_text()
    assert "weight" in bnpstream("clusters", str(out / "run")).stdout


def test_demo_json_is_one_document(tmp_path):
    done = bnpstream("demo", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["rows"] == 1797
    assert result["n_clusters"] == len(result["clusters"])
    assert sum(cluster["weight"] for cluster in result["clusters"]) == pytest.approx(1.0)
    assert sum(cluster["images"] for cluster in result["clusters"]) == 1797
    assert result["nmi"] > 0.65
    weights = [cluster["weight"] for cluster in result["clusters"]]
    assert weights == sorted(weights, reverse=True)


def test_demo_without_matplotlib_says_what_to_install(tmp_path):
    hide = (
        "import importlib.util as u, sys; find = u.find_spec;"
        "u.find_spec = lambda name, *a: None if name == 'matplotlib' else find(name, *a);"
        "sys.argv = ['bnpstream', 'demo', '--out', sys.argv[1]];"
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
    assert bnpstream("--version").stdout.strip() == f"bnpstream {__version__}"
    assert "demo" in bnpstream("--help").stdout


def test_an_unknown_command_is_a_usage_error():
    assert bnpstream("dmeo").returncode == 2
