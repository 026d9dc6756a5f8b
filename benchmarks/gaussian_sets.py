"""Gaussians with no option given, on raw columns, beside scikit-learn's BayesianGaussianMixture.

Clusters that hold more than 1 % of the rows, and adjusted Rand index (ARI), means over five orders
of the rows; what is drawn is drawn anew every time. "No option" is `StreamingMixture()`, which
chooses the family itself: its clusters and its topics. The methods behind it are told to take
a full covariance. A star marks sets where some order has more than twice the true number of
clusters. Then one pass over a stream of 20 000 rows in 20 clusters.
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

ORDERS, LARGE = 5, 0.01
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


def no_option(rows: Any, seed: int) -> Any:
    model = StreamingMixture().fit(rows)
    return model.labels_, model.topic_labels_


def passes(n_passes: int, **options: Any) -> Callable[[Any, int], Any]:
    def found(rows: Any, seed: int) -> Any:
        model = StreamingMixture(likelihood=Gaussian(), n_passes=n_passes, **options)
        return (model.fit(rows).labels_,)

    return found


def variational(rows: Any, seed: int) -> Any:
    return (BayesianGaussianMixture(n_components=20, random_state=seed).fit_predict(rows),)


METHODS: dict[str, tuple[list[str], Callable[[Any, int], Any]]] = {
    "no option": (["no option", "its topics"], no_option),
    "one pass": (["one pass"], passes(1)),
    "10 passes": (["10 passes"], passes(10)),
    "merging": (["10 passes, merging on the way"], passes(10, merge_threshold=0.0)),
    "no merging": (["10 passes, no merging"], passes(10, merge_threshold=None)),
    "peer": (["BayesianGaussianMixture(20)"], variational),
}


def outcomes(name: str, method: str, seed: int) -> list[tuple[float, float]]:
    """Return the number of large clusters and ARI, for each of the groupings of a method."""
    rows, labels = SETS[name](seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at scikit-learn's own defaults
        groupings = METHODS[method][1](rows[order], seed)
    figures = []
    for found in groupings:
        _, sizes = np.unique(found, return_counts=True)
        n_large = np.count_nonzero(sizes > LARGE * len(labels))
        figures.append((float(n_large), float(adjusted_rand_score(labels[order], found))))
    return figures


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
    parser = arguments(__doc__ or "")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    print(f"clusters above 1 % of the rows and ARI, means over {ORDERS} orders; {machine()}")
    columns = [column for method in options.methods for column in METHODS[method][0]]
    print(f"{'set':25s} true; {'; '.join(columns)}")
    results: dict[str, Any] = {}
    for name in options.sets:
        true = len(np.unique(SETS[name](0)[1]))
        row: dict[str, Any] = {"true": true}
        shown = []
        for method in options.methods:
            found = np.array([outcomes(name, method, seed) for seed in range(ORDERS)])
            for column, figures in zip(METHODS[method][0], found.swapaxes(0, 1), strict=True):
                row[column] = figures.mean(axis=0).tolist()
                mark = "*" if figures[:, 0].max() > 2 * true else " "
                shown.append(f"{row[column][0]:5.1f}{mark} {row[column][1]:5.2f}")
        results[name] = row
        print(f"{name:25s} {true:2d}   {'  '.join(shown)}", flush=True)
    of_stream = stream()
    for family, figures in of_stream.items():
        print(
            f"{family:18s} {figures['clusters']} clusters, NMI {figures['nmi']:.4f}, "
            f"{figures['seconds']:.2f} s"
        )
    save({"sets": results, "stream": of_stream}, options.json)


if __name__ == "__main__":
    main()
