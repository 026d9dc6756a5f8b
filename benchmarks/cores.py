"""One pass by threads that absorb blocks of rows side by side, against the serial pass.

- speed: a synthetic corpus of the size of the paper's New York Times corpus, from where it has 500
  clusters on. The serial pass and one and two threads take turns, all from the same posterior, and
  the bits of one thread and of two are compared. Rows are given in calls of a round.
- quality: all 266,000 documents of it, and KOS and nyt8447 (a fifth held out) in blocks of a tenth:
  how much better held-out rows are predicted than by the serial pass, relative to that.

"times as fast" is by the clock on the wall. On a busy machine it says little; "if idle" is the CPU
time of the serial pass by that of the longest path through the threads: all that only one of them
can do, and the slowest of those that work side by side. "alone" is the share of that path in which
one thread works alone.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from bnpstream import StreamingMixture
from bnpstream.engine.parallel import rounds
from bnpstream.mixture.threads import in_threads
from dask_corpora import CORPORA, Corpus
from measure import Spread, arguments, machine, save

REPETITIONS = 5
LEAST_CLUSTERS, STEP, TIMED_ROUNDS = 500, 14_000, 3
BLOCKS = (14_000, 28_000)
SETTINGS = {
    "news": ((1, 14_000), (1, 28_000), (3, 14_000)),
    "kos": ((1, 343),),
    "nyt8447": ((1, 844),),
}


@dataclass
class Path:
    """CPU seconds of a pass: in all, and along the longest path through its threads."""

    calling: float = 0.0
    """Of the thread that calls."""
    leading: float = 0.0
    """Of the thread that leads a round."""
    own: float = 0.0
    """Of these two, while others work beside them."""
    slowest: float = 0.0
    every: float = 0.0

    @property
    def alone(self) -> float:
        return self.calling + self.leading - self.own

    @property
    def length(self) -> float:
        return self.alone + self.slowest

    @property
    def total(self) -> float:
        return self.alone + self.every


@contextmanager
def watched() -> Iterator[Path]:
    """Measure the threads of rounds."""
    path, lead = Path(), rounds.Rounds._absorb_blocks

    def timed_threads(work: Callable[[int, int], None], n: int, n_jobs: int) -> None:
        seconds = []

        def timed(start: int, stop: int) -> None:
            began = time.thread_time()
            work(start, stop)
            seconds.append((start, time.thread_time() - began))

        in_threads(timed, n, n_jobs)
        path.own += dict(seconds)[0]
        path.slowest += max(took for _, took in seconds)
        path.every += sum(took for _, took in seconds)

    def timed_lead(*given: Any) -> Any:
        began = time.thread_time()
        found = lead(*given)
        path.leading += time.thread_time() - began
        return found

    rounds.in_threads, rounds.Rounds._absorb_blocks = timed_threads, timed_lead  # type: ignore
    began = time.thread_time()
    try:
        yield path
    finally:
        path.calling = time.thread_time() - began
        rounds.in_threads, rounds.Rounds._absorb_blocks = in_threads, lead  # type: ignore


def absorb(model: StreamingMixture, rows: Any, call: int) -> None:
    for start in range(0, rows.shape[0], call):
        model.partial_fit(rows[start : start + call])


def bits(model: StreamingMixture) -> bytes:
    state = model.state_
    return b"".join(x.tobytes() for x in (state.statistics, state.masses, state.ids))


def begun(rows: Any) -> tuple[StreamingMixture, int]:
    """Return a model that has enough clusters, and how many rows it took."""
    model, seen = StreamingMixture(), 0
    while seen == 0 or model.n_clusters_ < LEAST_CLUSTERS:
        model.partial_fit(rows[seen : seen + STEP])
        seen += STEP
    return model, seen


def speed(rows: Any, block: int, repetitions: int) -> dict[str, Any]:
    """Time serial passes and threads in turn; fail if one and two threads give different bits."""
    start, seen = begun(rows)
    call = 2 * block
    part = rows[seen : seen + TIMED_ROUNDS * call]
    walls: dict[int, list[float]] = {0: [], 1: [], 2: []}
    paths: dict[int, list[Path]] = {0: [], 1: [], 2: []}
    found: dict[int, Any] = {}
    for repetition in range(repetitions + 1):
        for threads in walls:
            model = deepcopy(start)
            if threads > 0:
                model.set_params(staleness=1, block_rows=block, learn_threads=threads)
            with watched() as path:
                began = time.perf_counter()
                absorb(model, part, call)
                wall = time.perf_counter() - began
            if repetition > 0:  # the first compiles
                walls[threads].append(wall)
                paths[threads].append(path)
            found[threads] = model
    if bits(found[1]) != bits(found[2]):
        raise AssertionError("one thread and two give different bits")
    serial, one, two = (np.array(walls[threads]) for threads in walls)
    lengths = {threads: np.array([path.length for path in paths[threads]]) for threads in paths}
    return {
        "rows": part.shape[0],
        "clusters": [start.n_clusters_, found[0].n_clusters_, found[2].n_clusters_],
        "serial_s": Spread.of(serial),
        "serial_cpu_s": Spread.of(lengths[0]),
        "one_thread": Spread.of(serial / one),
        "one_thread_if_idle": Spread.of(lengths[0] / lengths[1]),
        "speed_up": Spread.of(serial / two),
        "speed_up_if_idle": Spread.of(lengths[0] / lengths[2]),
        "alone": Spread.of([path.alone / path.length for path in paths[2]]),
        "cpu_of_all": Spread.of([path.total for path in paths[2]] / lengths[0]),
    }


def show_speed(block: int, found: dict[str, Any]) -> None:
    print(
        f"blocks of {block:,d}, {found['rows']:,d} documents, {found['clusters'][0]} to "
        f"{found['clusters'][1]} clusters: serial {found['serial_s'].show()} s, "
        f"{found['serial_cpu_s'].show()} s cpu; two threads {found['speed_up'].show()} times as "
        f"fast, if idle {found['speed_up_if_idle'].show()}; alone {found['alone'].show()}, cpu of "
        f"all threads {found['cpu_of_all'].show()} of the serial pass; one thread "
        f"{found['one_thread'].show()}, if idle {found['one_thread_if_idle'].show()}",
        flush=True,
    )


def quality(name: str, corpus: Corpus) -> list[dict[str, Any]]:
    """Return how well held-out rows are predicted, against the serial pass."""
    rows = csr_array(vstack(corpus.blocks, format="csr"))
    serial = StreamingMixture().fit(rows)
    score = serial.score(corpus.held_out)
    print(f"{name}: {rows.shape[0]:,d} documents, serial pass {serial.n_clusters_} clusters")
    runs = []
    for staleness, block in SETTINGS[name]:
        model = StreamingMixture(staleness=staleness, block_rows=block, learn_threads=2).fit(rows)
        better = float((model.score(corpus.held_out) - score) / abs(score))
        print(
            f"  staleness {staleness}, blocks of {block:,d}: {model.n_clusters_} clusters, "
            f"held out {better:+.4%}",
            flush=True,
        )
        case = {"staleness": staleness, "block_rows": block, "clusters": model.n_clusters_}
        runs.append(case | {"held_out": better, "serial_clusters": serial.n_clusters_})
    return runs


def main() -> None:
    """Print a line a case."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=REPETITIONS, help="repetitions")
    parser.add_argument("--part", choices=["speed", "quality"], action="append", help="only these")
    options = parser.parse_args()
    parts = options.part or ["speed", "quality"]
    print(f"medians, least and largest of {options.repeat}; {machine()}")
    results: dict[str, Any] = {"speed": {}, "quality": {}}
    for name, load in CORPORA.items():
        try:
            corpus = load()
        except FileNotFoundError as error:
            print(f"{name}: {error}")
            continue
        if "speed" in parts and name == "news":
            rows = csr_array(vstack(corpus.blocks, format="csr"))
            for block in BLOCKS:
                results["speed"][block] = speed(rows, block, options.repeat)
                show_speed(block, results["speed"][block])
        if "quality" in parts:
            results["quality"][name] = quality(name, corpus)
    save(results, options.json)


if __name__ == "__main__":
    main()
