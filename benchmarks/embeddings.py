"""Vectors with no option given: one pass of StreamingMixture beside MiniBatchKMeans told K.

NMI, ARI and clusters, means and standard deviations over three orders of the rows; labels by
`predict` at the end, those of topics by `predict_topics`. StackOverflow titles (WordLlama, 256
numbers), LSA of 20 Newsgroups (TruncatedSVD of sublinear tf-idf, unit rows) and scikit-learn's
digits as raw numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from bnpstream import StreamingMixture
from bnpstream.datasets import data_directory, load_20news
from measure import arguments, cpu_seconds, machine, save
from titles import titles

ORDERS = 3
Labelled = tuple[Any, Any]


def stackoverflow() -> Labelled:
    """Return unit rows of 256 numbers."""
    file = np.load(data_directory() / "stackoverflow" / "wordllama256.npz")
    return normalize(file["embeddings"].astype(np.float32)), titles()[1]


def lsa(n_columns: int) -> Labelled:
    """Return 20 Newsgroups by singular vectors of tf-idf."""
    news = load_20news()
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(news.counts)
    vectors = TruncatedSVD(n_columns, random_state=0).fit_transform(weights)
    return normalize(vectors).astype(np.float32), np.asarray(news.labels)


def raw_digits() -> Labelled:
    """Return 64 grey values a row, as they are."""
    rows, labels = load_digits(return_X_y=True)
    return rows, labels


SETS: dict[str, Callable[[], Labelled]] = {
    "StackOverflow": stackoverflow,
    "LSA-100": lambda: lsa(100),
    "LSA-300": lambda: lsa(300),
    "digits": raw_digits,
}


def outcomes(rows: Any, labels: Any, seed: int) -> dict[str, list[float]]:
    """Return NMI, ARI, clusters and seconds of one order."""
    order = np.random.default_rng(seed).permutation(len(rows))
    X, y = rows[order], labels[order]
    ours = StreamingMixture()
    told = MiniBatchKMeans(len(np.unique(y)), batch_size=1024, n_init=1, random_state=seed)
    found = {}
    for name, model in (("StreamingMixture", ours), ("MiniBatchKMeans", told)):
        seconds = cpu_seconds(lambda model=model: model.fit(X))  # type: ignore[misc]
        given = model.predict(X)
        scores = normalized_mutual_info_score(y, given), adjusted_rand_score(y, given)
        found[name] = [*map(float, scores), float(len(np.unique(given))), seconds]
    seconds = cpu_seconds(lambda: ours.topics_)
    given = ours.predict_topics(X)
    scores = normalized_mutual_info_score(y, given), adjusted_rand_score(y, given)
    found["topics"] = [*map(float, scores), float(len(np.unique(given))), seconds]
    return found


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "").parse_args()
    print(f"NMI, ARI, clusters and seconds, means over {ORDERS} orders; {machine()}")
    results: dict[str, Any] = {}
    for name, load in SETS.items():
        try:
            rows, labels = load()
        except FileNotFoundError as error:
            print(f"{name}: {error}")
            continue
        orders = [outcomes(rows, labels, seed) for seed in range(ORDERS)]
        for method in orders[0]:
            figures = np.array([order[method] for order in orders])
            results[f"{name}, {method}"] = figures.tolist()
            shown = zip(figures.mean(axis=0), figures.std(axis=0), strict=True)
            print(
                f"{name:14s} {method:17s}", *(f"{m:8.3f} ({s:.3f})" for m, s in shown), flush=True
            )
    save(results, options.json)


if __name__ == "__main__":
    main()
