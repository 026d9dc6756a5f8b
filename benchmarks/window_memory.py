"""Memory and speed of a window over a million rows of a stationary source with 50 clusters."""

import time

import numpy as np

from bnpstream import DirichletMultinomial, StreamingMixture, normalized_inverse_gaussian
from measure import arguments, machine, resident_mib, save

ROWS, BATCH, CLUSTERS, WORDS, LENGTH = 1_000_000, 10_000, 50, 200, 30


def main() -> None:
    """Print a line every hundred thousand rows."""
    options = arguments(__doc__ or "").parse_args()
    rng = np.random.default_rng(0)
    components = rng.dirichlet(np.full(WORDS, 0.1), size=CLUSTERS)
    model = StreamingMixture(
        normalized_inverse_gaussian(1, 1), DirichletMultinomial(0.1), revisit=1000, n_revisits=1
    )
    print(f"{ROWS:,} rows, {CLUSTERS} true clusters, a window of 1000, one revisit; {machine()}")
    seconds, lines = 0.0, []
    for start in range(0, ROWS, BATCH):
        rows = rng.multinomial(LENGTH, components[rng.integers(CLUSTERS, size=BATCH)])
        tick = time.perf_counter()
        model.partial_fit(rows)
        seconds += time.perf_counter() - tick
        seen = start + BATCH
        if seen % 100_000 == 0 or seen == BATCH:
            line = {
                "seen": seen,
                "resident_mib": resident_mib(),
                "clusters": model.n_clusters_,
                "heavy": int((model.weights_ > 0.005).sum()),
                "events": len(model.lineage_),
                "rows_per_second": seen / seconds,
            }
            lines.append(line)
            print(
                f"{seen:9,d} rows  {line['resident_mib']:6.0f} MiB  {line['clusters']:3d} clusters"
                f"  {line['heavy']:3d} above .5 %  {line['events']:4d} events  "
                f"{line['rows_per_second']:8,.0f} rows/s",
                flush=True,
            )
    save({"lines": lines}, options.json)


if __name__ == "__main__":
    main()
