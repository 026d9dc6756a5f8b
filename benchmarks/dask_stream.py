"""One pass over files by one process, and by two workers of a Dask cluster: speed and quality.

- news: a synthetic corpus of the size of the paper's New York Times corpus, 266,000 documents of
  7841 words, in 19 files; 4,000 further documents are held out.
- kos, nyt8447: real corpora, in files of a tenth of them; a fifth is held out.

Both sides read the same files. "wall" is by the clock, least of the repetitions, on a machine that
others may use; "cpu" are seconds that processes worked: the one, both workers on their tasks, and
the driver, in which Dask's scheduler runs too. "bound" is what these seconds allow on two cores
that nobody else uses: the one process's over half of all of the others'. "loss" is what held-out
documents lose in log-likelihood against the one process.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scipy.sparse import csr_array, save_npz, vstack

from bnpstream import StreamingMixture
from bnpstream.datasets import load_kos, load_nyt8447, synthetic_corpus_blocks
from bnpstream.distributed import fit_stream
from bnpstream.streams import open_source
from distributed import Client, LocalCluster
from measure import arguments, machine, save

READ_ROWS = 4096
HELD_OUT = 4_000
NEWS_PART = 14_000
STALENESS = (0, 1, 2, 3)


def news() -> tuple[Iterator[Any], Any]:
    """Return blocks of rows a file, and rows to hold out."""
    parts: list[Any] = []
    blocks = synthetic_corpus_blocks(266_000 + HELD_OUT, block_rows=2_000)
    for block in blocks:
        parts.append(block.counts)
    held_out = vstack(parts[-HELD_OUT // 2_000 :], format="csr")
    per_file = NEWS_PART // 2_000
    starts = range(0, len(parts) - HELD_OUT // 2_000, per_file)
    return (vstack(parts[i : i + per_file], format="csr") for i in starts), held_out


def tenths(counts: Any) -> tuple[Iterator[Any], Any]:
    """Return four fifths of a corpus in eight parts, and the rest."""
    part = counts.shape[0] // 10
    return (csr_array(counts[i * part : (i + 1) * part]) for i in range(8)), counts[8 * part :]


PARTS = {
    "news": news,
    "kos": lambda: tenths(load_kos().counts),
    "nyt8447": lambda: tenths(load_nyt8447().counts),
}


def write(folder: Path, blocks: Iterator[Any]) -> list[str]:
    """Write a file a block; return their names."""
    paths = []
    for i, block in enumerate(blocks):
        paths.append(str(folder / f"{i:03d}.npz"))
        save_npz(paths[-1], block, compressed=False)
    return paths


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
    found = []
    for _ in range(repetitions):
        began, cpu = time.perf_counter(), time.process_time()
        result = fit_stream(client, paths, StreamingMixture(n_jobs=1), staleness=staleness)
        costs = result.costs
        resolved = len(paths) - 1
        found.append(
            {
                "wall": time.perf_counter() - began,
                "workers": costs.working,
                "driver": time.process_time() - cpu,
                "resolving_ms": 1e3 * costs.resolving / resolved,
                "bytes": costs.received / len(paths),
                "sent": costs.sent,
                "matched": costs.n_matched,
                "born": costs.n_born,
            }
        )
    best = {name: min(run[name] for run in found) for name in found[0]}
    return best | {"clusters": result.model.n_clusters_, "score": result.model.score(held_out)}


def show(name: str, alone: dict[str, Any], found: dict[int, dict[str, Any]]) -> None:
    rate = alone["rows"] / alone["wall"]
    print(
        f"{name}: {alone['rows']:,d} documents, one process {alone['wall']:.2f} s by the clock, "
        f"{alone['cpu']:.2f} s cpu ({rate:,.0f} documents/s), {alone['clusters']} clusters"
    )
    for staleness, run in found.items():
        cpu = run["workers"] + run["driver"]
        print(
            f"  staleness {staleness}: {alone['wall'] / run['wall']:.2f} times as fast, "
            f"bound {2 * alone['cpu'] / cpu:.2f}; cpu of workers {run['workers']:.2f} s, of the "
            f"driver {run['driver']:.2f} s ({run['driver'] / cpu:.1%}); "
            f"{run['bytes'] / 1e3:,.0f} kB a delta, {run['resolving_ms']:.0f} ms to match and add; "
            f"{run['matched']} matched, {run['born']} born, {run['clusters']} clusters; "
            f"loss {1 - run['score'] / alone['score']:+.4%}".replace("loss -", "gain "),
            flush=True,
        )


def main() -> None:
    """Print a line for every staleness."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions; the best counts")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--part", choices=PARTS, action="append", help="only these corpora")
    options = parser.parse_args()
    print(f"{options.workers} workers, best of {options.repeat}; {machine()}")
    results: dict[str, Any] = {}
    sizes = {"n_workers": options.workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**sizes) as cluster, Client(cluster) as client:
        for name in options.part or PARTS:
            with TemporaryDirectory() as folder:
                try:
                    blocks, held_out = PARTS[name]()
                except FileNotFoundError as error:
                    print(f"{name}: {error}")
                    continue
                paths = write(Path(folder), blocks)
                one_process(paths[:2]).score(held_out[:10])  # compile
                client.run(one_process, paths[:2])
                alone = serial(paths, held_out, options.repeat)
                found = {
                    staleness: parallel(client, paths, held_out, staleness, options.repeat)
                    for staleness in STALENESS
                }
            results[name] = {"alone": alone, "staleness": found}
            show(name, alone, found)
    save({"workers": options.workers, "corpora": results}, options.json)


if __name__ == "__main__":
    main()
