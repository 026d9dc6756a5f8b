"""What the benchmarks share: clocks, spreads, memory, fresh processes, and JSON."""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MIB = 2**20
PAGE = resource.getpagesize()


class Spread(NamedTuple):
    """Median, least and largest of some measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Any) -> "Spread":
        return cls(float(np.median(values)), float(np.min(values)), float(np.max(values)))

    def show(self, form: str = ".2f") -> str:
        return f"{self.median:{form}} ({self.low:{form}}..{self.high:{form}})"


def cpu_seconds(job: Callable[[], object]) -> float:
    """Return the seconds that this thread worked: other work on the machine counts little."""
    start = time.thread_time()
    job()
    return time.thread_time() - start


def resident_mib() -> float:
    """Return the memory that this process holds now (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / MIB


def peak_mib() -> float:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> None:
    """Let `recent_peak_mib` start anew (Linux); `peak_mib` starts anew with it."""
    Path("/proc/self/clear_refs").write_text("5")


def recent_peak_mib() -> float:
    """Return the most memory that this process has held since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def machine() -> dict[str, Any]:
    """Return what figures depend on: cores, and how busy they are with other work."""
    return {"cores": os.cpu_count(), "load": [round(load, 2) for load in os.getloadavg()]}


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark takes; the description is a docstring."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number to this file")
    return parser


def save(results: dict[str, Any], path: Path | None) -> None:
    """Write the results, and how busy the machine is, if a file is named."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": machine()} | results, indent=2) + "\n")


def in_fresh_process(script: str, part: str) -> Any:
    """Return what `script --part PART` reports in a process of its own, so that memory is its own.

    The part prints one line of JSON (see `report`).
    """
    command = [sys.executable, script, "--part", part]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def report(result: Any) -> None:
    """Hand a result to `in_fresh_process`."""
    print(json.dumps(result))
