"""Loops compiled for somebody else: kept on disk, made anew when edited, in nobody's way."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numba import config

import bnpstream
from bnpstream.kernels.jit.cache import LoopFile
from bnpstream.kernels.jit.turns import Turn

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT), reason="nothing is compiled, so nothing is kept"
)

LOOPS = """
from bnpstream.kernels.jit.decorators import entry
from bnpstream.kernels.words.dirichlet import SymmetricDirichletMultinomial, alpha_of
@entry
def first_alpha(parameters):
    return alpha_of(parameters, 0)
def show(parameters):
    print(first_alpha(parameters), sum(first_alpha.stats.cache_hits.values()))
"""
THEIRS = """
from typing import NamedTuple
from bnpstream.extending import specialize
from bnpstream.kernels.words.dirichlet import alpha_of
class Parameters(NamedTuple):
    alpha: float
@specialize(alpha_of, Parameters)
def _alpha(parameters, word):
    return parameters.alpha + {more}
"""
OURS = "show(SymmetricDirichletMultinomial(0.5, 0.0, 1.0))"


@pytest.fixture
def package(tmp_path):
    """Return a copy of the package, to be edited."""
    source = Path(bnpstream.__file__).parent
    shutil.copytree(source, tmp_path / "copy" / "bnpstream", ignore=shutil.ignore_patterns("__py*"))
    return tmp_path / "copy"


@pytest.fixture
def begin(tmp_path, package):
    """Return a function that runs code in a process of its own, which it returns."""
    (tmp_path / "loops.py").write_text(LOOPS)
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(package)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def begin(code):
        script = tmp_path / "script.py"
        script.write_text(f"from loops import *\n{code}\n")
        command, pipe = [sys.executable, str(script)], subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)

    return begin


@pytest.fixture
def run(begin):
    """Return a function that runs code in a process of its own and returns what it prints."""

    def run(code):
        process = begin(code)
        printed, complaints = process.communicate()
        assert process.returncode == 0, complaints
        return [tuple(map(float, line.split())) for line in printed.splitlines()]

    return run


def test_loops_are_kept_and_made_anew(run, tmp_path):
    theirs = tmp_path / "theirs.py"
    use = "import theirs; show(theirs.Parameters(0.25))"
    theirs.write_text(THEIRS.format(more=1.0))
    assert run(use) == [(1.25, 0)]
    assert run(use) == [(1.25, 1)]
    theirs.write_text(THEIRS.format(more=20.0))
    assert run(use) == [(20.25, 0)]
    assert run(use) == [(20.25, 1)]
    assert run(OURS) == [(0.5, 0)]
    theirs.unlink()  # their package is gone: ours goes on
    assert run(OURS) == [(0.5, 1)]


def test_other_kernels_do_not_read_what_was_kept(run, package):
    """The function's own file is the same, but not what was compiled into it."""
    assert run(OURS) == [(0.5, 0)]
    assert run(OURS) == [(0.5, 1)]
    kernels = package / "bnpstream" / "kernels"
    likelihoods = kernels / "words" / "dirichlet.py"
    source = likelihoods.read_text().replace("return likelihood.alpha\n", "return 7.0\n")
    likelihoods.write_text(source)
    assert run(OURS) == [(7.0, 0)]
    assert run(OURS) == [(7.0, 1)]


def test_classes_of_a_script_leave_nothing_behind(run, tmp_path):
    code = THEIRS.format(more=1.0) + "show(Parameters(0.25))"
    assert run(code) == run(code) == [(1.25, 0)]
    assert not list((tmp_path / "cache").rglob("loops*.nb?"))


def test_a_process_waits_for_one_that_compiles_the_same_loop(begin, run, tmp_path):
    kind = "typeof(SymmetricDirichletMultinomial(0.5, 0.0, 1.0))"
    asked = begin(f"from numba import typeof\nprint(first_alpha._cache._turn(({kind},)))")
    path, turn = Path(asked.communicate()[0].strip()), Turn()
    assert run(OURS) == [(0.5, 0)]
    path.parent.rename(tmp_path / "compiled")
    path.parent.mkdir()
    turn.take(path)  # as the process that compiles
    ready = "import numba; numba.njit(lambda: 0)(); print('begun', flush=True)"
    process = begin(f"{ready}\n{OURS}")
    assert process.stdout.readline() == "begun\n"
    time.sleep(1.0)
    shutil.copytree(tmp_path / "compiled", path.parent, dirs_exist_ok=True)
    turn.end(path)
    assert process.communicate()[0] == "0.5 1\n"


def test_an_index_names_no_code_that_was_there_before(tmp_path, monkeypatch):
    """A process may end, or another one read, between the two files that it writes."""
    before = LoopFile(str(tmp_path), "loop", "before an edit")
    before.save("floats", "code of before")
    assert before.load("floats") == "code of before"

    def end(*arguments):
        raise OSError("the disk is full")

    after = LoopFile(str(tmp_path), "loop", "after it")
    monkeypatch.setattr(after, "_save_data", end)
    with pytest.raises(OSError, match="full"):
        after.save("floats", "code of after")
    assert after.load("floats") is None
