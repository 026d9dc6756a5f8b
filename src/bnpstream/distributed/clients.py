"""Getting hold of a Dask cluster: one that runs somewhere, or one made here."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
from distributed import Client, LocalCluster

PATIENCE = 5.0
"""Seconds until a scheduler must have answered, and one worker must be there."""
WITHOUT_PROFILER = {"distributed.worker.profile.enabled": False}
"""Of Dask: its workers are interrupted a hundred times a second, which costs some per cent."""


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """Connect to a cluster for the length of a ``with`` block.

    Parameters
    ----------
    address : str
        ``"tcp://HOST:PORT"`` of a scheduler that is running, or ``"local:2"`` for two worker
        processes on this machine, of one thread each, which end with the block. Dask's profiler
        is off in these.

    Yields
    ------
    client : distributed.Client
        Its ``dashboard_link`` is where to look at what goes on.

    Raises
    ------
    ConnectionError
        If nobody answers, or the scheduler has no worker.
    """
    local = re.fullmatch(r"local:([1-9]\d*)", address)
    if local is not None:
        # Port 0 is any free one: a second cluster must not complain about the first.
        with (
            dask.config.set(WITHOUT_PROFILER),
            LocalCluster(
                n_workers=int(local[1]),
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                preload=[__name__],
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
    elif "://" in address:
        with _reach(address) as client:
            yield client
    else:
        raise ValueError(
            f'a cluster is "tcp://HOST:PORT" or, on this machine, such as "local:2", '
            f"got {address!r}"
        )


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
    """Let a worker process on this machine, which loads this module first, not end by Ctrl-C.

    Ctrl-C in a terminal reaches every process there. The driver heeds it, at the next good moment;
    workers go on until then, and end with the driver.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
