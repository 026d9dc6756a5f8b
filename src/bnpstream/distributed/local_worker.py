"""What worker processes on this machine load first.

Ctrl-C in a terminal reaches every process there. The driver heeds it, at the next good moment;
workers go on until then, and end with the driver.
"""

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Do not end by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
