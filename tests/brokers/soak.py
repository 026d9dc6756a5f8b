"""Kill streams between brokers at so many random moments of each kind, with a server beside them.

    PYTHONPATH=tests python tests/brokers/soak.py KILLS SEED [KIND...]

Kinds are kafka-1 and kafka-4 (partitions), redis, nats and postgresql. Every fifth kill is at any
moment of a process, the others come soon after it has written something.
"""

import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from kafka_cluster import cluster
from processes import check_kills
from servers import running

from serving import serving

KINDS = ("kafka-1", "kafka-4", "redis", "nats", "postgresql")
KILLS_OF_A_RUN = 6
PATHS = ("/", "/now", "/metrics", "/clusters", "/healthz")


@contextmanager
def broker(kind, folder):
    """Run a broker."""
    if kind.startswith("kafka"):
        with cluster() as own:
            yield own
    else:
        (folder / "server").mkdir()
        with running(kind, folder / "server") as own:
            yield own


def soak(kind, n_kills, seed, folder):
    """Kill streams of a kind so often; return kills, runs, and answers sent and needed."""
    killed = runs = sent = 0
    n_lanes = 4 if kind == "kafka-4" else 1
    with broker(kind, folder) as own:
        while killed < n_kills:
            name = f"heard{runs}"
            with serving(folder / f"run-{name}", ready=False) as served:

                def watch(served=served):
                    for path in PATHS:
                        assert served.ask(path)[0] in (200, 503), path

                wanted = min(KILLS_OF_A_RUN, n_kills - killed)
                found = check_kills(
                    own, folder, name, wanted, seed + runs, n_lanes=n_lanes, watch=watch
                )
            killed, sent, runs = killed + wanted, sent + found, runs + 1
    return killed, runs, sent


def main(n_kills, seed, kinds):
    for kind in kinds:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            killed, runs, sent = soak(kind, n_kills, seed, Path(name))
        print(
            f"{kind}: {killed} kills in {runs} runs of 600 records, {sent} answers sent for "
            f"{595 * runs}; {time.monotonic() - began:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or KINDS)
