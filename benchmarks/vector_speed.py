"""Rows per second of CPU on drawn unit rows: one pass of StreamingMixture beside its peers.

D numbers a row, K clusters, float32, one thread. StreamingMixture and MiniBatchKMeans, which is
told K and takes batches of 1 024 rows, have seen half of the rows before: what is timed is a stream
that goes on, as a whole, and the median batch of it, in which nothing is learnt and no topics are
found. "From nothing" is one pass over all rows, setting out and learning included, over that of
MiniBatchKMeans. At one K also scikit-learn's Birch and HDBSCAN, and river's DBSTREAM, each over
some of the rows, so that they come to an end.
"""

from typing import Any

import numpy as np
from river.cluster import DBSTREAM
from sklearn.cluster import HDBSCAN, Birch, MiniBatchKMeans

from bnpstream import StreamingMixture
from measure import arguments, cpu_seconds, machine, save

COLUMNS = 64, 384, 1536
CLUSTERS = 50, 350, 1000, 5000
LARGEST = 2**21
"""D K up to which is measured, so that all ends within eight minutes on a quiet machine."""
PEERS_AT = 350
"""Clusters at which those without K are measured."""
BATCH, NUMBERS, LEAST_EACH = 1024, 2**23, 8
"""Rows of a batch, numbers that are drawn, and rows of every cluster at least."""
FEW, SOME = 300, 4000
"""Rows that slower clusterers are given."""


def drawn(n_columns: int, n_clusters: int) -> Any:
    """Return rows around centres of any direction, at cosines of about .74."""
    rng = np.random.default_rng(0)
    n = max(NUMBERS // n_columns, LEAST_EACH * n_clusters)
    centres = rng.normal(size=(n_clusters, n_columns)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows = rng.normal(size=(n, n_columns)).astype(np.float32)
    rows *= 0.9 / np.sqrt(n_columns)
    rows += centres[rng.integers(n_clusters, size=n)]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def from_nothing(rows: Any, n_clusters: int) -> float:
    """Return how many times as fast as MiniBatchKMeans all rows are absorbed."""
    told = MiniBatchKMeans(n_clusters, batch_size=BATCH, n_init=1, random_state=0)

    def batches() -> None:
        for start in range(0, len(rows) - n_clusters, BATCH):  # K rows at least to begin with
            told.partial_fit(rows[start : start + max(BATCH, n_clusters if start == 0 else 0)])

    return cpu_seconds(batches) / cpu_seconds(lambda: StreamingMixture().fit(rows))


def of_peers(rows: Any) -> dict[str, float]:
    """Return rows per second of clusterers that are not told K."""
    few, some = rows[:FEW], rows[:SOME]

    def one_by_one() -> None:
        model = DBSTREAM(clustering_threshold=0.8)
        for row in few:
            model.learn_one(dict(enumerate(row.tolist())))

    jobs: dict[str, tuple[Any, int]] = {
        "Birch": (lambda: Birch(threshold=0.8, n_clusters=None).fit(some), len(some)),
        "HDBSCAN": (lambda: HDBSCAN(copy=True).fit(some), len(some)),
        "DBSTREAM": (one_by_one, len(few)),
    }
    return {name: n / cpu_seconds(job) for name, (job, n) in jobs.items()}


def batch_seconds(model: Any, rows: Any) -> Any:
    """Return the seconds of every batch of rows that a model goes on with."""
    starts = range(0, len(rows), BATCH)
    return [cpu_seconds(lambda at=at: model.partial_fit(rows[at : at + BATCH])) for at in starts]  # type: ignore[misc]


def speeds(n_columns: int, n_clusters: int) -> dict[str, Any]:
    """Return rows per second, and the clusters found."""
    rows = drawn(n_columns, n_clusters)
    half = len(rows) // 2
    ours = StreamingMixture().partial_fit(rows[:half])
    told = MiniBatchKMeans(n_clusters, batch_size=BATCH, n_init=1, random_state=0)
    told.partial_fit(rows[:half])
    found: dict[str, Any] = {}
    for name, model in (("StreamingMixture", ours), ("MiniBatchKMeans", told)):
        seconds = batch_seconds(model, rows[half:])
        found[name] = (len(rows) - half) / sum(seconds)
        found[f"{name}, median batch"] = BATCH / float(np.median(seconds))
    for which in ("", ", median batch"):
        ratio = found[f"StreamingMixture{which}"] / found[f"MiniBatchKMeans{which}"]
        found[f"ratio{which}"] = ratio
    found["ratio from nothing"] = from_nothing(rows, n_clusters)
    found["found"] = ours.n_clusters_
    return found | (of_peers(rows) if n_clusters == PEERS_AT else {})


def main() -> None:
    """Print the table."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--clusters", type=int, nargs="*", default=CLUSTERS)
    options = parser.parse_args()
    print(f"rows per second of CPU; {machine()}")
    results: dict[str, Any] = {}
    for n_columns in options.columns:
        for n_clusters in [K for K in options.clusters if n_columns * K <= LARGEST]:
            found = speeds(n_columns, n_clusters)
            results[f"{n_columns}, {n_clusters}"] = found
            told = ", ".join(f"{name} {value:.3g}" for name, value in found.items())
            print(f"D {n_columns} K {n_clusters}: {told}", flush=True)
    save(results, options.json)


if __name__ == "__main__":
    main()
