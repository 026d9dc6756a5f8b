"""A server beside a run: latency of /predict, and what ten open pages cost the learner.

One document of 40 words, from 50 clusters, is posted at a steady rate over kept connections.
Latency counts from the moment when a request was due, so that a server which falls behind cannot
hide it. The learner is idle first; then it learns the run that is served, with a checkpoint every
two seconds. CPU time of a learner with a server and ten event streams is compared with that of one
alone; both take turns.
"""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from measure import Spread, arguments, machine, save
from raw_text import COMMAND, Feed, draw

DOCUMENTS, STREAMS, CONNECTIONS = 20_000, 10, 16
FEED = Feed("40 words, 50 clusters", 40, 50, 2_000, 0.02, DOCUMENTS)
PACE = ("--batch-rows", "64", "--checkpoint-seconds", "2", "--quiet")


@contextmanager
def server(run: Path) -> Iterator[int]:
    """Serve a run; yield its port when it answers."""
    process = subprocess.Popen(
        [*COMMAND, "serve", str(run), "--api", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().split("/ (")[0].rpartition(":")[2])
        yield port
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def ask(port: int, request: bytes, connection: Any = None) -> tuple[Any, bytes, bytes]:
    """Return a connection, the status line and the body of an answer."""
    reader, writer = connection or await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    return (reader, writer), head.split(b"\r\n")[0], await reader.readexactly(length)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(line: bytes) -> bytes:
    body = json.dumps({"records": [json.loads(line)]}).encode()
    return (
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )


async def until_ready(port: int) -> None:
    while (await ask(port, get("/readyz")))[1].split()[1] != b"200":
        await asyncio.sleep(0.5)


async def latencies(port: int, lines: list[bytes], rate: float) -> list[float]:
    """Post documents at a steady rate; return milliseconds from when each was due."""
    await until_ready(port)
    free: asyncio.Queue[Any] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(None)
    began, found = time.perf_counter() + 0.1, []

    async def one(due: float, request: bytes) -> None:
        connection, status, _ = await ask(port, request, await free.get())
        assert status.split()[1] == b"200", status
        found.append(1000 * (time.perf_counter() - due))
        free.put_nowait(connection)

    tasks = []
    for i, request in enumerate(map(post, lines)):
        due = began + i / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(due, request)))
    await asyncio.gather(*tasks)
    return found


async def listen(port: int) -> None:
    """Read an event stream for ever."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(get("/events"))
    while await reader.read(65536):
        pass


def learner(path: Path, out: Path, *more: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*COMMAND, "fit", str(path), "--out", str(out), *PACE, *more], stdout=subprocess.DEVNULL
    )


def cpu_of(process: "subprocess.Popen[bytes]") -> float:
    """Return the CPU seconds of a process when it has ended."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


async def watched(path: Path, out: Path) -> float:
    """Return the CPU seconds of a learner whose run is served to ten pages."""
    process = learner(path, out)
    while not out.exists():
        await asyncio.sleep(0.01)
    with server(out) as port:
        streams = [asyncio.create_task(listen(port)) for _ in range(STREAMS)]
        found = await asyncio.to_thread(cpu_of, process)
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
    return found


def show(name: str, found: list[float]) -> None:
    middle, late = np.percentile(found, [50, 99])
    print(f"{name:8s} median {middle:.1f} ms, p99 {late:.1f} ms, {len(found)} requests", flush=True)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    print(f"{machine()}; {given.rate:g} requests a second")
    lines = [line for block in draw(FEED, given.documents) for line in block.splitlines()]
    asked = lines[: given.requests]
    with TemporaryDirectory() as name:
        folder = Path(name)
        feed = folder / "feed.jsonl"
        feed.write_bytes(b"\n".join(islice(lines, given.documents)) + b"\n")
        run = folder / "run"
        cpu_of(learner(feed, run))
        with server(run) as port:
            idle = asyncio.run(latencies(port, asked, given.rate))
            show("idle", idle)
            with feed.open("ab") as file:
                file.write(b"\n".join(lines) + b"\n")
            process = learner(feed, run, "--resume", "--follow")
            time.sleep(5.0)
            learning = asyncio.run(latencies(port, asked, given.rate))
            process.terminate()
            process.wait()
            show("learning", learning)
        ratios = []
        for turn in range(given.turns):
            alone = cpu_of(learner(feed, folder / f"alone-{turn}"))
            beside = asyncio.run(watched(feed, folder / f"beside-{turn}"))
            ratios.append(beside / alone)
            print(f"turn {turn + 1}: alone {alone:.2f} s, ten pages {beside:.2f} s", flush=True)
    if ratios:
        print(f"ratio {Spread.of(ratios).show('.3f')}")
    save({"idle": idle, "learning": learning, "ratios": ratios}, given.json)


if __name__ == "__main__":
    main()
