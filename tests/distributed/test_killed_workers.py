import os
import random
import signal
import time
from threading import Timer

import pytest

from bnpstream import PitmanYor
from bnpstream.datasets import synthetic_corpus
from bnpstream.distributed import fit_stream, stream_partitions
from clusters import local_client
from distributed_streams import blocks, fingerprint, learning

RUNS, N_ROWS, PART = 10, 24_000, 800


@pytest.fixture(scope="module")
def undisturbed():
    """Yield a client, partitions, the posterior that they lead to, and seconds a partition."""
    prior = PitmanYor(4.0, discount=0.4)
    rows = blocks(synthetic_corpus(N_ROWS, 500, 60.0, 20.0, prior, seed=7).counts, PART)
    with local_client() as client:
        fit_stream(client, rows[:4], learning())  # compile
        began = time.perf_counter()
        expected = fit_stream(client, rows, learning(), staleness=2).model
        yield client, rows, expected, (time.perf_counter() - began) / len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(RUNS))
def test_a_random_worker_killed_at_a_random_moment_changes_nothing(undisturbed, seed):
    client, rows, expected, seconds = undisturbed
    client.wait_for_workers(2, timeout=300)
    rng = random.Random(seed)
    victim = rng.choice(sorted(client.run(os.getpid).values()))
    killer = Timer(rng.uniform(0.0, 2.0) * seconds, os.kill, (victim, signal.SIGKILL))
    after = rng.randrange(len(rows) - 8)
    model, order = learning(), []
    for applied in stream_partitions(client, rows, model, staleness=2):
        order.append(applied.partition)
        assert (applied.rejects, applied.unread) == ((), False)
        if applied.partition == after:
            killer.start()
        if applied.partition == len(rows) - 2:
            assert killer.finished.is_set()  # the worker was killed on the way
    model.finish()
    assert order == list(range(len(rows)))
    assert model.n_samples_seen_ == N_ROWS
    assert fingerprint(model) == fingerprint(expected)
    assert victim not in client.run(os.getpid).values()
