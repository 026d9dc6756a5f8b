"""Saved arrays with one number, type or shape replaced: refused, or harmless; never a crash."""

import subprocess
import sys
from pathlib import Path

import pytest
from forging import MODELS

SHARE = 12
"""One forged state in so many is tried."""


@pytest.mark.parametrize("name", MODELS)
def test_no_forged_array_ends_the_process(name):
    script = Path(__file__).with_name("forging.py")
    done = subprocess.run(
        [sys.executable, str(script), name, str(SHARE)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert ", 0 bad" in done.stdout
