"""Messages for brokers, and what runs over them come to."""

import json
import random

from bnpstream.storage import read_checkpoint, read_config

QUICK = ("--engine", "reference", "--prefix-rows", "20", "--quiet")
OFTEN = ("--checkpoint-rows", "40", "--batch-rows", "16")


def rows(n, seed=0, first=0, n_bad=0):
    """Return JSON objects with two numbers in three clusters; some of them cannot be used."""
    rng = random.Random(seed)
    found, bad = [], poisoned(n, n_bad)
    for i in range(first, first + n):
        centre = 10 * rng.randrange(3)
        cells = {"id": f"d{i}", "x": rng.gauss(centre, 1), "y": rng.gauss(-centre, 1)}
        if i - first in bad:
            cells["x"] = "Infinity"
        found.append(json.dumps(cells).encode())
    return found


def poisoned(n, n_bad):
    """Return which of n rows cannot be used."""
    return [n * (i + 1) // (n_bad + 1) for i in range(n_bad)]


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


def check_answers(pairs, n, bad=()):
    """Check that all records but bad ones are answered, each with one answer, if repeated too."""
    found = {}
    for key, answer in pairs:
        assert found.setdefault(key, answer) == answer
    numbers = [answer["record"] for answer in found.values()]
    assert sorted([*numbers, *bad]) == list(range(n))
    return found
