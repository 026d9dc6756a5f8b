"""The first call in a fresh installation says that it compiles; the next process does not."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from bnpstream import StreamingMixture
StreamingMixture("nig").partial_fit(np.eye(4, dtype=int))
"""


def run(cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@pytest.mark.slow
def test_only_the_first_process_says_that_it_compiles(tmp_path):
    first = run(tmp_path)
    assert first.count("bnpstream compiles its loops") == 1
    assert len(first.splitlines()) == 1
    assert run(tmp_path) == ""
