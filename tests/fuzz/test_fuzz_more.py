"""Messages and requests that were spoilt, and spoilt files with every index checked: samples."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from messages import check_messages, check_request, small_runs

HERE = Path(__file__).parent
N_MESSAGES, N_REQUESTS, N_FILES = 500, 40, 100


def test_messages_are_records_or_rejects():
    for number in range(N_MESSAGES):
        check_messages(number)


def test_every_record_of_a_request_is_answered(tmp_path):
    runs = small_runs(tmp_path)
    for number in range(N_REQUESTS):
        check_request(number, runs)


@pytest.mark.parametrize("checked", ["1", "0"])
def test_no_loop_reads_outside_of_an_array(tmp_path, checked):
    environment = os.environ | {"NUMBA_BOUNDSCHECK": checked, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, HERE / "bounds.py", str(N_FILES)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    if checked == "1":
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{N_FILES} files, 0 bad" in done.stdout
    else:
        assert done.returncode != 0
        assert "bounds are not checked" in done.stderr
