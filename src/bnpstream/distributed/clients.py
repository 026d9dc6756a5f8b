"""Connects to a Dask cluster, running or started here."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
from distributed import Client, LocalCluster

PATIENCE = 5.0
"""Seconds within which a scheduler must answer and have a worker."""
WITHOUT_PROFILER = {"distributed.worker.profile.enabled": False}
"""Dask's profiler interrupts workers a hundred times a second, which costs some per cent."""


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """Connect to a cluster within a ``with`` block.

    Parameters
    ----------
    address : str
        ``"tcp://HOST:PORT"`` of a running scheduler, or ``"local:2"`` for two worker processes on
        this machine, with one thread each, which end with the block. Dask's profiler is off in
        these.

    Yields
    ------
    client : distributed.Client
        Its ``dashboard_link`` shows what is going on.

    Raises
    ------
    ConnectionError
        If the scheduler does not answer, or has no workers.
    """
    local = re.fullmatch(r"local:([1-9]\d*)", address)
    if local is not None:
        # Port 0 is any free one, so that a second cluster does not complain about the first.
        with (
            dask.config.set(WITHOUT_PROFILER),
            _workers(int(local[1])) as cluster,
            Client(cluster) as client,
        ):
            yield client
    elif "://" in address:
        with _reach(address) as client:
            yield client
    else:
        raise ValueError(
            f'give a cluster as "tcp://HOST:PORT" or, on this machine, as "local:2", for example; '
            f"got {address!r}"
        )


def _workers(n: int) -> LocalCluster:
    """Return worker processes on this machine."""
    try:
        return LocalCluster(
            n_workers=n,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            preload=[__name__],
        )
    except RuntimeError as error:
        raise ConnectionError(f"Dask could not start workers on this machine: {error}") from error


def _reach(address: str) -> Client:
    """Return a client of a scheduler that has at least one worker."""
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address}: start one there (dask scheduler), or give "
            "local:2 for two workers on this machine"
        ) from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        client.close()
        raise ConnectionError(
            f"the Dask scheduler at {address} has no workers: start some (dask worker {address})"
        ) from error
    return client


def dask_setup(worker: Any) -> None:
    """Make a worker process on this machine, which loads this module first, ignore Ctrl-C.

    Ctrl-C in a terminal reaches every process there. The driver stops at the next good moment;
    workers continue until then, and end with the driver.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
