"""Memory and speed of a window over a million rows of a stationary source with 50 clusters."""

import sys
import time
from pathlib import Path

import numpy as np

from bnpstream import DirichletMultinomial, StreamingMixture, normalized_inverse_gaussian

ROWS, BATCH, CLUSTERS, WORDS, LENGTH = 1_000_000, 10_000, 50, 200, 30
PAGE = 4096


def resident_megabytes() -> float:
    """Return the memory that this process holds now (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def main() -> None:
    """Print a line every hundred thousand rows."""
    rng = np.random.default_rng(0)
    components = rng.dirichlet(np.full(WORDS, 0.1), size=CLUSTERS)
    model = StreamingMixture(
        normalized_inverse_gaussian(1, 1), DirichletMultinomial(0.1), revisit=1000, n_revisits=1
    )
    print(f"{ROWS:,} rows, {CLUSTERS} true clusters, a window of 1000, one revisit")
    seconds = 0.0
    for start in range(0, ROWS, BATCH):
        rows = rng.multinomial(LENGTH, components[rng.integers(CLUSTERS, size=BATCH)])
        tick = time.perf_counter()
        model.partial_fit(rows)
        seconds += time.perf_counter() - tick
        seen = start + BATCH
        if seen % 100_000 == 0 or seen == BATCH:
            print(
                f"{seen:9,d} rows  {resident_megabytes():6.0f} MB  "
                f"{model.n_clusters_:3d} clusters  "
                f"{(model.weights_ > 0.005).sum():3d} above .5 %  {len(model.lineage_):4d} events  "
                f"{seen / seconds:8,.0f} rows/s",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
