"""From raw text to clusters: documents per second of ``fit`` and ``stream``, end to end.

JSON lines of 8 and of 40 words, drawn from as many topics as make about 50 and about 1000 clusters,
go through the command as users run it; the vocabulary grows, as by default. The first part of every
file is run on its own before the whole: what the whole takes more is the cost of the documents,
without start-up. Clock and CPU seconds are those of the process, all its threads included.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from measure import arguments, machine, save

COMMAND = [sys.executable, "-m", "bnpstream"]
BLOCK, FIRST = 10_000, 20_000


class Feed(NamedTuple):
    """What documents are drawn from."""

    name: str
    length: int
    topics: int
    words: int
    alpha: float
    """Of a topic's Dirichlet distribution over words."""
    documents: int


FEEDS = [
    Feed("8 words, about 50 clusters", 8, 30, 2_000, 0.005, 1_000_000),
    Feed("40 words, about 50 clusters", 40, 50, 2_000, 0.02, 500_000),
    Feed("8 words, about 1000 clusters", 8, 700, 20_000, 0.0005, 200_000),
    Feed("40 words, about 1000 clusters", 40, 1000, 20_000, 0.002, 200_000),
]


class Cost(NamedTuple):
    """What a process took."""

    seconds: float
    cpu_seconds: float
    clusters: int | None


def draw(feed: Feed, n_documents: int) -> Iterator[bytes]:
    """Yield blocks of JSON lines."""
    rng = np.random.default_rng(0)
    edges = np.cumsum(rng.dirichlet(np.full(feed.words, feed.alpha), size=feed.topics), axis=1)
    names = np.array([f"word{j}" for j in range(feed.words)])
    for start in range(0, n_documents, BLOCK):
        kinds = rng.integers(feed.topics, size=BLOCK)
        uniforms = rng.random((BLOCK, feed.length))
        tokens = np.empty((BLOCK, feed.length), np.int64)
        for k in np.unique(kinds):
            own = kinds == k
            tokens[own] = np.searchsorted(edges[k], uniforms[own] * edges[k, -1])
        lines = [
            f'{{"id": "d{start + i}", "text": "{" ".join(words)}"}}\n'
            for i, words in enumerate(names[tokens].tolist())
        ]
        yield "".join(lines).encode()


def run(command: str, path: Path, out: Path) -> Cost:
    """Run the command on a file; answers go nowhere."""
    options = ["--json"] if command == "fit" else ["--quiet"]
    found = out.with_suffix(".json")
    with (found if command == "fit" else Path(os.devnull)).open("wb") as stdout:
        began = time.perf_counter()
        process = subprocess.Popen([*COMMAND, command, path, "--out", out, *options], stdout=stdout)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    assert status == 0
    clusters = json.loads(found.read_bytes())["clusters"] if command == "fit" else None
    return Cost(seconds, usage.ru_utime + usage.ru_stime, clusters)


def measure(feed: Feed, share: float) -> dict[str, dict[str, float | None]]:
    """Return what both commands take for a feed."""
    n_documents = max(2 * FIRST, BLOCK * round(share * feed.documents / BLOCK))
    results: dict[str, dict[str, float | None]] = {}
    with TemporaryDirectory(prefix="bnpstream-text-") as folder:
        first, whole = (Path(folder, f"{name}.jsonl") for name in ("first", "whole"))
        for path, n in ((first, FIRST), (whole, n_documents)):
            with path.open("wb") as file:
                file.writelines(draw(feed, n))
        run("fit", first, Path(folder, "compiled"))
        for command in ("fit", "stream"):
            before, cost = (
                run(command, path, Path(folder, f"{command}-{path.stem}"))
                for path in (first, whole)
            )
            n, seconds = n_documents - FIRST, cost.seconds - before.seconds
            cpu_seconds = cost.cpu_seconds - before.cpu_seconds
            results[command] = {
                "documents": n,
                "clusters": cost.clusters,
                "seconds": seconds,
                "cpu_seconds": cpu_seconds,
                "per_second": n / seconds,
                "per_cpu_second": n / cpu_seconds,
                "startup_seconds": before.seconds - seconds * FIRST / n,
            }
            print(
                f"  {command:6s}  {n / seconds:9,.0f} documents/s  {seconds:6.1f} s clock  "
                f"{cpu_seconds:6.1f} s CPU  ({1e6 * cpu_seconds / n:.1f} us per document)"
                + (f"  {cost.clusters} clusters" if cost.clusters is not None else ""),
                flush=True,
            )
    return results


def main() -> None:
    """Measure every feed."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--share", type=float, default=1.0, help="part of the documents to draw")
    options = parser.parse_args()
    print(machine())
    results = {}
    for feed in FEEDS:
        print(feed.name)
        results[feed.name] = measure(feed, options.share)
    save(results, options.json)


if __name__ == "__main__":
    main()
