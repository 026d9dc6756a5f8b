"""Rows per second of CPU on drawn unit rows: one pass of StreamingMixture beside MiniBatchKMeans.

D numbers a row, K clusters, float32, one thread. Both have seen half of the rows before: what is
timed is a stream that goes on. MiniBatchKMeans is told K and takes batches of 1 024 rows.
"""

from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from bnpstream import StreamingMixture
from measure import arguments, cpu_seconds, machine, save

COLUMNS = 64, 256, 384, 768, 1536
CLUSTERS = 50, 350, 1000, 5000
BATCH, NUMBERS, LEAST_EACH = 1024, 2**23, 8
"""Rows of a batch, numbers that are drawn, and rows of every cluster at least."""


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


def speeds(n_columns: int, n_clusters: int) -> tuple[float, float, int]:
    """Return rows per second of both, and the clusters found."""
    rows = drawn(n_columns, n_clusters)
    half = len(rows) // 2
    ours = StreamingMixture().partial_fit(rows[:half])
    told = MiniBatchKMeans(n_clusters, batch_size=BATCH, n_init=1, random_state=0)
    told.partial_fit(rows[:half])

    def batches(model: Any) -> None:
        for start in range(half, len(rows), BATCH):
            model.partial_fit(rows[start : start + BATCH])

    n = len(rows) - half
    seconds = [cpu_seconds(lambda model=model: batches(model)) for model in (ours, told)]  # type: ignore[misc]
    return n / seconds[0], n / seconds[1], ours.n_clusters_


def main() -> None:
    """Print the table."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--clusters", type=int, nargs="*", default=CLUSTERS)
    options = parser.parse_args()
    print(f"rows per second of CPU; {machine()}")
    results: dict[str, Any] = {}
    for n_columns in options.columns:
        for n_clusters in options.clusters:
            ours, told, found = speeds(n_columns, n_clusters)
            results[f"{n_columns}, {n_clusters}"] = ours, told, found
            print(
                f"D {n_columns:5d} K {n_clusters:5d} StreamingMixture {ours:9.0f} ({found})"
                f" MiniBatchKMeans {told:9.0f} ratio {ours / told:.2f}",
                flush=True,
            )
    save(results, options.json)


if __name__ == "__main__":
    main()
