"""A disk that fails at any call, or a process that is killed there: resumed, the same bits."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STEP = 41
"""Every so many calls here; `make soak` has all of them."""


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """Compile what makes calls fail."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler makes calls of the disk fail here")
    path = tmp_path_factory.mktemp("shim") / "shim.so"
    source = str(HERE / "fault_shim.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(path), source, "-ldl"], check=True)
    return path


@pytest.mark.parametrize("model", ["growing"])
def test_every_call_of_the_disk_may_fail(tmp_path, shim, model):
    command = [sys.executable, HERE / "fault_points.py", tmp_path, model, str(STEP)]
    environment = os.environ | {"LD_PRELOAD": str(shim)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert ", 0 bad" in done.stdout
    n_failed, n_unreached = map(
        int, re.findall(r"(\d+) failed.* (\d+) not reached", done.stdout)[0]
    )
    assert n_failed > n_unreached
