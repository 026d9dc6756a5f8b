"""Saying that loops are being compiled, which takes a while the first time."""

import logging
from typing import Any

from numba.core import event

logger = logging.getLogger("bnpstream")


class CompilationNotice(event.Listener):
    """Logs one warning when the first of this package's loops is compiled, not read from disk."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        """Take note of a compilation that starts."""
        loop = event.data["dispatcher"].py_func
        if not self.said and loop.__module__.startswith("bnpstream."):
            self.said = True
            logger.warning(
                "bnpstream compiles its loops for this machine: some 20 seconds, once; "
                "they are kept on disk for the next time"
            )

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def announce_compilation() -> None:
    """Have the first compilation of this process announced."""
    event.register("numba:compile", CompilationNotice())  # type: ignore[no-untyped-call]
