"""Tries again while a broker does not answer."""

import time
import warnings
from collections.abc import Callable
from typing import TypeVar

from bnpstream.sources.brokers.broker import DownError

T = TypeVar("T")

SECONDS = 30.0
"""Seconds to wait for a broker that does not answer; leader elections take less."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two tries; they double."""


class Patience:
    """Tries again, with longer and longer pauses.

    Parameters
    ----------
    name : object
        What to wait for, for messages.
    for_ever : bool
        Whether to never give up.
    pause : callable
        Waits for some seconds; returns True if the wait is to be given up.
    """

    def __init__(self, name: object, *, for_ever: bool, pause: Callable[[float], bool]) -> None:
        self.name, self.for_ever, self._pause = name, for_ever, pause

    def __call__(self, attempt: Callable[[], T], again: Callable[[], object]) -> T | None:
        """Return the result of an attempt, None if the wait was given up; DownError if time is up.

        `again` is called before each further attempt.
        """
        began, length = time.monotonic(), FIRST_PAUSE
        retries = 0
        while True:
            try:
                if retries:
                    again()
                return attempt()
            except DownError as error:
                if not self.for_ever and time.monotonic() - began >= SECONDS:
                    raise DownError(
                        f"{self.name}: does not answer: {error}; continue later with --resume, or "
                        "give --wait to wait for it"
                    ) from error
                if retries == 0:
                    limit = "" if self.for_ever else f" for {SECONDS:g} seconds"
                    warnings.warn(
                        f"{self.name}: does not answer: {error}; trying again{limit}", stacklevel=2
                    )
            retries += 1
            if self._pause(length):
                return None
            length = min(2.0 * length, LONGEST_PAUSE)
