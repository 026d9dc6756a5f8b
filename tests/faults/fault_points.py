"""Runs that fail at their n-th call of the disk, or allocation, and go on to the same bits.

``LD_PRELOAD=shim.so python fault_points.py FOLDER MODEL [MOST]`` forks a process for every n, or
for about MOST of them, and every error; then another that resumes. It says how many there were.
"""

import ctypes
import errno
import mmap
import signal
import struct
import sys
from pathlib import Path
from shutil import rmtree

from fault_runs import (
    FAILED,
    THROUGH,
    UNREACHED,
    check_same,
    feed,
    in_a_process,
    prepared,
    shim,
    spread,
)

KILLED = 0
ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EINTR": errno.EINTR, "kill": KILLED}
MEMORY = "ENOMEM"
MOST_ALLOCATIONS = 200
"""Points at which an allocation fails where every call of the disk does."""
ENDS = dict.fromkeys(ERRORS, (THROUGH, FAILED)) | {"kill": (-signal.SIGKILL,)}
ENDS[MEMORY] = (THROUGH, FAILED, -signal.SIGABRT)
"""How a run may end. Libraries written in Rust abort where there is no memory."""


def main(folder: Path, model: str, most: int) -> int:
    """Return how many points went wrong."""
    calls, run = shim(), folder / "run"
    source, expected = prepared(folder, model)
    counts = mmap.mmap(-1, 16)

    def armed(name: str, n: int) -> int:
        if name == MEMORY:
            calls.fault_arm_memory(ctypes.c_long(n))
        else:
            calls.fault_arm(ctypes.c_long(n), ERRORS[name])
        try:
            feed(run, source, model)
        finally:
            found = calls.fault_count(), calls.fault_memory_count()
            calls.fault_arm(ctypes.c_long(0), 0)
            calls.fault_arm_memory(ctypes.c_long(0))
            counts[:] = struct.pack("qq", *found)
        return THROUGH if found[name == MEMORY] >= n else UNREACHED

    totals = {}
    for name in ("EIO", MEMORY):
        rmtree(run, ignore_errors=True)
        assert in_a_process(lambda name=name: armed(name, 2**62)) == UNREACHED
        check_same(run, expected)
        totals[name] = struct.unpack("qq", counts[:])[name == MEMORY]
    n_points = n_bad = n_unreached = 0
    for name in (*ERRORS, MEMORY):
        is_memory = name == MEMORY
        n_calls = totals[MEMORY if is_memory else "EIO"]
        for n in spread(n_calls, most or MOST_ALLOCATIONS * is_memory):
            rmtree(run, ignore_errors=True)
            first = in_a_process(lambda name=name, n=n: armed(name, n))
            if first == UNREACHED:  # a slow run may look at the clock and write more often
                n_unreached += 1
                continue
            then = in_a_process(lambda: feed(run, source, model))
            n_points += 1
            try:
                assert first in ENDS[name], f"ended with {first}"
                assert then == THROUGH, f"resumed, it ended with {then}"
                check_same(run, expected)
            except (AssertionError, OSError) as problem:
                n_bad += 1
                print(f"{model}: {name} at call {n}: {problem}", flush=True)
    made = f"{totals['EIO']} calls of the disk, {totals[MEMORY]} allocations"
    print(f"{model}: {made}: {n_points} failed, {n_unreached} not reached, {n_bad} bad")
    return n_bad


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2], int((sys.argv[3:] or ["0"])[0])) > 0)
