"""Clusters of worker processes for tests, and how to lose a worker."""

import os
import signal
from contextlib import contextmanager

from distributed import Client, LocalCluster


@contextmanager
def local_client(n_workers=2):
    """Yield a client of a new cluster of single-threaded worker processes."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def kill_worker(client, number=0):
    """Kill one worker process; its nanny starts another one."""
    workers = client.run(os.getpid)
    os.kill(workers[sorted(workers)[number]], signal.SIGKILL)
