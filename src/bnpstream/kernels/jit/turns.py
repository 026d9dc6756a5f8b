"""Processes that need the same loop: one compiles it, and the others wait for it.

Workers of a cluster, or commands that are started together, would each compile what all of them
need. The system lets go of a lock when its process ends; where files cannot be locked, all compile.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 120.0
"""Seconds after which a process compiles for itself: longer than any loop takes."""
PAUSE = 0.05


class Turn:
    """The right to compile a loop, which one process has at a time."""

    def __init__(self) -> None:
        self._taken: tuple[Path, int] | None = None

    def take(self, path: Path) -> None:
        """Wait for it; who has it for one loop compiles another as part of that one."""
        if self._taken is not None:
            return
        file, end = os.open(path, os.O_CREAT | os.O_RDWR, 0o666), time.monotonic() + PATIENCE
        try:
            while self._taken is None and time.monotonic() < end:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._taken = path, file
                except BlockingIOError:
                    time.sleep(PAUSE)
        finally:
            if self._taken is None:
                os.close(file)

    def end(self, path: Path) -> None:
        """Let the next process go on, if this is the loop that the turn was for."""
        if self._taken is not None and self._taken[0] == path:
            file, self._taken = self._taken[1], None
            path.unlink(missing_ok=True)
            fcntl.flock(file, fcntl.LOCK_UN)  # a fork has the same lock
            os.close(file)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep other processes out meanwhile."""
    with path.open("ab") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
