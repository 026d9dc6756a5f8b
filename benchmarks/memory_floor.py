"""The compiled pass against the memory floor (`floor.py`), in one process.

KOS from an empty posterior, synthetic documents of 138 words from posteriors of 50 to 5000
clusters, and documents of 8 words from one of 1000, with and without the limit on clusters per row.
Pass and floor alternate, one thread each, timed by its CPU clock; the ratio, time of the pass by
time of the floor, is what carries over between machines. At 5000 clusters the floor takes the first
200 documents only, and its time is scaled up to the cells of all.
"""

from typing import Any

import numpy as np

from bnpstream import DirichletMultinomial, dirichlet_process, normalized_inverse_gaussian
from bnpstream.datasets import load_kos
from bnpstream.inference import adf
from bnpstream.mixture import Model
from floor import Case, floor_of, make_case, ready, short_case, synthetic_case, visit
from measure import Spread, arguments, cpu_seconds, machine, save

KOS_REPETITIONS, REPETITIONS = 15, 7
CLUSTERS = (50, 200, 1000, 5000)
SHORT: dict[str, int | None] = {"8 words K=1000": 4, "8 words, no limit": None}
"""Documents of 8 words, by how many existing clusters one takes part in."""
FEW_DOCUMENTS = {5000: 200}
KOS = {
    "DP(100)": (dirichlet_process(100), adf.Settings(0.1, 1e-4)),
    "NIG(10, 100)": (normalized_inverse_gaussian(10, 100), adf.Settings(0.5, 1e-4)),
}


def compare(case: Case, repetitions: int, n_documents: int | None = None) -> dict[str, Any]:
    """Return the times of pass and floor, alternating."""
    floor = floor_of(case, n_documents)
    times = []
    for _ in range(repetitions):
        state = ready(case)
        least = cpu_seconds(floor.run) / floor.share
        times.append((least, cpu_seconds(lambda state=state: visit(case, state))))
    floors, passes = np.array(times).T
    cells = floor.cells / floor.share
    return {
        "documents": len(case.batch),
        "clusters": case.state.n_clusters,
        "opened": case.after.n_clusters - case.state.n_clusters,
        "pass_ms": Spread.of(1e3 * passes),
        "documents_per_second": Spread.of(len(case.batch) / passes),
        "floor_ms": Spread.of(1e3 * floors),
        "floor_ns_per_cell": Spread.of(1e9 * floors / cells),
        "ratio": Spread.of(passes / floors),
    }


def kos_case(name: str) -> Case:
    """Return KOS' 2744 training documents, to be visited from the start."""
    counts = load_kos().counts
    order = np.random.default_rng(0).permutation(counts.shape[0])[686:]
    prior, settings = KOS[name]
    model = Model(prior, DirichletMultinomial(0.1))
    batch = model.likelihood.encode(counts[order])
    return make_case(model, settings, adf.init(model, batch.n_statistics), batch, grown=False)


def show(name: str, found: dict[str, Any]) -> None:
    print(
        f"{name:18s} {found['clusters'] + found['opened']:5d} clusters  "
        f"pass {found['pass_ms'].median:7.1f} ms "
        f"({found['documents_per_second'].median:8,.0f} documents/s)  "
        f"floor {found['floor_ms'].median:7.1f} ms "
        f"({found['floor_ns_per_cell'].median:.2f} ns a cell)  "
        f"ratio {found['ratio'].show()}",
        flush=True,
    )


def main() -> None:
    """Print a line a case."""
    options = arguments(__doc__ or "").parse_args()
    print(f"medians, least and largest of {KOS_REPETITIONS} (KOS) or {REPETITIONS}; {machine()}")
    results: dict[str, Any] = {}
    for name in KOS:
        try:
            case = kos_case(name)
        except FileNotFoundError as missing:
            print(f"KOS {name}: skipped, {missing}")
            continue
        results[f"KOS {name}"] = compare(case, KOS_REPETITIONS)
        show(f"KOS {name}", results[f"KOS {name}"])
    for n_clusters in CLUSTERS:
        case, name = synthetic_case(n_clusters), f"synthetic K={n_clusters}"
        results[name] = compare(case, REPETITIONS, FEW_DOCUMENTS.get(n_clusters))
        show(name, results[name])
    for name, most in SHORT.items():
        results[name] = compare(short_case(1000, most), REPETITIONS)
        show(name, results[name])
    save({"cases": results}, options.json)


if __name__ == "__main__":
    main()
