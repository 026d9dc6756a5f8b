"""The server does what its description says, tried by schemathesis."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="starlette is missing: pip install 'bnpstream[serve]'")

from serving import fit, serving, text_records, write_lines

COMMAND = shutil.which("st", path=Path(sys.executable).parent) or shutil.which("st")


@pytest.mark.skipif(COMMAND is None, reason="schemathesis is missing: pip install schemathesis")
def test_the_server_does_what_its_description_says(tmp_path):
    run = fit(write_lines(tmp_path / "feed.jsonl", text_records(0, 120)), tmp_path / "run")
    with serving(run, api=True) as served:
        done = subprocess.run(
            [COMMAND, "run", f"{served.address}openapi.json", "--max-examples", "10", "--seed", "1",
             "--phases", "examples,coverage,fuzzing"],
            cwd=tmp_path, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
