"""Samples of what `make soak` does for longer: masses, disturbed streams, Ctrl-C, damaged runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from drifting import drift
from streaming import main

HERE = Path(__file__).parent


@pytest.mark.parametrize(("engine", "n_rows"), [("compiled", 40_000), ("reference", 1000)])
def test_masses_add_up_to_the_rows(engine, n_rows):
    found, n_clusters = drift(n_rows, n_calls=20, engine=engine)
    assert n_clusters > 2
    assert found < n_rows * 2.0**-53


def test_a_stream_loses_nothing_whatever_happens_to_it(tmp_path):
    shim = tmp_path / "clock_shim.so"
    source = HERE / "clock_shim.c"
    built = subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=False)
    clock = str(shim) if built.returncode == 0 else ""
    main(tmp_path / "soak", 0.0, seed=3, shim=clock, steady_rows=100)


def test_ctrl_c_from_outside(tmp_path):
    script = HERE / "interrupting.py"
    done = subprocess.run([sys.executable, script, "3", "5"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.count("3 signals") == 7


def test_no_damaged_run_is_a_traceback():
    script = HERE / "breaking.py"
    done = subprocess.run([sys.executable, script, "6", "7"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
