"""Gaussians with no option given, on raw columns, beside scikit-learn's BayesianGaussianMixture.

Clusters found and adjusted Rand index (ARI), means over five orders of the rows; what is drawn is
drawn anew every time. Then one pass over a stream of 20 000 rows in 20 clusters.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import BayesianGaussianMixture

from bnpstream import DiagonalGaussian, Gaussian, SphericalGaussian, StreamingMixture
from measure import arguments, machine, save

ORDERS = 5
Labelled = tuple[Any, Any]

# Old Faithful: rows, means and covariances of its two clusters (eruptions and waiting, minutes).
FAITHFUL = [
    (97, [2.036, 54.48], [[0.0692, 0.4352], [0.4352, 33.70]]),
    (175, [4.290, 79.97], [[0.1700, 0.9406], [0.9406, 36.05]]),
]


def clusters(n: int, K: int, D: int, apart: float, seed: int) -> Labelled:
    """Return rows of K Gaussians of unit covariance whose centres are N(0, apart^2)."""
    rng = np.random.default_rng(seed)
    centres, labels = apart * rng.normal(size=(K, D)), rng.integers(K, size=n)
    return centres[labels] + rng.normal(size=(n, D)), labels


def faithful(seed: int) -> Labelled:
    rng = np.random.default_rng(seed)
    parts = [rng.multivariate_normal(mean, covariance, n) for n, mean, covariance in FAITHFUL]
    return np.concatenate(parts), np.repeat([0, 1], [len(part) for part in parts])


def offset(seed: int) -> Labelled:
    rows, labels = clusters(600, 4, 3, 6.0, seed)
    return rows + 1e6, labels


def nearly_constant(seed: int) -> Labelled:
    rows, labels = clusters(600, 4, 3, 6.0, seed)
    noise = 5.0 + 1e-9 * np.random.default_rng(seed + 1000).normal(size=600)
    return np.column_stack([rows, noise, np.full(600, 3.0)]), labels


def heavy_tails(seed: int) -> Labelled:
    rows, labels = clusters(600, 4, 3, 8.0, seed)
    return rows + np.random.default_rng(seed + 1000).standard_t(3, size=rows.shape), labels


def outliers(seed: int) -> Labelled:
    rows, labels = datasets.load_iris(return_X_y=True)
    rows = rows.copy()
    rows[np.random.default_rng(seed).choice(150, 2, replace=False)] *= 1000.0
    return rows, labels


def widths(seed: int) -> Labelled:
    rows, labels = clusters(600, 5, 6, 5.0, seed)
    return rows * 10.0 ** np.array([-6, -3, 0, 2, 4, 6]), labels


def correlated(seed: int) -> Labelled:
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=700)
    noise = rng.normal(size=(700, 8)) @ rng.normal(size=(8, 8))
    return 4.0 * rng.normal(size=(4, 8))[labels] + noise, labels


def blobs(seed: int, **options: Any) -> Labelled:
    rows, labels = datasets.make_blobs(600, random_state=seed, **options)
    return rows, labels


def stretched(seed: int) -> Labelled:
    rows, labels = blobs(seed, centers=3)
    return rows @ np.array([[0.6, -0.6], [-0.4, 0.8]]), labels


SETS: dict[str, Callable[[int], Labelled]] = {
    "iris": lambda seed: datasets.load_iris(return_X_y=True),
    "wine": lambda seed: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda seed: datasets.load_breast_cancer(return_X_y=True),
    "Old Faithful, drawn": faithful,
    "offset 1e6": offset,
    "nearly constant columns": nearly_constant,
    "widths 1e-6 to 1e6": widths,
    "blobs": lambda seed: blobs(seed, centers=5),
    "stretched blobs": stretched,
    "blobs of three widths": lambda seed: blobs(seed, centers=3, cluster_std=[1.0, 2.5, 0.5]),
    "correlated columns": correlated,
    "20 clusters in 2 columns": lambda seed: clusters(1500, 20, 2, 25.0, seed),
    "1 column": lambda seed: clusters(400, 3, 1, 12.0, seed),
    "50 columns": lambda seed: clusters(800, 6, 50, 3.0, seed),
    "40 rows, 60 columns": lambda seed: clusters(40, 2, 60, 3.0, seed),
    "one cluster": lambda seed: clusters(500, 1, 4, 0.0, seed),
    "heavy tails": heavy_tails,
    "iris, 2 outliers": outliers,
    "moons": lambda seed: datasets.make_moons(500, noise=0.08, random_state=seed),
    "digits": lambda seed: datasets.load_digits(return_X_y=True),
}


def passes(n_passes: int, **options: Any) -> Callable[[Any, int], Any]:
    def found(rows: Any, seed: int) -> Any:
        model = StreamingMixture(likelihood=Gaussian(), n_passes=n_passes, **options)
        return model.fit(rows).labels_

    return found


def variational(rows: Any, seed: int) -> Any:
    return BayesianGaussianMixture(n_components=20, random_state=seed).fit_predict(rows)


METHODS: dict[str, Callable[[Any, int], Any]] = {
    "one pass": passes(1),
    "10 passes": passes(10),
    "10 passes, merging on the way": passes(10, merge_threshold=0.0),
    "10 passes, no merging": passes(10, merge_threshold=None),
    "BayesianGaussianMixture(20)": variational,
}


def outcome(name: str, method: str, seed: int) -> tuple[float, float]:
    """Return clusters found and ARI."""
    rows, labels = SETS[name](seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at scikit-learn's own defaults
        found = METHODS[method](rows[order], seed)
    return len(np.unique(found)), float(adjusted_rand_score(labels[order], found))


def stream() -> dict[str, Any]:
    """Return what one pass over 20 000 rows finds, by family."""
    rng = np.random.default_rng(7)
    centres = 10.0 * rng.normal(size=(20, 10))
    labels = rng.integers(20, size=20_000)
    rows = centres[labels] + rng.normal(size=(20_000, 10))
    results = {}
    for family in (Gaussian, DiagonalGaussian, SphericalGaussian):
        StreamingMixture(likelihood=family()).fit(rows[:600])  # compile
        start = time.perf_counter()
        model = StreamingMixture(likelihood=family()).fit(rows)
        seconds = time.perf_counter() - start
        nmi = float(normalized_mutual_info_score(labels, model.labels_))
        results[family.__name__] = {"clusters": model.n_clusters_, "nmi": nmi, "seconds": seconds}
    return results


def main() -> None:
    """Print the tables."""
    options = arguments(__doc__ or "").parse_args()
    print(f"clusters and ARI, means over {ORDERS} orders; {machine()}")
    print(f"{'set':25s} true; {'; '.join(METHODS)}")
    results: dict[str, Any] = {}
    for name, draw in SETS.items():
        row: dict[str, Any] = {"true": len(np.unique(draw(0)[1]))}
        for method in METHODS:
            figures = [outcome(name, method, seed) for seed in range(ORDERS)]
            row[method] = np.mean(figures, axis=0).tolist()
        results[name] = row
        shown = "   ".join(f"{row[method][0]:5.1f} {row[method][1]:5.2f}" for method in METHODS)
        print(f"{name:25s} {row['true']:2d}   {shown}", flush=True)
    of_stream = stream()
    for family, figures in of_stream.items():
        print(
            f"{family:18s} {figures['clusters']} clusters, NMI {figures['nmi']:.4f}, "
            f"{figures['seconds']:.2f} s"
        )
    save({"sets": results, "stream": of_stream}, options.json)


if __name__ == "__main__":
    main()
