"""One pass over files by one process, and by the workers of a Dask cluster: speed and quality.

- news: a synthetic corpus of the size of the paper's New York Times corpus, 266,000 documents of
  7841 words, as .npz that is not packed and as gzipped docword files; 4,000 further documents are
  held out.
- kos, nyt8447: real corpora, in files of a tenth of them; a fifth is held out.
- costs: the steps of workers and driver, one by one, on news (`dask_costs.py`).

Both sides read the same files. "wall" is by the clock, the least of the repetitions; "times as
fast" is against the one process, run right before, median and range. "cpu" are seconds that
processes worked: the one, all workers on their tasks, and the driver, in which Dask's
scheduler runs too. "held out" is how much better the log-likelihood is than that of the one
process, relative to it. `scaling.py` goes on from the JSON file.
"""

import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bnpstream import StreamingMixture
from bnpstream.distributed import connect, fit_stream
from bnpstream.sources import open_source
from dask_corpora import CORPORA, Corpus, write
from dask_costs import dask_overhead, play
from measure import arguments, machine, save

READ_ROWS = 4096
COSTS = {3_500: (1, 2, 8, 32), 7_000: (1, 2, 8, 16), 14_000: (1, 2, 4, 8), 28_000: (1, 2, 4)}
"""By documents of a partition: workers that are played, one more than the staleness or one."""


class Case(NamedTuple):
    """A way to share a corpus out."""

    form: str
    part: int
    workers: int
    staleness: int


def cases(name: str, corpus: Corpus) -> list[Case]:
    """Return the ways to share a corpus out."""
    if name != "news":
        part = corpus.blocks[0].shape[0]
        return [Case("npz", part, 2, staleness) for staleness in range(5)]
    found = [Case("npz", 14_000, 2, staleness) for staleness in range(5)]
    found += [Case("npz", part, 2, staleness) for part in (7_000, 28_000) for staleness in (1, 2)]
    found += [Case("uci", part, 2, staleness) for part in (14_000, 28_000) for staleness in (1, 2)]
    return found + [Case(form, 14_000, 1, 1) for form in ("npz", "uci")]


def one_process(paths: list[str]) -> Any:
    model = StreamingMixture(n_jobs=1)
    with open_source(paths) as source:
        for records, _ in source.batches(READ_ROWS):
            model.partial_fit(records.rows)
    return model.finish()


def serial(paths: list[str], held_out: Any, repetitions: int) -> dict[str, Any]:
    walls, cpus = [], []
    for _ in range(repetitions):
        wall, cpu = time.perf_counter(), time.thread_time()
        model = one_process(paths)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.thread_time() - cpu)
    return {
        "wall": min(walls),
        "cpu": min(cpus),
        "clusters": model.n_clusters_,
        "score": model.score(held_out),
        "rows": model.n_samples_seen_,
    }


def parallel(
    client: Any, paths: list[str], held_out: Any, staleness: int, repetitions: int
) -> dict[str, Any]:
    """Return the figures of the fastest run, and of all how much faster than one process they were.

    That has its turn before every run: the machine is not equally fast all the time.
    """
    found, ratios = [], []
    for _ in range(repetitions):
        began = time.perf_counter()
        one_process(paths)
        alone = time.perf_counter() - began
        began, cpu = time.perf_counter(), time.process_time()
        result = fit_stream(client, paths, StreamingMixture(n_jobs=1), staleness=staleness)
        costs = result.costs
        found.append(
            {
                "wall": time.perf_counter() - began,
                "workers_cpu": costs.working,
                "driver_cpu": time.process_time() - cpu,
                "resolving": costs.resolving,
                "sending": costs.sending,
                "waiting": costs.waiting,
                "bytes": costs.received / len(paths),
                "sent": costs.sent,
                "matched": costs.n_matched,
                "born": costs.n_born,
            }
        )
        ratios.append(alone / found[-1]["wall"])
    best = min(found, key=lambda run: run["wall"])
    model = result.model
    quality = {"clusters": model.n_clusters_, "score": model.score(held_out)}
    return best | quality | {"ratios": sorted(ratios)}


def better(run: dict[str, Any], alone: dict[str, Any]) -> float:
    """Return how much better a log-likelihood is, relative to that of one process."""
    return float((run["score"] - alone["score"]) / abs(alone["score"]))


