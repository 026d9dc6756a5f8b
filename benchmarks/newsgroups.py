"""20 Newsgroups with no option given, cut to twenty clusters, beside peers that are told K = 20.

The training part, shuffled; words in fewer than 5 documents and the 100 most frequent words are
left out. bnpstream makes one pass with a base measure learnt from the stream. Labels are those of
the same documents: of ours the likeliest cluster at the end, of topic models the largest topic.
gensim and tomotopy (the extra ``bnpstream[bench]``) are left out where they are not installed.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer

from bnpstream import StreamingMixture
from bnpstream.datasets import load_20news
from bnpstream.evaluation import agreement
from measure import arguments, machine, save
from peers_libraries import GensimHDP, TomotopyHDP

RAREST, COMMONEST = 5, 100
K = 20
Labels = NDArray[np.integer]


def corpus() -> tuple[sparse.csr_array[np.int64], Labels]:
    """Return the documents in random order, and their newsgroups."""
    found = load_20news("train")
    counts, labels = found.counts, found.labels
    assert labels is not None
    kept = np.asarray((counts > 0).sum(axis=0)) >= RAREST
    kept[np.argsort(-np.asarray(counts.sum(axis=0)), kind="stable")[:COMMONEST]] = False
    order = np.random.default_rng(0).permutation(counts.shape[0])
    return counts[:, kept][order], labels[order]


def ours(prior: str, rows: Any) -> Iterator[tuple[str, Labels]]:
    """Yield the labels of one pass, and those of its clusters merged into twenty."""
    model = StreamingMixture(prior).fit(rows)
    fine = model.predict_ids(rows)
    yield f"bnpstream, {prior}", fine
    tree = model.merge_tree(K)
    yield f"bnpstream, {prior}, cut to {K}", tree.cut(K)[np.searchsorted(tree.ids, fine)]


def k_means(rows: Any, seed: int, *, tfidf: bool) -> Iterator[tuple[str, Labels]]:
    given = TfidfTransformer().fit_transform(rows) if tfidf else rows
    model = MiniBatchKMeans(K, n_init=3, random_state=seed).fit(given)
    yield f"MiniBatchKMeans, {'tf-idf' if tfidf else 'counts'}, K = {K}, seed {seed}", model.labels_


def lda(rows: Any, seed: int, method: str) -> Iterator[tuple[str, Labels]]:
    model = LatentDirichletAllocation(K, learning_method=method, random_state=seed)
    yield f"LDA, {method}, K = {K}, seed {seed}", model.fit_transform(rows).argmax(axis=1)


def hdp(name: str, learner: Any, rows: Any) -> Iterator[tuple[str, Labels]]:
    class Nobody:
        """Looks at nothing."""

        def look(self) -> None:
            pass

    there = np.flatnonzero(np.asarray(rows.sum(axis=1)))  # tomotopy takes no empty document
    learner.load(rows[there])
    learner.learn(Nobody())
    labels = np.zeros(rows.shape[0], np.intp)
    labels[there] = learner.shares(rows[there]).argmax(axis=1)
    yield name, labels


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "").parse_args()
    rows, truth = corpus()
    print(f"{rows.shape[0]:,} documents, {rows.shape[1]:,} words; {machine()}")
    print(f"{'method':48s} {'clusters':>8s} {'NMI':>6s} {'ARI':>6s} {'seconds':>8s}")
    list(ours("dp", rows[:700]))  # compile
    jobs: list[Callable[[], Iterator[tuple[str, Labels]]]] = [
        lambda: ours("dp", rows),
        lambda: ours("nig", rows),
        *(lambda s=s: k_means(rows, s, tfidf=True) for s in range(3)),
        *(lambda s=s: k_means(rows, s, tfidf=False) for s in range(3)),
        *(lambda m=m: lda(rows, 0, m) for m in ("online", "batch")),
        lambda: hdp("gensim HdpModel", GensimHDP(0), rows),
        lambda: hdp("tomotopy HDPModel", TomotopyHDP(0, iterations=100), rows),
    ]
    results = {}
    for job in jobs:
        start = time.perf_counter()
        try:
            for name, labels in job():
                seconds = time.perf_counter() - start
                scores = agreement(truth, labels)
                figures = {
                    "clusters": int(np.unique(labels).size),
                    "nmi": scores.nmi,
                    "ari": scores.ari,
                    "seconds": seconds,
                }
                results[name] = figures
                print(
                    f"{name:48s} {figures['clusters']:8d} {scores.nmi:6.3f} {scores.ari:6.3f} "
                    f"{seconds:8.1f}",
                    flush=True,
                )
        except ImportError as error:
            print(f"left out: {error}")
    save(results, options.json)


if __name__ == "__main__":
    main()
