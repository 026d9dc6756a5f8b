"""Two threads against one: speed-ups, alternating in one process, and the bits compared.

Speed-ups are by the clock on the wall. On a busy machine they say little; "if idle" is the CPU time
of one thread by that of the calling one of two, which does all that is not shared out and a half of
the rest: what the speed-up would be if the other were never late.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bnpstream import GibbsMixture, StreamingMixture
from bnpstream.datasets import synthetic_corpus
from bnpstream.priors import PitmanYor
from floor import MODEL
from measure import Spread, arguments, machine, save

REPETITIONS = 5

Outcome = list[Any]
"""Arrays that must be the same whatever the number of threads."""
Job = Callable[[int], tuple[Callable[[], Any], Callable[[], Outcome]]]
"""Given a number of threads: what to time, and how to read off the outcome afterwards."""


def compare(job: Job, repetitions: int = REPETITIONS) -> dict[str, Any]:
    """Time one thread and two in turn; fail if any bit differs."""
    times, bits = [], set()
    for repetition in range(repetitions + 1):
        pair = []
        for n_jobs in (1, 2):
            run, outcome = job(n_jobs)
            wall, cpu = time.perf_counter(), time.thread_time()
            run()
            pair.append((time.perf_counter() - wall, time.thread_time() - cpu))
            bits.add(b"".join(np.ascontiguousarray(part).tobytes() for part in outcome()))
        if repetition > 0:  # the first compiles and starts threads
            times.append(pair)
    if len(bits) != 1:
        raise AssertionError("one thread and two give different bits")
    (one, one_cpu), (two, two_cpu) = np.array(times).transpose(1, 2, 0)
    return {
        "one_ms": Spread.of(1e3 * one),
        "two_ms": Spread.of(1e3 * two),
        "speed_up": Spread.of(one / two),
        "speed_up_if_idle": Spread.of(one_cpu / two_cpu),
    }


def reading(model: StreamingMixture, method: str, counts: Any) -> Job:
    """Return a method of the estimator that takes rows."""

    def job(n_jobs: int) -> Any:
        found: Outcome = []
        call = getattr(model.set_params(n_jobs=n_jobs), method)
        return lambda: found.append(call(counts)), lambda: found

    return job


def sampling(counts: Any) -> Job:
    """Return two chains of Gibbs sweeps."""

    def job(n_jobs: int) -> Any:
        model = GibbsMixture(*MODEL, n_sweeps=10, n_kept=5, n_chains=2, n_jobs=n_jobs)
        return lambda: model.fit(counts), lambda: [model.assignments_, model.log_likelihood_]

    return job


def show(name: str, found: dict[str, Any]) -> None:
    print(
        f"{name:44s} one thread {found['one_ms'].median:8.1f} ms  "
        f"two {found['two_ms'].median:8.1f} ms  speed-up {found['speed_up'].show()}  "
        f"if idle {found['speed_up_if_idle'].show()}",
        flush=True,
    )


def main() -> None:
    """Print a line a job."""
    options = arguments(__doc__ or "").parse_args()
    print(f"medians, least and largest of {REPETITIONS}; bits compared; {machine()}")
    results: dict[str, Any] = {}

    def measure(name: str, job: Job) -> None:
        results[name] = compare(job)
        show(name, results[name])

    prior = PitmanYor(1.0, 0.2).with_expected_clusters(2000, n=6000)
    counts = synthetic_corpus(6000, prior=prior).counts
    model = StreamingMixture(*MODEL).fit(counts)
    k = model.n_clusters_
    measure(f"score_samples, K={k}", reading(model, "score_samples", counts[:2000]))
    measure(f"predict, K={k}", reading(model, "predict", counts[:2000]))
    measure("Gibbs, 2 chains, 10 sweeps of 1000 rows", sampling(counts[:1000]))
    save({"jobs": results}, options.json)


if __name__ == "__main__":
    main()
