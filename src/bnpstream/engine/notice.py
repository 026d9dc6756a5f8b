"""Saying what takes long before it does: compilation, and families that are slow by nature."""

import logging
import warnings
from typing import Any

from numba.core import event

from bnpstream.likelihoods import Likelihood

logger = logging.getLogger("bnpstream")

SLOW_SECONDS = 5.0
"""Per 1 000 rows: from here on a family is said to be slow."""


class SlowFamilyWarning(UserWarning):
    """Rows will take long, and another family would not."""


def warn_of_slowness(likelihood: Likelihood) -> None:
    """Warn, with an estimate and a way out, if rows are going to take long."""
    slowness = likelihood.slowness()
    if slowness is None or 1000.0 * slowness.seconds_per_row < SLOW_SECONDS:
        return
    seconds = f"{1000.0 * slowness.seconds_per_row:,.0f} s per 1,000 rows"
    warnings.warn(
        f"{slowness.reason}: about {seconds}, more while its scale is learnt; {slowness.way_out}",
        SlowFamilyWarning,
        stacklevel=2,
    )


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
                "bnpstream compiles its loops for this machine: about 15 seconds, once; they are "
                "cached on disk (bnpstream warmup compiles ahead of time)"
            )

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def announce_compilation() -> None:
    """Have the first compilation of this process announced."""
    event.register("numba:compile", CompilationNotice())  # type: ignore[no-untyped-call]
