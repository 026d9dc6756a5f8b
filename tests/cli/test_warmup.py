"""Loops that were compiled beforehand: a later process finds all of them on disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config
from numba.core import caching

import bnpstream
from bnpstream.kernels.jit.decorators import entry
from commands import run, run_json

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="there is nothing to compile")

FIT = """
import sys
from numba.core import event
from bnpstream.cli import app

class Count(event.Listener):
    compiled = []
    def on_start(self, event):
        self.compiled.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass

event.register("numba:compile", Count())
try:
    app(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0, end.code
print("compiled:", *Count.compiled)
"""


def write_texts(path):
    """Write 3300 texts of other words and lengths than those of the warm-up."""
    words = [f"{'abc'[i % 3]}{i * i % 97}" for i in range(33_000)]
    texts = [" ".join(words[10 * i : 10 * i + 3 + i % 8]) for i in range(3300)]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


def test_a_fit_after_a_warmup_compiles_nothing(tmp_path):
    found = run_json("warmup", "--kind", "text")
    assert [one["kind"] for one in found["kinds"]] == ["text"]
    assert found["cache"]["bytes"] > 0
    assert all(Path(folder).is_dir() for folder in found["cache"]["folders"])
    write_texts(tmp_path / "texts.jsonl")
    source = str(Path(bnpstream.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run(
        [sys.executable, "-c", FIT, "fit", str(tmp_path / "texts.jsonl"), "--prior", "nig"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "compiled:"
    assert "bnpstream compiles" not in done.stderr


def test_what_is_warm_is_said_to_be(tmp_path):
    run("warmup", "--kind", "text")
    again = run_json("warmup", "--kind", "text")
    assert [one["compiled"] for one in again["kinds"]] == [0]
    assert "everything was already compiled" in run("warmup", "--kind", "text", "--kind", "text")


def test_a_kind_that_there_is_not_is_refused():
    assert "text, counts, rows" in run("warmup", "--kind", "images", code=2)


def test_loops_that_cannot_be_kept_are_an_error_with_a_way_out(monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    monkeypatch.setattr("bnpstream.runs.warmup.KEPT", [entry(lambda x: x)])
    assert "set NUMBA_CACHE_DIR to a writable folder" in run("warmup", code=1)
