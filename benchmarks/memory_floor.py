"""One compiled pass over KOS against the memory floor, in one process.

The floor is a compiled loop that only adds up the rows of the table that the pass reads: for
every document, every word's row over the K clusters the pass had at that document, in float64.
Times are medians over alternating repetitions; the ratio is what carries over between machines.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from numba import njit

from bnpstream import DirichletMultinomial, dirichlet_process, normalized_inverse_gaussian
from bnpstream.datasets import load_kos
from bnpstream.inference import adf
from bnpstream.likelihoods import Batch
from bnpstream.mixture import MixtureState, Model

REPETITIONS = 15
SETTINGS = {
    "DP(100)": (dirichlet_process(100), adf.Settings(0.1, 1e-4)),
    "NIG(10, 100)": (normalized_inverse_gaussian(10, 100), adf.Settings(0.5, 1e-4)),
}


@njit
def add_up_rows(table, indptr, indices, n_clusters, sums):  # type: ignore[no-untyped-def]
    for i in range(n_clusters.size):
        slots = n_clusters[i]
        for k in range(slots):
            sums[k] = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            row = table[indices[j]]
            for k in range(slots):
                sums[k] += row[k]


def run_pass(model: Model, batch: Batch, settings: adf.Settings, *, compiled: bool):  # type: ignore[no-untyped-def]
    state = adf.init(model, batch.n_statistics)
    kernel = model.kernel_arguments(batch) if compiled else None
    records = list(adf.run(model, state, batch, settings, kernel))
    return state, np.concatenate([record.rows.n_clusters for record in records])


def seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def compare(model: Model, batch: Batch, settings: adf.Settings) -> dict[str, float]:
    state: MixtureState
    state, n_clusters = run_pass(model, batch, settings, compiled=True)
    before = np.append(0, n_clusters[:-1])
    rows = batch.kernel_rows
    table, sums = np.ascontiguousarray(state.statistics.T), np.empty(state.arrays.masses.size)

    def floor() -> None:
        add_up_rows(table, rows.indptr, rows.indices, before, sums)

    def compiled_pass() -> None:
        run_pass(model, batch, settings, compiled=True)

    floor()
    times = [(seconds(floor), seconds(compiled_pass)) for _ in range(REPETITIONS)]
    floors, passes = zip(*times, strict=True)
    cells = int(np.diff(rows.indptr) @ before)
    reference = seconds(lambda: run_pass(model, batch, settings, compiled=False))
    floor_time, pass_time = statistics.median(floors), statistics.median(passes)
    ratios = sorted(mine / least for least, mine in times)
    return {
        "documents": len(batch),
        "clusters": state.n_clusters,
        "floor_ms": 1e3 * floor_time,
        "floor_ns_per_cell": 1e9 * floor_time / cells,
        "pass_ms": 1e3 * pass_time,
        "documents_per_second": len(batch) / pass_time,
        "ratio": statistics.median(ratios),
        "ratio_low": ratios[len(ratios) // 4],
        "ratio_high": ratios[3 * len(ratios) // 4],
        "reference_ms": 1e3 * reference,
    }


def main() -> None:
    """Print one line a prior, or JSON with ``--json``."""
    counts = load_kos().counts
    order = np.random.default_rng(0).permutation(counts.shape[0])[686:]
    results = {}
    for name, (prior, settings) in SETTINGS.items():
        model = Model(prior, DirichletMultinomial(0.1))
        results[name] = compare(model, model.likelihood.encode(counts[order]), settings)
    if "--json" in sys.argv:
        print(json.dumps(results, indent=2))
        return
    print("one pass over 2744 documents of KOS, alpha .1; medians of", REPETITIONS)
    for name, found in results.items():
        print(
            f"{name:13s} {found['clusters']:4.0f} clusters  pass {found['pass_ms']:6.1f} ms "
            f"({found['documents_per_second']:,.0f} documents/s)  "
            f"floor {found['floor_ms']:5.1f} ms ({found['floor_ns_per_cell']:.2f} ns a cell)  "
            f"ratio {found['ratio']:.2f} [{found['ratio_low']:.2f}, {found['ratio_high']:.2f}]  "
            f"reference {found['reference_ms']:.0f} ms"
        )


if __name__ == "__main__":
    main()
