"""A stream of Gaussians: rows a second and agreement, beside river and scikit-learn.

20 000 rows of 10 numbers from 20 clusters of unit covariance, centres from N(0, 10^2 I), seed 7. We
are given the rows and nothing else; river's DBSTREAM also gets a threshold that suits the scale of
these data, and methods that need a number of clusters get the right one. River learns row by row
from dictionaries made beforehand, for ten seconds at most; the others from one array. Learning only
is timed; agreement is of rows learnt from, as the final model sees them. Then rows a second of
every family against K and D.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import Birch, MiniBatchKMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import BayesianGaussianMixture

from bnpstream import StreamingMixture
from measure import Spread, arguments, machine, save

SECONDS = 10.0
REPETITIONS = 3
FAMILIES = ("gaussian", "diagonal", "spherical", "poisson", "bernoulli", "categorical")

Floats = NDArray[np.float64]
Learner = Callable[[Floats], tuple[int, float, Any]]
"""Rows -> rows learnt from, seconds, their labels."""


def stream(n: int, K: int, D: int, seed: int = 7) -> tuple[Floats, NDArray[np.int64]]:
    """Return rows of K unit Gaussians, and their labels."""
    rng = np.random.default_rng(seed)
    centres = 10.0 * rng.normal(size=(K, D))
    labels = rng.integers(K, size=n)
    return centres[labels] + rng.normal(size=(n, D)), labels


def ours(likelihood: str) -> Learner:
    """Return this package's learner: rows in one call."""

    def learn(X: Floats) -> tuple[int, float, Any]:
        model = StreamingMixture(likelihood=likelihood)
        start = time.perf_counter()
        model.partial_fit(X)
        return len(X), time.perf_counter() - start, model.predict(X)

    return learn


def batch_learner(build: Callable[[], Any]) -> Learner:
    """Return a scikit-learn estimator's learner."""

    def learn(X: Floats) -> tuple[int, float, Any]:
        model = build()
        start = time.perf_counter()
        model.fit(X)
        return len(X), time.perf_counter() - start, model.predict(X)

    return learn


def river_learner(build: Callable[[], Any]) -> Learner:
    """Return a river clusterer's learner: one row after the other."""

    def learn(X: Floats) -> tuple[int, float, Any]:
        rows = [dict(enumerate(row)) for row in X.tolist()]
        model, n, start = build(), 0, time.perf_counter()
        for row in rows:
            model.learn_one(row)
            n += 1
            if n % 100 == 0 and time.perf_counter() - start > SECONDS:
                break
        seconds = time.perf_counter() - start
        seen = rows[: min(n, 2000)]
        return n, seconds, [model.predict_one(row) for row in seen]

    return learn


def learners() -> Iterator[tuple[str, Learner]]:
    """Yield every method that is installed."""
    yield "bnpstream, full covariance", ours("auto")
    yield "bnpstream, diagonal", ours("diagonal")
    yield "bnpstream, spherical", ours("spherical")
    try:
        from river import cluster
    except ImportError:
        print("river is not installed: pip install 'bnpstream[bench]'")
    else:
        yield (
            "river KMeans, 20 clusters given",
            river_learner(lambda: cluster.KMeans(n_clusters=20, seed=7)),
        )
        yield "river KMeans, defaults", river_learner(lambda: cluster.KMeans(seed=7))
        yield (
            "river DBSTREAM, threshold 5 given",
            river_learner(lambda: cluster.DBSTREAM(clustering_threshold=5.0)),
        )
        yield "river DBSTREAM, defaults", river_learner(cluster.DBSTREAM)
        yield (
            "river DenStream, epsilon 5 given",
            river_learner(lambda: cluster.DenStream(epsilon=5.0)),
        )
        yield (
            "river CluStream, 20 clusters given",
            river_learner(lambda: cluster.CluStream(n_macro_clusters=20, seed=7)),
        )
    yield (
        "scikit-learn MiniBatchKMeans, 20 given",
        batch_learner(lambda: MiniBatchKMeans(20, random_state=7, n_init=3)),
    )
    yield "scikit-learn Birch, 20 given", batch_learner(lambda: Birch(n_clusters=20))
    yield (
        "scikit-learn BayesianGaussianMixture, 20",
        batch_learner(lambda: BayesianGaussianMixture(n_components=20, random_state=7)),
    )


def beside(repetitions: int) -> dict[str, Any]:
    """Run all methods in turn, as often as asked for."""
    X, labels = stream(20_000, 20, 10)
    methods = list(learners())
    rates: dict[str, list[float]] = {name: [] for name, _ in methods}
    agreement: dict[str, float] = {}
    StreamingMixture().partial_fit(X)  # compiles
    for _ in range(repetitions):
        for name, learn in methods:
            n, seconds, found = learn(X)
            rates[name].append(n / seconds)
            agreement[name] = normalized_mutual_info_score(labels[: len(found)], found)
    results = {}
    for name, _ in methods:
        results[name] = {"rows_per_second": Spread.of(rates[name]), "nmi": agreement[name]}
        print(
            f"{name:42s} {results[name]['rows_per_second'].show(',.0f'):>32s} rows/s  "
            f"NMI {agreement[name]:.3f}",
            flush=True,
        )
    return results


def table(family: str, K: int, D: int, n: int) -> Any:
    """Return rows that suit a family."""
    X, labels = stream(n, K, D)
    rng = np.random.default_rng(8)
    if family == "poisson":
        return rng.poisson(rng.gamma(1.0, 10.0, size=(K, D))[labels]).astype(float)
    if family == "bernoulli":
        return (rng.random((n, D)) < rng.beta(0.3, 0.3, size=(K, D))[labels]).astype(float)
    if family == "categorical":
        favourite = rng.integers(8, size=(K, D))[labels]
        return np.where(rng.random((n, D)) < 0.8, favourite, rng.integers(8, size=(n, D)))
    return X


def by_size(repetitions: int) -> dict[str, Any]:
    """Time the pass of every family over K and D: encoded rows, a posterior that knows them."""
    results: dict[str, Any] = {}
    for family in FAMILIES:
        for K, D in ((5, 10), (20, 10), (100, 10), (500, 10), (20, 2), (20, 50)):
            rows = table(family, K, D, 6000)
            rates = []
            for _ in range(repetitions):
                model = StreamingMixture(likelihood=family).partial_fit(rows[:3000])
                start = time.perf_counter()
                model.partial_fit(rows[3000:])
                rates.append(3000 / (time.perf_counter() - start))
            found = Spread.of(rates)
            results[f"{family} K={K} D={D}"] = {
                "rows_per_second": found,
                "clusters": model.n_clusters_,
            }
            print(
                f"{family:12s} K={K:<4d} D={D:<3d} {model.n_clusters_:5d} clusters found "
                f"{found.show(',.0f'):>32s} rows/s",
                flush=True,
            )
    return results


def main() -> None:
    options = arguments(__doc__ or "")
    options.add_argument("--repetitions", type=int, default=REPETITIONS)
    chosen = options.parse_args()
    print(f"medians, least and largest of {chosen.repetitions}; {machine()}")
    results = {"beside": beside(chosen.repetitions), "by_size": by_size(chosen.repetitions)}
    save(results, chosen.json)


if __name__ == "__main__":
    main()
