"""Announces what will take long: compilation, and slow families."""

import logging
import warnings
from typing import Any

from numba.core import event

from bnpstream.likelihoods import Likelihood

logger = logging.getLogger("bnpstream")

SLOW_SECONDS = 5.0
"""Seconds per 1 000 rows from which a family counts as slow."""


class SlowFamilyWarning(UserWarning):
    """Rows will take long; another family would be faster."""


def warn_of_slowness(likelihood: Likelihood) -> None:
    """Warn, with an estimate and a way out, if rows will take long."""
    slowness = likelihood.slowness()
    if slowness is None or 1000.0 * slowness.seconds_per_row < SLOW_SECONDS:
        return
    seconds = f"{1000.0 * slowness.seconds_per_row:,.0f} s per 1,000 rows"
    warnings.warn(
        f"{slowness.reason}: about {seconds}, more while the scale is learnt; {slowness.way_out}",
        SlowFamilyWarning,
        stacklevel=2,
    )


class CompilationNotice(event.Listener):
    """Logs one warning when the first loop of this package is compiled, not read from disk."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        """Note the start of a compilation."""
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
    """Announce the first compilation of this process."""
    event.register("numba:compile", CompilationNotice())  # type: ignore[no-untyped-call]
