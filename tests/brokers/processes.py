"""Commands in processes of their own, forked from one that has imported everything: killing one
after the other costs little."""

import multiprocessing
import os
import random
import sys
import time
from functools import cache, partial
from multiprocessing import forkserver

from feeds import bits, check_answers, poisoned, rejects, rows
from kafka_cluster import wait_for

QUICK = ("--prefix-rows", "20", "--quiet")


def be_command(arguments, log):
    """Be a command; what it says goes to a file."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    from bnpstream.cli import app

    app(arguments, prog_name="bnpstream")


@cache
def _forking():
    """Return what forks processes off; it finds modules where this process does."""
    context, before = multiprocessing.get_context("forkserver"), os.environ.get("PYTHONPATH")
    context.set_forkserver_preload(["warm"])
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
    return context


class Command:
    """A command that runs."""

    def __init__(self, log, *arguments):
        context = _forking()
        self.log = log
        words = [str(argument) for argument in arguments]
        self.process = context.Process(target=be_command, args=(words, str(log)), daemon=True)
        self.process.start()

    @property
    def code(self):
        """Return the exit code; None as long as it runs."""
        return self.process.exitcode

    def said(self):
        return self.log.read_text() if self.log.exists() else ""

    def wait(self, code=0):
        """Wait for its end."""
        wait_for(lambda: self.code is not None)
        assert self.code == code, (self.code, self.said())

    def kill(self):
        self.process.kill()
        self.process.join()

    def end(self, code=130):
        """Ask it to end, as a supervisor does."""
        self.process.terminate()
        self.wait(code)


class Stream:
    """A stream from one server to another, which can be begun again and again."""

    def __init__(self, folder, source, target, name, checkpoint_rows=40):
        self.checkpoint_rows, self.source, self.target = checkpoint_rows, source, target
        self.name = name
        self.out, self.log = folder / f"run-{name}", folder / f"log-{name}"
        if target.scheme != "postgresql":  # answers have a table of their own
            target.create(f"told_{name}")

    def start(self, *more):
        return Command(
            self.log,
            *("stream", self.source.source_url(self.name), "--out", self.out, "--resume"),
            *("--to", self.target.url(f"told_{self.name}"), *QUICK, "--batch-rows", "16"),
            *("--checkpoint-rows", self.checkpoint_rows, "--checkpoint-seconds", 3600),
            *self.source.columns,
            *more,
        )

    def answers(self):
        """Return all answers so far, with their keys."""
        return self.target.read(f"told_{self.name}")

    def check(self, n, n_bad=0):
        """Check that all was answered, never in two ways, and rejected once; return answers."""
        pairs = self.answers()
        bad = [reject["record"] for reject in rejects(self.out)]
        assert len(bad) == len(set(bad)) == n_bad
        found = check_answers(pairs, n, bad)
        good = {f"d{i}" for i in range(n)} - {f"d{i}" for i in poisoned(n, n_bad)}
        assert {answer["id"] for answer in found.values()} == good
        document = bits(self.out)[1]
        assert (document["rows"], document["rejects"]) == (n - n_bad, n_bad)
        return pairs


def written(folder):
    """Return when a run made progress."""
    paths = [folder / name for name in ("order.jsonl", "state.safetensors")]
    return [path.stat().st_mtime_ns for path in paths if path.exists()]


def kill_often(stream, n_kills, rng, write, watch):
    """Kill a stream at random moments, then let it end.

    It follows its source, so it runs until it is killed, however fast the machine is. Before the
    last kill it has answered all there is, more than its checkpoint has: so some answers are given
    again. `write` returns how many records can be answered so far.
    """
    for attempt in range(n_kills):
        n_good = write(attempt)
        before, command = written(stream.out), stream.start("--follow")

        def reached(done, command=command):
            assert command.code is None, (command.code, command.said())
            return done()

        if attempt == n_kills - 1:
            done = partial(_answered, stream, n_good)
            wait_for(partial(reached, done), pause=0.1)
        elif rng.random() < 0.8:  # else at any moment, before it reads too
            done = partial(_progressed, stream, before)
            wait_for(partial(reached, done), pause=0.001)
        time.sleep(rng.uniform(0.0, 0.3))
        watch()
        reached(bool)
        command.kill()
    write(n_kills)
    stream.start().wait()


def _answered(stream, n_good):
    return len({key for key, _ in stream.answers()}) >= n_good


def _progressed(stream, before):
    return written(stream.out) != before


def file_bits(folder, n, n_bad):
    """Return the bits of a run over a file with the same records."""
    feed = folder / "feed.jsonl"
    feed.write_bytes(b"\n".join(rows(n, n_bad=n_bad)) + b"\n")
    Command(folder / "log-file", "fit", feed, "--out", folder / "file", *QUICK).wait()
    return bits(folder / "file")


def check_kills(server, folder, name, n_kills, seed, *, n=600, n_lanes=1, watch=lambda: None):
    """Kill a stream of n records, some of them bad; return how many answers were sent.

    To several lanes, messages come bit by bit: another reading would find another order.
    """
    n_bad, rng = 5, random.Random(seed)
    messages, bad = rows(n, n_bad=n_bad), poisoned(n, n_bad)

    def write(attempt):
        if n_lanes == 1:
            server.write(name, messages if attempt == 0 else [])
            return n - n_bad
        first, last = n * attempt // (n_kills + 1), n * (attempt + 1) // (n_kills + 1)
        server.write(name, messages[first:last], partition=lambda i: rng.randrange(n_lanes))
        return last - sum(i < last for i in bad)

    stream = Stream(folder, server, server, name, checkpoint_rows=40 if n_lanes == 1 else 100)
    kill_often(stream, n_kills, rng, write, watch)
    sent = len(stream.check(n, n_bad))
    if n_lanes == 1:
        expected = file_bits(folder, n, n_bad) if not (folder / "file").exists() else None
        assert bits(stream.out) == (expected or bits(folder / "file"))
    return sent
