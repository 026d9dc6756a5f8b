"""Ctrl-C from outside at random moments: calls of a model, and commands, each in its own process.

``python interrupting.py TIMES [SEED]`` interrupts every kind of work so often. What is interrupted
ends by KeyboardInterrupt, a command with code 130 and without a traceback; a model then equals the
one after some whole number of rows, goes on to the bits of one that was left alone, and so does a
run. Moments are drawn between nothing and a little more than the work took before.
"""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from fault_runs import check_same
from killing import write_feed

from bnpstream import DirichletMultinomial, DocumentMixture, StreamingMixture
from bnpstream.cli import app
from bnpstream.datasets import bars

X = bars(n_images=1500, seed=4).counts
DOCUMENTS = [{f"w{j}": int(n) for j, n in enumerate(row) if n} for row in X.toarray()]
WORDS = DirichletMultinomial(0.1)
MODELS = {
    "partial_fit": (lambda: StreamingMixture("nig", WORDS), X),
    "window": (lambda: StreamingMixture("dp", WORDS, revisit=50, merge_threshold=0.0), X[:600]),
    "learnt": (lambda: DocumentMixture(prefix_rows=300), DOCUMENTS),
}
Work = Callable[[Callable[[], None]], int]
"""Something to interrupt; it calls what it is given when it begins."""
INTERRUPTED, PATIENCE = 130, 300
N_RECORDS = 400
ENOUGH = 10
"""Signals of which some must come in time."""


def no_more() -> None:
    """Let no signal come that was not there yet."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def said(model) -> tuple:
    """Return every byte that a model would be saved with."""
    arrays, document = model.to_tensors()
    kept = {name: part for name, part in document["stream"].items() if name != "epochs"}
    return json.dumps(kept, sort_keys=True), {name: x.tobytes() for name, x in arrays.items()}


def model_work(name: str) -> Work:
    make, rows = MODELS[name]
    expected = said(make().partial_fit(rows))

    def work(begin: Callable[[], None]) -> int:
        model, code = make(), 0
        try:
            begin()
            model.partial_fit(rows)
            no_more()
        except KeyboardInterrupt:
            code = INTERRUPTED
        n_rows = X[: len(DOCUMENTS)].shape[0] if rows is DOCUMENTS else rows.shape[0]
        n = 0 if model._stream is None else model.n_samples_seen_
        assert code or n == n_rows, f"{n} rows without an interrupt"
        if 0 < n < n_rows:
            assert said(model) == said(make().partial_fit(rows[:n])), f"not the model of {n} rows"
        if n < n_rows:
            model.partial_fit(rows[n:])
        assert said(model) == expected, f"after {n} rows it came to another end"
        return code

    return work


def predict_work() -> Work:
    model = StreamingMixture("nig", WORDS).partial_fit(X)
    expected, answers = said(model), model.predict_proba(X)

    def work(begin: Callable[[], None]) -> int:
        code = 0
        try:
            begin()
            model.predict_proba(X)
            no_more()
        except KeyboardInterrupt:
            code = INTERRUPTED
        assert said(model) == expected
        np.testing.assert_array_equal(model.predict_proba(X), answers)
        return code

    return work


def command_code(*arguments: object) -> tuple[int, str, str]:
    """Run a command as its process would; return its code, and what it has said."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            app([str(one) for one in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
    said_out, said_errors = (one.buffer.getvalue().decode() for one in (out, errors))
    return code, said_out, said_errors


def numbers(text: str) -> object:
    """Return what a command has printed, without times."""
    times = ("seconds", "created", "rows_per_second")
    return json.loads(text, object_hook=lambda one: {k: one[k] for k in one if k not in times})


def command_work(folder: Path, name: str) -> Work:
    feed, sound, run = folder / "feed.jsonl", folder / "sound", folder / "run"
    model = ("--hash-bits", "8", "--alpha", "0.3", "--quiet")
    fit = ("fit", feed, *model, "--passes", "3", "--checkpoint-rows", "100", "--resume", "--out")
    if not sound.exists():
        write_feed(feed, N_RECORDS, seed=7)
        assert command_code(*fit, sound)[0] == 0
    grid = ("--prior", "dp", "--concentration", "1", "--alpha", "0.1", "--alpha", "0.5")
    arguments: tuple = {
        "fit": (*fit, run),
        "evaluate": ("evaluate", sound, feed, "--json"),
        "tune": ("tune", feed, "--hash-bits", "8", "--rows", "200", *grid, "--json"),
    }[name]

    expected = None if name == "fit" else numbers(command_code(*arguments)[1])

    def work(begin: Callable[[], None]) -> int:
        shutil.rmtree(run, ignore_errors=True)
        try:
            begin()
            code, _, errors = command_code(*arguments)
            no_more()
        except KeyboardInterrupt:  # before the command has begun, or after its end
            code, errors = INTERRUPTED, ""
        assert code in (0, INTERRUPTED), f"ended with {code}: {errors}"
        assert "Traceback" not in errors, errors
        again, out, errors = command_code(*arguments)
        assert again == 0, errors
        if name == "fit":
            check_same(run, sound)
        else:
            assert numbers(out) == expected
        return code

    return work


def interrupted(work: Work, after: float) -> tuple[int, float]:
    """Return how work ends in a process of its own that is interrupted, and the seconds it took."""
    no_more()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1

        def begin() -> None:
            os.write(writing, b".")
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

        try:
            code = work(begin)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    began = time.monotonic()
    time.sleep(after)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGINT)
    until = began + PATIENCE
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), time.monotonic() - began
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL, PATIENCE


def main(times: int, seed: int) -> int:
    """Return how often it went wrong."""
    rng, n_bad = random.Random(seed), 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    with TemporaryDirectory() as name:
        works = {one: model_work(one) for one in MODELS} | {"predict": predict_work()}
        for one in ("fit", "evaluate", "tune"):
            works[one] = command_work(Path(name), one)
        for one, work in works.items():
            n_stops = n = 0
            began = time.monotonic()
            assert work(lambda: None) == 0
            took = time.monotonic() - began
            for _ in range(times):
                n += 1
                after = rng.uniform(0.0, 0.5 * took)  # the rest are checks
                code, seconds = interrupted(work, after)
                took = 0.9 * took + 0.1 * min(seconds, 2 * took)
                n_stops += code == INTERRUPTED
                if code not in (0, INTERRUPTED):
                    n_bad += 1
                    print(f"{one}: interrupted after {after:.4f} s: ended with {code}", flush=True)
            print(f"{one}: {n} signals, {n_stops} interrupts", flush=True)
            if n_stops == 0 and times >= ENOUGH:
                n_bad += 1
                print(f"{one}: no signal has interrupted anything", flush=True)
    print(f"{n_bad} bad; seed {seed}")
    return n_bad


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])) > 0)
