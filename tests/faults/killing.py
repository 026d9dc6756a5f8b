"""Real processes of the command line that are killed at random moments and started again."""

import gc
import json
import os
import random
import signal
import subprocess
import sys
import traceback
import warnings
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bnpstream.cli import app
from bnpstream.storage import read_tensors

TIMES = ("seconds", "marks")
"""What differs between two runs of the same stream: the clock, and how long the trace is."""
WORDS = [f"w{j}" for j in range(300)]


def write_feed(path, n_records, seed):
    """Write JSON lines, some of which are broken; return the ids of the sound ones."""
    rng = random.Random(seed)
    ids = []
    with path.open("w") as file:
        for i in range(n_records):
            if rng.random() < 0.02:
                file.write(rng.choice(['{"id": "x', "[]", '{"id": "y", "text": 3}', "\xff"]) + "\n")
                continue
            topic = 30 * rng.randrange(10)
            text = " ".join(WORDS[topic + rng.randrange(30)] for _ in range(rng.randrange(4, 30)))
            file.write(json.dumps({"id": f"d{i}", "text": text}) + "\n")
            ids.append(f"d{i}")
    return ids


def command(name, *options):
    """Return the command line of a bnpstream process."""
    return [sys.executable, "-m", "bnpstream", name, *map(str, options)]


def started(*words, **pipes):
    """Return a command that begins in an interpreter of its own."""
    return subprocess.Popen(command(*words), **pipes)


def forked(name, *options, **pipes):
    """Return a command that begins at once, as a `subprocess.Popen`; it must use no threads."""
    _imported()
    return fork(partial(app, [name, *map(str, options)], prog_name="bnpstream"), **pipes)


@cache
def _imported():
    """Let this process import what commands import, and load their loops."""
    with TemporaryDirectory() as name:
        feed = Path(name, "feed.jsonl")
        write_feed(feed, 60, seed=0)
        with suppress(SystemExit):
            app(["fit", str(feed), "--out", str(Path(name, "run")), "--quiet"])


def fork(work, **pipes):
    """Return a fork of this process that does some work.

    Its code is what the work returns or exits with. It never comes to what Popen would execute.
    """
    return subprocess.Popen(["fork"], preexec_fn=partial(end_with, work), **pipes)


def end_with(work):
    """Do some work, and be nothing else of what this process was."""
    gc.freeze()  # files of the tests are closed once
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.resetwarnings()  # as an interpreter begins: in tests they are errors
    for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", kind)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    code = 1
    try:
        code = work()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(int(code or 0))


def run_to_end(words, seed, *, stdin=None, stdout=None, most_kills=3, longest=6.0, begin=forked):
    """Run a command, kill it at random moments, and start it again until it has ended by itself.

    Return how often it was killed.
    """
    rng = random.Random(seed)
    kills = 0
    while True:
        with ExitStack() as files:
            process = begin(
                *words,
                stdin=None if stdin is None else files.enter_context(stdin.open("rb")),
                stdout=None if stdout is None else files.enter_context(stdout.open("ab")),
                stderr=subprocess.PIPE,
            )
        patience = rng.uniform(0.0, longest) if kills < most_kills else None
        try:
            _, errors = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        assert process.returncode == 0, errors.decode()
        return kills


def assert_same_run(one, other):
    """Two run directories hold the same state, bit for bit, the same history, the same rejects."""
    here, there = (read_tensors(Path(run, "state.safetensors")) for run in (one, other))
    for document in (here.document, there.document):
        for name in TIMES:
            del document[name]
    assert here.document == there.document
    assert here.arrays.keys() == there.arrays.keys()
    for name, array in here.arrays.items():
        assert array.tobytes() == there.arrays[name].tobytes(), name
    for name in ("lineage.jsonl", "rejects.jsonl"):
        assert Path(one, name).read_bytes() == Path(other, name).read_bytes(), name


def read_answers(path):
    """Return the answers by record: a broken line is one that a killed process left behind."""
    answers = {}
    for line in path.read_bytes().splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        answers.setdefault(answer["record"], answer)
    return answers
