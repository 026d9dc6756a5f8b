"""Parallel EP against serial EP on KOS: held-out log predictive, clusters, seconds, bytes.

The split is the first of `papers/tank2015`; 20 passes over five orders of the rest. Two worker
processes have one shard each. Then, for the last order, what a pass sends either way.
"""

import pickle
import time
from typing import Any, NamedTuple

import numpy as np

from bnpstream import (
    DirichletMultinomial,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import load_kos
from bnpstream.distributed import connect, fit_ep
from bnpstream.engine.parallel.shards import SparseStream, sweep_shard
from bnpstream.inference.visits import Responsibilities
from measure import arguments, machine, save

HELD_OUT, REPLICATES, PASSES = 686, 5, 20
PRIORS = {
    "DP(100)": (dirichlet_process(100), 0.1),
    "NIG(10, 100)": (normalized_inverse_gaussian(10, 100), 0.5),
}
WAYS: dict[str, tuple[int, float]] = {
    "serial": (0, 0.0),
    "1 shard": (1, 0.0),
    "2 shards, undamped": (2, 0.0),
    "2 shards": (2, 0.2),
    "8 shards": (8, 0.2),
}


class Outcome(NamedTuple):
    """One replicate."""

    log_predictive: float
    n_clusters: float
    change: float
    seconds_a_pass: float


def fitted(client: Any, make: Any, rows: Any, n_shards: int, damping: float) -> StreamingMixture:
    if n_shards == 0:
        return make().fit(rows)
    n = rows.shape[0]
    shards = [rows[n * s // n_shards : n * (s + 1) // n_shards] for s in range(n_shards)]
    return fit_ep(client, shards, make(), damping=damping)


def traffic(model: StreamingMixture, rows: Any) -> dict[str, int]:
    """Return the bytes of what one of two shards gets and gives in a pass."""
    again = model.set_params(keep_sites=True).fit(rows)
    posterior, half = SparseStream.of(again.stream_), rows.shape[0] // 2
    batch = again.likelihood_.encode(rows[:half])
    sites = Responsibilities.of(again.state_, again.window_.sites, 0, half)
    new, swept = sweep_shard(batch, sites, posterior, 0.2)
    parts = {"posterior": posterior, "summed site": swept, "sites": new, "rows": batch}
    return {name: len(pickle.dumps(part, protocol=5)) for name, part in parts.items()}


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "").parse_args()
    print(f"means and standard errors of {REPLICATES}, {PASSES} passes; {machine()}")
    counts = load_kos().counts
    order = np.random.default_rng(0).permutation(counts.shape[0])
    held_out, rows = counts[order[:HELD_OUT]], counts[order[HELD_OUT:]]
    results: dict[str, Any] = {}
    with connect("local:2") as client:
        for prior_name, (prior, threshold) in PRIORS.items():

            def make(prior: Any = prior, threshold: float = threshold) -> StreamingMixture:
                return StreamingMixture(
                    prior,
                    DirichletMultinomial(0.1),
                    new_cluster_threshold=threshold,
                    n_passes=PASSES,
                    tol=0.0,
                )

            for way, (n_shards, damping) in WAYS.items():
                fitted(client, make, rows, n_shards, damping)  # compile
                outcomes = []
                for number in range(REPLICATES):
                    shuffled = rows[np.random.default_rng(number).permutation(rows.shape[0])]
                    start = time.perf_counter()
                    model = fitted(client, make, shuffled, n_shards, damping)
                    seconds = (time.perf_counter() - start) / PASSES
                    figure = model.score_samples(held_out).sum()
                    change = model.epochs_[-1].change
                    outcomes.append(Outcome(figure, model.n_clusters_, change, seconds))
                mean = np.mean(outcomes, axis=0)
                error = np.std(outcomes, axis=0, ddof=1) / REPLICATES**0.5
                results[f"{way} {prior_name}"] = {
                    "log_predictive": [mean[0], error[0]],
                    "clusters": [mean[1], error[1]],
                    "change": mean[2],
                    "seconds_a_pass": mean[3],
                }
                print(
                    f"{prior_name:13s} {way:19s} {mean[0]:10.0f} +- {error[0]:4.0f}   "
                    f"{mean[1]:6.1f} +- {error[1]:4.1f} clusters   change {mean[2]:.4f}   "
                    f"{mean[3]:6.3f} s a pass",
                    flush=True,
                )
            results[f"bytes {prior_name}"] = sizes = traffic(make(), rows)
            print(", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in sizes.items()))
    save({"parallel_ep": results}, options.json)


if __name__ == "__main__":
    main()
