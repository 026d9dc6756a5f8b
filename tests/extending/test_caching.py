"""Loops compiled for somebody else: kept on disk, made anew when edited, in nobody's way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config

import bnpstream

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
def run(tmp_path, package):
    """Return a function that runs code in a process of its own and returns what it prints."""
    (tmp_path / "loops.py").write_text(LOOPS)
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(package)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(code):
        script = tmp_path / "script.py"
        script.write_text(f"from loops import *\n{code}\n")
        command = [sys.executable, str(script)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]

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
