"""The process that learns posted records: it follows the log and holds the lock of the run."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from bnpstream.runs.options import Pace
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.sources import Options
from bnpstream.storage import is_run

CHECKPOINT_SECONDS = 2.0
"""Seconds between two checkpoints, the longest that a request waits for one."""
PATIENCE = 60.0
"""Seconds allowed for the last checkpoint."""


class Learner:
    """The learning process, as the server sees it.

    Parameters
    ----------
    folder, log : Path
        The run directory, and the log it learns from.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        command = [sys.executable, "-m", "bnpstream.serve.learner", str(folder), str(log)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2)

    @property
    def ended(self) -> int | None:
        """Return the exit status of the process, or None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Ask for a last checkpoint, and wait for the process to end."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()


def learn(folder: Path, log: Path) -> None:
    """Follow a log until a signal arrives or the parent process has gone."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    options = Options() if is_run(folder) else Options(format="jsonl", id_field="id")
    feed = start(folder, RunOptions((str(log),), options, follow=True), resume=True)
    try:
        with Interrupts() as interrupts:
            pace = Pace(checkpoint_seconds=CHECKPOINT_SECONDS)
            feed.run(pace, interrupts, lambda status: None)
    finally:
        feed.close()


def _end_with(parent: int) -> None:
    """End this process, with a last checkpoint, once its parent has ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    learn(Path(sys.argv[1]), Path(sys.argv[2]))
