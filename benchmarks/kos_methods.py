"""Every way of inference on KOS, one table: held-out log predictive, clusters, seconds.

The split is fixed (`default_rng(0).permutation(3430)`, the first 686 held out); streaming methods
run over five orders of the rest, Gibbs over five chains. Alpha is .1 throughout.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bnpstream import (
    DirichletMultinomial,
    GibbsMixture,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import load_kos
from measure import arguments, machine, save

HELD_OUT, REPLICATES = 686, 5
PRIORS = {
    "DP(100)": (dirichlet_process(100), 0.1),
    "NIG(10, 100)": (normalized_inverse_gaussian(10, 100), 0.5),
}
STREAMING: dict[str, dict[str, Any]] = {
    "ADF": {},
    "window 1000": {"revisit": 1000},
    "EP 50": {"n_passes": 50, "tol": 0.0},
}


class Outcome(NamedTuple):
    """One replicate."""

    log_predictive: float
    n_clusters: float
    expected_clusters: float
    log_mean_predictive: float
    seconds: float


def streaming(prior: Any, threshold: float, settings: dict[str, Any], rows: Any, held_out: Any):  # type: ignore[no-untyped-def]
    def replicate(number: int) -> Outcome:
        order = np.random.default_rng(number).permutation(rows.shape[0])
        model = StreamingMixture(
            prior, DirichletMultinomial(0.1), new_cluster_threshold=threshold, **settings
        )
        start = time.perf_counter()
        model.fit(rows[order])
        seconds = time.perf_counter() - start
        figure = model.score_samples(held_out).sum()
        expected = -np.expm1(model.state_.log_vacancy).sum()
        return Outcome(figure, model.n_clusters_, expected, figure, seconds)

    return replicate


def gibbs(prior: Any, rows: Any, held_out: Any) -> Callable[[int], Outcome]:
    def replicate(number: int) -> Outcome:
        model = GibbsMixture(
            prior, DirichletMultinomial(0.1), n_sweeps=215, n_kept=50, random_state=number
        )
        start = time.perf_counter()
        model.fit(rows)
        seconds = time.perf_counter() - start
        clusters = model.n_clusters_[:, -50:].mean()
        figure = model.mean_log_likelihood(held_out)
        averaged = model.score_samples(held_out).sum()
        return Outcome(figure, clusters, clusters, averaged, seconds)

    return replicate


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "").parse_args()
    print(f"means and standard errors of {REPLICATES}; {machine()}")
    counts = load_kos().counts
    order = np.random.default_rng(0).permutation(counts.shape[0])
    held_out, rows = counts[order[:HELD_OUT]], counts[order[HELD_OUT:]]
    results = {}
    for prior_name, (prior, threshold) in PRIORS.items():
        jobs = {
            name: streaming(prior, threshold, settings, rows, held_out)
            for name, settings in STREAMING.items()
        }
        jobs["Gibbs 215"] = gibbs(prior, rows, held_out)
        for name, replicate in jobs.items():
            replicate(0)  # compile
            outcomes = np.array([replicate(number) for number in range(REPLICATES)])
            mean, error = outcomes.mean(axis=0), outcomes.std(axis=0, ddof=1) / REPLICATES**0.5
            results[f"{name} {prior_name}"] = {
                "log_predictive": [mean[0], error[0]],
                "clusters": [mean[1], error[1]],
                "expected_clusters": mean[2],
                "log_mean_predictive": mean[3],
                "seconds": mean[4],
            }
            print(
                f"{name:12s} {prior_name:13s} {mean[0]:10.0f} +- {error[0]:4.0f}   "
                f"{mean[1]:6.1f} +- {error[1]:4.1f} clusters, {mean[2]:6.1f} expected   "
                f"{mean[4]:7.2f} s   log of mean {mean[3]:10.0f}",
                flush=True,
            )
    save({"methods": results}, options.json)


if __name__ == "__main__":
    main()
