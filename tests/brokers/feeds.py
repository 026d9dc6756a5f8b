"""Messages for brokers, and what runs over them come to."""

import json
import random

from bnpstream.storage import read_checkpoint, read_config

QUICK = ("--engine", "reference", "--prefix-rows", "20", "--quiet")
OFTEN = ("--checkpoint-rows", "40", "--batch-rows", "16")


def rows(n, seed=0, first=0):
    """Return JSON objects with two numbers in three clusters."""
    rng = random.Random(seed)
    found = []
    for i in range(first, first + n):
        centre = 10 * rng.randrange(3)
        cells = {"id": f"d{i}", "x": rng.gauss(centre, 1), "y": rng.gauss(-centre, 1)}
        found.append(json.dumps(cells).encode())
    return found


def bits(folder):
    """Return what a checkpoint holds, without what depends on clock and source."""
    found = read_checkpoint(folder)
    kept = {k: v for k, v in found.document.items() if k not in ("seconds", "marks", "position")}
    return {k: v.tobytes() for k, v in found.arrays.items()}, kept


def position(folder):
    return read_checkpoint(folder).document["position"]


def rejects(folder):
    return [json.loads(line) for line in (folder / "rejects.jsonl").read_text().splitlines()]


def paths(folder):
    return read_config(folder)["source"]["paths"]


def check_answers(pairs, n):
    """Check that all records are answered, each with one answer, whatever is repeated."""
    found = {}
    for key, answer in pairs:
        assert found.setdefault(key, answer) == answer
    assert sorted(answer["record"] for answer in found.values()) == list(range(n))
    return found
