"""Saved arrays with one number, type or shape replaced: refused, or harmless; never a crash."""

import subprocess
from functools import partial

import pytest
from forging import MODELS, main
from killing import fork

SHARE = 12
"""One forged state in so many is tried."""


@pytest.mark.parametrize("name", MODELS)
def test_no_forged_array_ends_the_process(name):
    process = fork(
        partial(main, name, SHARE), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    output, errors = process.communicate()
    assert process.returncode == 0, output + errors[-3000:]
    assert ", 0 bad" in output
