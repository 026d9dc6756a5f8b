"""A disk, an allocation or the power that fails at any moment: resumed, the same bits."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """Compile what makes calls fail, and writes them down."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler makes calls of the disk fail here")
    path = tmp_path_factory.mktemp("shim") / "shim.so"
    source = str(HERE / "fault_shim.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(path), source, "-ldl"], check=True)
    return path


def run(script, shim, *arguments):
    """Return what a script says that has gone well."""
    command = [sys.executable, HERE / script, *map(str, arguments)]
    environment = os.environ | {"LD_PRELOAD": str(shim)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert ", 0 bad" in done.stdout
    return done.stdout


# A few points here; `make soak` has all of them, in all kinds of runs.
@pytest.mark.parametrize("model", ["growing", "rotation"])
def test_every_call_of_the_disk_and_allocation_may_fail(tmp_path, shim, model):
    said = run("fault_points.py", shim, tmp_path, model, 2)
    n_failed, n_unreached = map(int, re.findall(r"(\d+) failed, (\d+) not reached", said)[0])
    assert n_failed > max(n_unreached, 9)


@pytest.mark.parametrize("model", ["window", "rotation"])
def test_power_may_be_lost_after_every_step(tmp_path, shim, model):
    said = run("power_loss.py", shim, tmp_path, model, 6)
    assert int(re.findall(r"(\d+) losses of power", said)[0]) >= 18
