"""Runs that fail at their n-th call of the disk, for every n, and go on to the same bits.

``LD_PRELOAD=shim.so python fault_points.py FOLDER MODEL STEP`` forks a process for every STEP-th n,
and every error, until one goes through; then another that resumes. It says how many there were.
"""

import ctypes
import errno
import os
import signal
import sys
import traceback
from pathlib import Path
from shutil import rmtree

from killing import assert_same_run, write_feed

from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.sources import Options
from bnpstream.storage import RunError

KILLED = 0
ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EINTR": errno.EINTR, "kill": KILLED}
THROUGH, FAILED, BAD, UNREACHED = 0, 10, 11, 12
MODELS = {
    "growing": (Options(), ModelOptions(prefix_rows=60)),
    "window": (Options(hash_bits=8), ModelOptions(revisit=40, revisits=2)),
    "passes": (Options(hash_bits=8), ModelOptions(passes=2, alpha="0.3")),
}
SECONDS = 60


def feed(folder: Path, source: Path, model: str) -> None:
    """Feed all, or what is left."""
    about, options = MODELS[model]
    job = start(folder, RunOptions((str(source),), about, options), resume=True)
    try:
        with Interrupts() as interrupts:
            pace = Pace(batch_rows=50, checkpoint_rows=100)
            assert job.run(pace, interrupts, lambda _: None)
    finally:
        job.close()


def in_a_process(work) -> int:
    """Return how work, which may return a code, ends in a process of its own."""
    child = os.fork()
    if child == 0:
        code = BAD
        try:
            signal.alarm(SECONDS)
            code = work() or THROUGH
        except (RunError, OSError):
            code = FAILED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path, model: str, step: int) -> int:
    """Return how many points went wrong."""
    shim = ctypes.CDLL(None)
    shim.fault_count.restype = ctypes.c_long
    source, expected, run = folder / "feed.jsonl", folder / "expected", folder / "run"
    write_feed(source, 300, seed=5)
    feed(run, source, model)  # loops are compiled and written once
    shim.fault_arm(ctypes.c_long(0), 0)
    feed(expected, source, model)
    n_calls = shim.fault_count()
    n_points = n_bad = n_unreached = 0
    for name, error in ERRORS.items():
        for n in range(1, n_calls + 1, step):
            rmtree(run, ignore_errors=True)

            def armed(n: int = n, error: int = error) -> int:
                shim.fault_arm(ctypes.c_long(n), error)
                feed(run, source, model)
                return THROUGH if shim.fault_count() >= n else UNREACHED

            first = in_a_process(armed)
            if first == UNREACHED:  # a slow run may look at the clock and write more often
                n_unreached += 1
                continue
            allowed = (-signal.SIGKILL,) if error == KILLED else (THROUGH, FAILED)
            then = in_a_process(lambda: feed(run, source, model))
            n_points += 1
            try:
                assert first in allowed, f"ended with {first}"
                assert then == THROUGH, f"resumed, it ended with {then}"
                assert_same_run(run, expected)
            except (AssertionError, OSError) as problem:
                n_bad += 1
                print(f"{model}: {name} at call {n}: {problem}", flush=True)
    counts = f"{n_points} failed or killed, {n_unreached} not reached, {n_bad} bad"
    print(f"{model}: {n_calls} calls of the disk, {counts}")
    return n_bad


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])) > 0)
