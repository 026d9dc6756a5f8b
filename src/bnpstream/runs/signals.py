"""Signals that ask a job to stop: obeyed between batches, or at once while it waits for input."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class InterruptedJobError(Exception):
    """A signal asked to stop while the job waited."""


class Interrupts:
    """Turns SIGINT and SIGTERM into requests to stop at the next good moment.

    Attributes
    ----------
    requested : bool
        Whether a signal has come.
    """

    def __init__(self) -> None:
        self.requested = False
        self._waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:  # second signal: stop at once, without a last checkpoint
            raise KeyboardInterrupt
        self.requested = True
        if self._waiting:
            raise InterruptedJobError

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a signal stop the code inside at once; that code must be safe to interrupt."""
        self._waiting = True
        try:
            if self.requested:
                raise InterruptedJobError
            yield
        finally:
            self._waiting = False
