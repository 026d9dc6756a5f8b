"""Kafka in, answers out, against a file in, answers out: CPU time of the process per document.

JSON documents of 40 words from 50 clusters, in four partitions of librdkafka's own cluster for
tests, which this process holds: over loopback TCP, with no more than it keeps. CPU time of all
threads of the child, consumer and producer included; what starting takes is measured with few
documents and taken off. Both ways take turns.
"""

import os
import subprocess
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Producer

from measure import Spread, arguments, machine, save
from raw_text import COMMAND, Feed, draw

DOCUMENTS, FEW, TURNS = 40_000, 4_000, 3
FEED = Feed("40 words, 50 clusters", 40, 50, 2_000, 0.02, DOCUMENTS)
PARTITIONS = 4


def cpu_of(options: list[str], answers: Path) -> float:
    """Return the CPU seconds of a command, of all its threads."""
    with answers.open("wb") as file:
        process = subprocess.Popen([*COMMAND, *options, "--quiet"], stdout=file)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    sizes = {"few": FEW, "all": given.documents}
    print(f"{machine()}; {given.documents:,} documents; median (least..most) of {given.turns}")
    holder = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    (broker,) = holder.list_topics(timeout=60).brokers.values()
    server = f"kafka://{broker.host}:{broker.port}"
    lines = [line for block in draw(FEED, given.documents) for line in block.splitlines()]
    with TemporaryDirectory() as name:
        folder = Path(name)
        ways: dict[tuple[str, str], list[str]] = {}
        for size, n in sizes.items():
            (folder / f"{size}.jsonl").write_bytes(b"\n".join(islice(lines, n)) + b"\n")
            for i, line in enumerate(islice(lines, n)):
                holder.produce(size, line, partition=i % PARTITIONS)
                holder.poll(0)
            assert holder.flush(60) == 0
            ways["file", size] = ["stream", str(folder / f"{size}.jsonl")]
            ways["kafka", size] = ["stream", f"{server}/{size}", "--to", f"{server}/told-{size}"]
        cpu_of(ways["file", "few"], folder / "answers")  # compiles, if need be
        per_document: dict[str, list[float]] = {"file": [], "kafka": []}
        for turn in range(given.turns):
            for way, found in per_document.items():
                seconds = {
                    size: cpu_of(
                        [*ways[way, size], "--out", str(folder / f"{way}-{size}-{turn}")],
                        folder / "answers",
                    )
                    for size in sizes
                }
                n = sizes["all"] - sizes["few"]
                found.append(1e6 * (seconds["all"] - seconds["few"]) / n)
    for way, found in per_document.items():
        print(f"{way:6s} {Spread.of(found).show('.1f')} microseconds a document")
    ratios = [k / f for k, f in zip(per_document["kafka"], per_document["file"], strict=True)]
    print(f"ratio  {Spread.of(ratios).show()}")
    save({"microseconds": per_document, "ratios": ratios}, given.json)


if __name__ == "__main__":
    main()
