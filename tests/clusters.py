"""Clusters of worker processes for tests, and how to lose a worker."""

import os
import signal
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

# Workers are forked from a process that has imported everything: starting one takes a twentieth of
# a second of CPU time instead of three. Those of `bnpstream fit --dask local:N`, a command in a
# process of its own, are started as anywhere.
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
get_mp_context().set_forkserver_preload(["distributed", "pytest", "bnpstream.distributed.worker"])


@contextmanager
def local_client(n_workers=2, *, processes=True):
    """Yield a client of a new cluster of single-threaded workers."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def kill_worker(client, number=0):
    """Kill one worker process, whose nanny starts another one; return its number."""
    workers = client.run(os.getpid)
    victim = workers[sorted(workers)[number]]
    os.kill(victim, signal.SIGKILL)
    return victim
