"""Ctrl-C while a posterior changes: obeyed between two rows, when nothing is half-done.

Python raises KeyboardInterrupt between any two of its instructions: an event could be lost, or a
row could be in the posterior but not in the window.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

Handler = Callable[[int, FrameType | None], Any]


class deferred:  # noqa: N801  (used like a function)
    """Hold back SIGINT while the code inside runs; a second one is obeyed at once.

    A signal held back goes to the previous handler, at the end or where the outermost block calls
    `heed`. Only the main thread gets signals: in others nothing changes.

    Examples
    --------
    >>> import signal
    >>> try:
    ...     with deferred():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("nothing is half-done")
    ... except KeyboardInterrupt:
    ...     print("then it stops")
    nothing is half-done
    then it stops
    """

    depth: ClassVar[int] = 0
    pending: ClassVar[bool] = False
    before: ClassVar[Handler | None] = None

    def __enter__(self) -> None:
        self._holds = threading.current_thread() is threading.main_thread()
        if not self._holds:
            return
        cls = type(self)
        if cls.depth == 0:
            handler = signal.getsignal(signal.SIGINT)
            if not callable(handler):  # ignored, or the end of the process: leave it alone
                self._holds = False
                return
            cls.before, cls.pending = handler, False
            signal.signal(signal.SIGINT, _note)
        cls.depth += 1

    def __exit__(self, *error: object) -> None:
        if not self._holds:
            return
        cls = type(self)
        cls.depth -= 1
        if cls.depth == 0:
            signal.signal(signal.SIGINT, cls.before)
            _deliver()


def heed() -> None:
    """Let a signal that was held back take effect, if only the caller's block holds it."""
    if (
        deferred.pending
        and deferred.depth == 1
        and threading.current_thread() is threading.main_thread()
    ):
        _deliver()


def _note(number: int, frame: FrameType | None) -> None:
    if deferred.pending:
        _deliver()
    deferred.pending = True


def _deliver() -> None:
    if deferred.pending and deferred.before is not None:
        deferred.pending = False
        deferred.before(signal.SIGINT, None)
