"""The commands that README and documentation show are run as they stand."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOPICS = ("rain wind snow hail storm sun", "bond stock yield bank rate loan", "goal team match cup")


def commands(path):
    """Return the commands of a page in order."""
    blocks = BLOCK.findall(path.read_text())
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def write_feed(path):
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for i in range(300):
            topic = int(rng.integers(3))
            words = " ".join(rng.choice(TOPICS[topic].split(), size=8))
            time = f"2026-01-{1 + i // 24:02}T{i % 24:02}:00:00Z"
            record = {"id": f"d{i}", "time": time, "text": words, "label": f"topic {topic}"}
            file.write(json.dumps(record) + "\n")


@pytest.mark.parametrize(
    "page",
    ["README.md", *(f"docs/{name}.md" for name in ("start", "recipes", "feeds", "choosing"))],
)
def test_shown_commands_run(page, tmp_path, request):
    shown = commands(ROOT / page)
    assert shown
    write_feed(tmp_path / "feed.jsonl")
    if any("kos" in command for command in shown):
        request.getfixturevalue("kos")  # or skip
        from bnpstream.datasets import find

        for name in ("docword.kos.txt.gz", "vocab.kos.txt"):
            (tmp_path / name).symlink_to(find("kos") / name)
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    for command in shown:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
