"""Spoilt files for every reader, as fast as they are read.

``python fuzzing.py CASES [SEED]`` makes so many, or goes on for ``MINUTES`` where that is given as
``10m``. A process that was forked reads one after the other; if a file ends it, or takes for ever,
another goes on after it. What went wrong is kept in ``fuzz-found``, a few of each kind.
"""

import mmap
import os
import random
import resource
import signal
import struct
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from mutations import CORPUS, Case, case_of, options_for
from naive_readers import check_naive
from readings import check_once, check_unpacked, reading

CPU_SECONDS, SECONDS = 10, 120
"""Longer than this is never."""
MOST_BYTES = 2 << 30
"""Bytes beyond those of a process that has read the corpus: a file of a kilobyte needs none."""
NAIVE = 4
"""Every so many files are read by a naive reader, too, if there is one."""
KEPT = 3
FOUND = Path("fuzz-found")
SEED_STEP = 10**9


class Finds:
    """Files that went wrong, by kind."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()

    def keep(self, number: int, case: Case, kind: str, told: str) -> None:
        self.kinds[kind] += 1
        if self.kinds[kind] > KEPT:
            return
        FOUND.mkdir(exist_ok=True)
        path = FOUND / f"{number}-{case.name}"
        path.write_bytes(case.data)
        path.with_name(f"{path.name}.why").write_text(f"{case.options}\n{told}")
        print(f"{path}: {kind}", flush=True)


def kind_of(error: BaseException) -> str:
    """Return what tells an error from others: its type and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    cause = error.__cause__
    inner = "" if cause is None else f" < {kind_of(cause)}"
    return f"{type(error).__name__} at {Path(frames[-1].filename).name}:{frames[-1].lineno}{inner}"


def work(folder: Path, numbers: range, at: mmap.mmap) -> Counter[str]:
    """Check cases; the number of the one that is looked at is in `at`."""
    finds, most = Finds(), n_bytes() + MOST_BYTES
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "Reading `.npy` or `.npz` file")  # a header of Python 2
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for done, number in enumerate(numbers):
        at[:8] = struct.pack("q", done)
        if n_bytes() > most - MOST_BYTES // 2:  # pyarrow keeps what it once had
            return finds.kinds
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        signal.alarm(SECONDS)
        case = case_of(number)
        path = folder / case.name
        path.write_bytes(case.data)
        try:
            whole = check_once(path, case.options, random.Random(-number))
            if whole.error is None and number // 2 % NAIVE == 0:
                check_naive(path, case.options)
            if case.unpacked is not None:
                check_unpacked(path, case.unpacked, case.options, whole)
        except Exception as error:
            finds.keep(number, case, kind_of(error), traceback.format_exc())
        path.unlink()
    at[:8] = struct.pack("q", len(numbers))
    return finds.kinds


def n_bytes() -> int:
    """Return how many bytes of addresses this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def in_a_process(folder: Path, numbers: range, at: mmap.mmap) -> tuple[int, int]:
    """Return how a process that checks cases ended, and how many were found by it."""
    at[:8] = struct.pack("q", 0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            found = work(folder, numbers, at)
            at[8:16] = struct.pack("q", found.total())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, struct.unpack("q", at[8:16])[0] if code == 0 else 0


def soak(n_cases: int, minutes: float, seed: int) -> int:
    """Check so many cases, or for some minutes; return how many went wrong."""
    for path in CORPUS:
        reading(path, 3, options_for(path.name))  # loops are compiled once
    until, began = time.monotonic() + 60 * minutes, time.monotonic()
    first, done, n_bad = seed * SEED_STEP, 0, 0
    shared, at = Path("/dev/shm"), mmap.mmap(-1, 16)
    with TemporaryDirectory(dir=shared if shared.is_dir() else None) as name:
        while done < n_cases and time.monotonic() < until:
            numbers = range(first + done, first + min(n_cases, done + 10_000))
            code, found = in_a_process(Path(name), numbers, at)
            behind = struct.unpack("q", at[:8])[0]
            n_bad, done = n_bad + found, done + behind
            if code != 0:
                number = numbers[behind]
                Finds().keep(number, case_of(number), f"ended with {code}", "")
                n_bad, done = n_bad + 1, done + 1
    seconds = time.monotonic() - began
    print(f"{done} files, {n_bad} bad, {seconds:.0f} s; seed {seed}")
    return n_bad


if __name__ == "__main__":
    told = sys.argv[1]
    limits = (10**12, float(told[:-1])) if told.endswith("m") else (int(told), float("inf"))
    sys.exit(soak(*limits, int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
