"""A stream that is followed while everything about it changes; what came of it is recomputed.

``python streaming.py FOLDER MINUTES [SEED]`` writes a feed and has `bnpstream stream --follow` read
it. The feed is cut, rotated and replaced; the process is killed, ended and started again; its clock
jumps (`clock_shim.c`), and so do the times of records; others look at the run, or want to write to
it. In the end every record must have been answered, once or the same way twice, rows and rejects
must be those that were written, and the model must be that of one undisturbed pass, bit for bit.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from killing import TIMES, WORDS, command, read_answers

from bnpstream.runs.overview import Run
from bnpstream.storage import RunError, read_checkpoint, read_tensors

MODEL = ("--hash-bits", "8", "--alpha", "0.3", "--time-field", "t", "--half-life", "2h")
OFTEN = ("--batch-rows", "64", "--checkpoint-rows", "200", "--checkpoint-seconds", "0.2")
PATIENCE = 300
"""Seconds without progress: longer than this is never."""
BAD = [b'{"id": "x', b"[]", b'{"id": "y", "text": 3, "t": 1}', b"\xff\xfe", b'{"id": "z"}']
STEADY_ROWS = 2000
MORE_BYTES = 32 << 20
"""Bytes that a process may have more after many rows than after few."""


class Feed:
    """A file that is written to, cut, rotated and replaced; `lines` has all that was ever in it."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.rng = path, random.Random(seed)
        self.ids: list[str] = []
        self.lines: list[bytes] = []
        self.now = 1.7e9
        path.touch()

    @property
    def n_records(self) -> int:
        return len(self.lines)

    def made(self, n: int) -> list[bytes]:
        """Return new lines, of which a few are no records."""
        rng, found = self.rng, []
        for _ in range(n):
            if rng.random() < 0.02 and self.ids:
                found.append(rng.choice(BAD))
                continue
            self.now += rng.choice([1.0, 1.0, 10.0, -30.0, 0.0])
            if rng.random() < 0.002:
                self.now += rng.choice([-1.0, 1.0]) * rng.choice([3600.0, 1e5, 1e7])
            topic = 30 * rng.randrange(10)
            text = " ".join(WORDS[topic + rng.randrange(30)] for _ in range(rng.randrange(4, 20)))
            record = {"id": f"d{len(self.ids)}", "text": text, "t": round(self.now, 3)}
            self.ids.append(record["id"])
            found.append(json.dumps(record).encode())
        self.lines += found
        return found

    def append(self, n: int) -> None:
        """Write lines, the last of them in two pieces."""
        data = b"".join(line + b"\n" for line in self.made(n))
        with self.path.open("ab", buffering=0) as file:
            file.write(data[:-7])
            file.write(data[-7:])

    def replace(self, n: int) -> None:
        """Put another file in its place."""
        other = self.path.with_suffix(".new")
        other.write_bytes(b"".join(line + b"\n" for line in self.made(n)))
        other.rename(self.path)

    def rotate(self, n: int) -> None:
        """Move the file away, and begin another one."""
        self.path.rename(self.path.with_suffix(".1"))
        self.append(n)

    def cut(self, n: int) -> None:
        """Cut the file to nothing, and write to it again, less than there was."""
        os.truncate(self.path, 0)
        self.append(n)


