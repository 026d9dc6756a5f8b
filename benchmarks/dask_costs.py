"""What the steps of a stream on Dask cost: worker and driver in turn in one process, without Dask.

The posterior depends on partitions and staleness only, so one process can play any number of
workers. Seconds are those that the thread worked.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bnpstream import StreamingMixture
from bnpstream.distributed import partitions as reading
from bnpstream.distributed import worker as working
from bnpstream.distributed.book import Book
from bnpstream.distributed.messages import PackedReplica, Task, Update
from bnpstream.distributed.partitions import Inside
from bnpstream.distributed.worker import keep_freed_memory
from bnpstream.engine.parallel.changes import Added
from bnpstream.engine.parallel.replica import Replica
from bnpstream.engine.parallel.staleness import Order, is_head
from bnpstream.sources import Partition

STEPS = {
    "read": (reading, "read"),
    "update": (Update, "apply"),
    "copy": (Replica, "working_copy"),
    "pass": (working, "sound_parts"),
    "diff": (Added, "between"),
    "pack": (working, "packed"),
}
"""By name: where the function of a worker's step is looked up."""


@contextmanager
def stopwatches() -> Iterator[dict[str, float]]:
    """Let every step add its seconds to what is yielded."""
    seconds: dict[str, float] = defaultdict(float)
    originals = {name: getattr(owner, attribute) for name, (owner, attribute) in STEPS.items()}

    def timed(name: str) -> Any:
        def step(*args: Any, **options: Any) -> Any:
            began = time.thread_time()
            try:
                found = originals[name](*args, **options)
                return list(found) if name == "pass" else found  # a generator works when asked
            finally:
                seconds[name] += time.thread_time() - began

        return step

    for name, (owner, attribute) in STEPS.items():
        setattr(owner, attribute, timed(name))
    try:
        yield seconds
    finally:
        for name, (owner, attribute) in STEPS.items():
            setattr(owner, attribute, originals[name])


def play(paths: list[str], workers: int, staleness: int, held_out: Any) -> dict[str, Any]:
    """Play workers that take turns; return what partitions cost, and how good the posterior is.

    Returns
    -------
    costs : dict
        "steps": a list a step, in the order of tasks, in seconds; "resolve" and "bytes" are the
        driver's.
    """
    keep_freed_memory()
    model = StreamingMixture(n_jobs=1)
    book = Book(Replica(model.open_stream(), 0), staleness)
    replicas = [PackedReplica.of(book.replica).replica() for _ in range(workers)]
    number, order, schema = 0, Order(staleness), None
    steps: dict[str, list[float]] = defaultdict(list)
    todo: list[tuple[str, Inside | None]] = [(path, None) for path in reversed(paths)]
    with stopwatches() as seconds:
        while todo:
            path, start = todo.pop()
            stream, turn = book.replica.stream, number % workers
            first = is_head(stream)
            base = order.base(stream, number, number)
            assert base is not None
            snapshot, updates = book.since(replicas[turn].version, base)
            if snapshot is not None:  # it was long idle, at the beginning
                replicas[turn] = snapshot.replica()
            worker = replicas[turn]
            seconds.clear()
            for update in updates:
                update.apply(worker)
            task = Task("", number, base, None, (), path, None, schema)
            head_only = first and staleness > 0
            found = reading.read(Partition(path), None, schema, start, head=head_only)
            outcome = working._absorb(task, worker, found)
            number, schema = number + 1, outcome.schema
            if outcome.after is not None:
                todo.append((path, outcome.after))
            for name in STEPS:
                steps[name].append(seconds[name])
            began = time.thread_time()
            book.apply(outcome)
            steps["resolve"].append(time.thread_time() - began)
            steps["bytes"].append(float(book._updates[-1].nbytes))
    opened: Any = book.replica.opened
    model.take_stream(opened)
    model.finish()
    return {
        "steps": dict(steps),
        "clusters": model.n_clusters_,
        "score": model.score(held_out),
        "matched": book.costs.n_matched,
        "born": book.costs.n_born,
    }


def dask_overhead(client: Any) -> dict[str, float]:
    """Return seconds that driver and scheduler work for a task, and for a byte sent with one."""
    found = {}
    for size in (0, 1 << 22):
        load = np.random.default_rng(0).bytes(size)
        took = []
        for number in range(60):
            began = time.process_time()
            client.submit(len, load, key=f"len-{size}-{number}").result()
            took.append(time.process_time() - began)
        found[size] = float(np.median(took))
    return {"task": found[0], "byte": (found[1 << 22] - found[0]) / (1 << 22)}