def show_alone(name: str, form: str, alone: dict[str, Any]) -> None:
    print(
        f"{name}, {form}: {alone['rows']:,d} documents, one process {alone['wall']:.2f} s, "
        f"{alone['cpu']:.2f} s cpu ({alone['rows'] / alone['wall']:,.0f} documents/s), "
        f"{alone['clusters']} clusters",
        flush=True,
    )


def show(case: Case, run: dict[str, Any], alone: dict[str, Any]) -> None:
    cpu = run["workers_cpu"] + run["driver_cpu"]
    print(
        f"  {case.form} in parts of {case.part:6,d}, {case.workers} workers, staleness "
        f"{case.staleness}: {run['wall']:5.2f} s, {median(run['ratios']):.2f} times as fast "
        f"({run['ratios'][0]:.2f} to {run['ratios'][-1]:.2f}); "
        f"cpu of workers {run['workers_cpu']:.2f} s, of the driver {run['driver_cpu']:.2f} s "
        f"({run['driver_cpu'] / cpu:.0%}); {run['bytes'] / 1e3:,.0f} kB a delta, "
        f"{1e3 * run['resolving'] * case.part / alone['rows']:.0f} ms to match and add; "
        f"{run['matched']} matched, {run['born']} born, {run['clusters']} clusters; "
        f"held out {better(run, alone):+.4%}",
        flush=True,
    )


def run_corpus(name: str, corpus: Corpus, folder: Path, repetitions: int) -> dict[str, Any]:
    """Return the figures of a corpus."""
    todo = cases(name, corpus)
    files = {
        (form, part): write(folder / f"{form}-{part}", form, corpus, part)
        for form, part in dict.fromkeys(case[:2] for case in todo)
    }
    alone = {}
    for form in dict.fromkeys(case.form for case in todo):
        paths = next(files[key] for key in files if key[0] == form)
        one_process(paths[:2]).score(corpus.held_out[:10])  # compile
        alone[form] = serial(paths, corpus.held_out, repetitions)
        show_alone(name, form, alone[form])
    runs = []
    for workers in sorted({case.workers for case in todo}):
        with connect(f"local:{workers}") as client:
            for form in alone:  # compile on all workers
                fit_stream(client, next(files[key] for key in files if key[0] == form)[:6], new())
            for case in (case for case in todo if case.workers == workers):
                paths = files[case[:2]]
                run = parallel(client, paths, corpus.held_out, case.staleness, repetitions)
                show(case, run, alone[case.form])
                runs.append(case._asdict() | run)
    return {"alone": alone, "runs": runs}


def new() -> StreamingMixture:
    return StreamingMixture(n_jobs=1)


def measure_costs(corpus: Corpus, folder: Path) -> dict[str, Any]:
    """Return the costs of steps, in the mean over the later half of the stream."""
    found = []
    for part, numbers in COSTS.items():
        paths = write(folder / f"costs-{part}", "npz", corpus, part)
        for workers in numbers:
            staleness = max(workers - 1, 1)
            costs = play(paths, workers, staleness, corpus.held_out)
            half = len(paths) // 2
            means = {
                name: sum(values[half:]) / len(values[half:])
                for name, values in costs["steps"].items()
            }
            shown = ", ".join(
                f"{name} {value / 1e3:.0f} kB" if name == "bytes" else f"{name} {1e3 * value:.0f}"
                for name, value in means.items()
            )
            print(f"  parts of {part:6,d}, {workers:2d} workers, ms: {shown}", flush=True)
            case = {"part": part, "workers": workers, "staleness": staleness}
            found.append(case | costs | {"steps": means})
    with connect("local:1") as client:
        return {"played": found, "dask": dask_overhead(client)}


def main() -> None:
    """Print a line a case."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions; the fastest counts")
    parts = [*CORPORA, "costs"]
    parser.add_argument("--part", choices=parts, action="append", help="only these")
    options = parser.parse_args()
    print(f"best of {options.repeat}; {machine()}")
    results: dict[str, Any] = {}
    made: dict[str, Corpus] = {}
    for name in options.part or parts:
        source = "news" if name == "costs" else name
        with TemporaryDirectory() as folder:
            try:
                corpus = made[source] = made.get(source) or CORPORA[source]()
            except FileNotFoundError as error:
                print(f"{name}: {error}")
                continue
            if name == "costs":
                results[name] = measure_costs(corpus, Path(folder))
            else:
                results[name] = run_corpus(name, corpus, Path(folder), options.repeat)
    save(results, options.json)


if __name__ == "__main__":
    main()