class Stream:
    """A process of `bnpstream stream`."""

    def __init__(self, folder: Path, feed: Path, shim: str = "") -> None:
        self.run, self.answers, self.errors = (
            folder / "run",
            folder / "answers.jsonl",
            folder / "errors",
        )
        self._arguments = command(
            "stream", feed, "--follow", "--out", self.run, *MODEL, *OFTEN, "--quiet", "--resume"
        )
        self._shim = shim
        self.n_starts = 0
        self.start()

    def start(self) -> None:
        with self.answers.open("ab") as answers, self.errors.open("ab") as errors:
            environment = os.environ | ({"LD_PRELOAD": self._shim} if self._shim else {})
            self.process = subprocess.Popen(
                self._arguments, stdout=answers, stderr=errors, env=environment
            )
        self.n_starts += 1

    def end(self, how: signal.Signals) -> None:
        """End it by a signal; only one that cannot be heeded is not answered by an exit code."""
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        expected = (-signal.SIGKILL,) if how is signal.SIGKILL else (130, 143)
        assert code in expected, f"{how.name}: ended with {code}: {self.said()}"

    def saved(self) -> int:
        """Return how many records the last checkpoint has."""
        try:
            return int(read_checkpoint(self.run).document["position"]["records"])
        except RunError:
            return 0

    def settle(self, n_records: int) -> None:
        """Wait until all records are saved."""
        wait_for(self.saved, lambda found: found == n_records, self)

    def said(self) -> str:
        return self.errors.read_text(errors="replace")[-2000:]

    def n_bytes(self) -> int:
        """Return the bytes of memory that it has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024


def wait_for(look: Callable[[], int], is_there: Callable[[int], bool], stream: Stream) -> None:
    """Wait until something is there, as long as there is progress."""
    last, since = -1, time.monotonic()
    while not is_there(found := look()):
        if found != last:
            last, since = found, time.monotonic()
        assert stream.process.poll() is None, f"it ended by itself: {stream.said()}"
        assert time.monotonic() - since < PATIENCE, f"nothing after record {found}: {stream.said()}"
        time.sleep(0.05)


class Looking(threading.Thread):
    """Opens the run again and again; what is saved never becomes less."""

    def __init__(self, run: Path) -> None:
        super().__init__(daemon=True)
        self._run, self.ended = run, threading.Event()
        self.n_looks, self.problem = 0, ""

    def run(self) -> None:
        most = 0
        while not self.ended.wait(0.3) and not self.problem:
            try:
                rows = Run(self._run).checkpoint.rows
            except RunError:
                if most:
                    self.problem = "a run that was there is not"
                continue
            except Exception as error:
                self.problem = repr(error)
                continue
            if rows < most:
                self.problem = f"{rows} rows after {most}"
            most, self.n_looks = rows, self.n_looks + 1


def disturb(feed: Feed, stream: Stream) -> str:
    """Do one thing that may happen to a stream; return which."""
    rng = feed.rng
    what = rng.choice(["kill", "kill", "kill", "end", "cut", "rotate", "replace", "away", "half"])
    if what == "kill":
        feed.append(rng.randrange(1, 400))
        time.sleep(rng.uniform(0.0, 3.0))
        stream.end(signal.SIGKILL)
        stream.start()
    elif what == "end":
        feed.append(rng.randrange(1, 400))
        stream.settle(feed.n_records)  # signals are heeded from here on
        feed.append(rng.randrange(1, 400))
        stream.end(rng.choice([signal.SIGTERM, signal.SIGINT]))
        stream.start()
    elif what == "half":  # a line that is not whole when the process is killed
        line = feed.made(1)[0] + b"\n"
        with feed.path.open("ab", buffering=0) as file:
            file.write(line[:9])
            stream.end(signal.SIGKILL)
            stream.start()
            file.write(line[9:])
    else:
        feed.append(rng.randrange(50, 300))
        if what == "rotate":  # what is not read yet is read from the old file
            stream.settle(feed.n_records)
            feed.append(rng.randrange(1, 200))
            feed.rotate(rng.randrange(1, 400))
        else:
            stream.settle(feed.n_records)
            if what == "cut":
                feed.cut(rng.randrange(1, 20))
            elif what == "replace":
                feed.replace(rng.randrange(1, 400))
            else:  # another file, while nobody looks
                stream.end(signal.SIGTERM)
                feed.replace(rng.randrange(1, 800))
                stream.start()
        stream.settle(feed.n_records)
    return what


def check_answers(feed: Feed, stream: Stream) -> int:
    """Raise AssertionError unless every record has one answer; return how many came twice."""
    found, n_lines = read_answers(stream.answers), 0
    for line in stream.answers.read_bytes().splitlines():
        try:
            answer = json.loads(line)
        except ValueError:  # a killed process left it behind
            continue
        n_lines += 1
        same = answer == found[answer["record"]]
        assert same or "provisional" in answer, answer
    assert [found[record]["id"] for record in sorted(found)] == feed.ids
    return n_lines - len(found)


def check_run(feed: Feed, stream: Stream, alone: Stream) -> None:
    """Raise AssertionError unless a run has all that was written, and the bits of one in peace."""
    here, there = (read_tensors(one.run / "state.safetensors") for one in (stream, alone))
    assert here.document["position"]["records"] == feed.n_records
    assert here.document["rows"] == len(feed.ids)
    rejects = [
        [
            {name: part for name, part in json.loads(line).items() if name in ("record", "reason")}
            for line in (one.run / "rejects.jsonl").read_bytes().splitlines()
        ]
        for one in (stream, alone)
    ]
    assert len(rejects[0]) == here.document["rejects"] == feed.n_records - len(feed.ids)
    assert rejects[0] == rejects[1]
    for document in (here.document, there.document):
        for name in (*TIMES, "position"):
            del document[name]
    assert here.document == there.document
    assert here.arrays.keys() == there.arrays.keys()
    for name, array in here.arrays.items():
        assert array.tobytes() == there.arrays[name].tobytes(), name


def check_second_writer(stream: Stream) -> None:
    """Raise AssertionError unless another process is told that the run is being written to."""
    done = subprocess.run(stream._arguments, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


def steady(feed: Feed, stream: Stream, until: float, n_rows: int) -> tuple[int, int]:
    """Feed without disturbance; return the bytes after a third of the rows, and in the end."""
    sizes = []
    while time.monotonic() < until or len(sizes) < 6:
        feed.append(n_rows)
        stream.settle(feed.n_records)
        sizes.append(stream.n_bytes())
    third = max(sizes[: len(sizes) // 3])
    assert sizes[-1] < third + MORE_BYTES, sizes
    return third, sizes[-1]


def main(
    folder: Path, minutes: float, seed: int, shim: str, steady_rows: int = STEADY_ROWS
) -> None:
    """Disturb a stream for two thirds of some minutes, leave it alone for the rest, and check."""
    folder.mkdir(parents=True, exist_ok=True)
    feed = Feed(folder / "feed.jsonl", seed)
    feed.append(100)
    began = time.monotonic()
    stream = Stream(folder, feed.path, shim)
    looking = Looking(stream.run)
    looking.start()
    done: dict[str, int] = {}
    stream.settle(feed.n_records)
    check_second_writer(stream)
    while time.monotonic() < began + 40 * minutes or len(done) < 3:
        what = disturb(feed, stream)
        done[what] = done.get(what, 0) + 1
        assert not looking.problem, looking.problem
    stream.settle(feed.n_records)
    sizes = steady(feed, stream, began + 60 * minutes, steady_rows)
    stream.end(signal.SIGTERM)
    looking.ended.set()
    looking.join()
    assert not looking.problem, looking.problem
    assert "Traceback" not in stream.said()
    n_twice = check_answers(feed, stream)
    whole = folder / "whole.jsonl"
    whole.write_bytes(b"".join(line + b"\n" for line in feed.lines))
    (folder / "alone").mkdir()
    alone = Stream(folder / "alone", whole)
    alone.settle(feed.n_records)
    alone.end(signal.SIGTERM)
    check_run(feed, stream, alone)
    print(
        f"{feed.n_records} records, {feed.n_records - len(feed.ids)} rejects, "
        f"{stream.n_starts} starts, {done}, {n_twice} answers twice, {looking.n_looks} looks, "
        f"{sizes[0] >> 20} MB after a third of the rows, {sizes[1] >> 20} MB in the end; "
        f"seed {seed}"
    )


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        float(sys.argv[2]),
        int((sys.argv[3:] or ["0"])[0]),
        os.environ.get("CLOCK_SHIM", ""),
    )
