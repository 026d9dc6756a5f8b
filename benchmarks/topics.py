"""Texts with no option given: the topics of one pass, beside peers that are told a number.

Three orders of each corpus. 20 Newsgroups: the training part, words in fewer than 5 documents and
the 100 most frequent ones left out, and again with all words. `stackoverflow`: raw question titles
and their 20 tags, beside KMeans of tf-idf told 20 and GSDMM (Yin & Wang 2014) told 40, with alpha =
beta = .1 as in its paper and 15 sweeps. `newsarticles`: raw prose without labels; the labels of its
fifteen largest topics are printed.

Topics are those of `predict_topics` for the documents of the stream. Documents per second are by
CPU time of one thread, for `partial_fit` and `topics_`: words are split, settings are learnt, rows
are absorbed, and topics are found on the way and, with all effort, at the end. Not counted are
compilation, since a short stream comes before, and the predictions that are scored.
"""

import gzip
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from bnpstream import DocumentMixture, StreamingMixture
from bnpstream.datasets import load_20news
from bnpstream.datasets.local import data_directory
from measure import arguments, cpu_seconds, machine, save
from newsgroups import corpus as pruned_newsgroups
from titles import titles

ORDERS, SHOWN, HOLDING = 3, 15, 0.9
GIVEN, GIVEN_GSDMM, SWEEPS, SMOOTHING = 20, 40, 15, 0.1


def all_newsgroups() -> tuple[Any, Any]:
    found = load_20news("train")
    return found.counts, found.labels


def articles() -> tuple[Any, Any]:
    with gzip.open(data_directory() / "newsarticles" / "articles.jsonl.gz") as lines:
        return [json.loads(line)["text"] for line in lines], None


SETS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "20 Newsgroups, pruned": pruned_newsgroups,
    "20 Newsgroups, all words": all_newsgroups,
    "stackoverflow": titles,
    "newsarticles": articles,
}


def scores(labels: Any, given: Any) -> dict[str, float]:
    return {
        "NMI": float(normalized_mutual_info_score(labels, given)),
        "ARI": float(adjusted_rand_score(labels, given)),
    }


def ours(documents: Any, labels: Any) -> dict[str, Any]:
    """Return what one pass finds, and its speed."""
    model: Any = DocumentMixture() if isinstance(documents, list) else StreamingMixture()
    n = len(documents) if isinstance(documents, list) else documents.shape[0]
    seconds = cpu_seconds(lambda: model.partial_fit(documents))
    seconds += cpu_seconds(lambda: model.topics_)
    topics = model.predict_topics(documents)
    sizes = -np.sort(-np.bincount(topics))
    holding = int(np.searchsorted(np.cumsum(sizes), HOLDING * n)) + 1
    found: dict[str, Any] = scores(labels, topics) if labels is not None else {}
    found |= {"topics": len(model.topics_), "topics that hold 90 %": holding}
    if labels is not None:
        found |= {
            f"{key} of clusters": x for key, x in scores(labels, model.predict(documents)).items()
        }
    found |= {"clusters": model.n_clusters_, "documents per second": n / seconds}
    if labels is None:
        frame = model.topics_frame().sort_values("share", ascending=False)
        found["labels"] = list(frame["label"][:SHOWN])
    return found


def k_means(documents: Any, labels: Any, seed: int) -> dict[str, float]:
    """Return scores of KMeans, told the number of tags."""
    given: Any = None

    def learn() -> None:
        nonlocal given
        rows = TfidfVectorizer().fit_transform(documents)
        given = KMeans(GIVEN, n_init=3, random_state=seed).fit_predict(rows)

    seconds = cpu_seconds(learn)
    return scores(labels, given) | {"documents per second": len(documents) / seconds}


@njit
def add(words: Any, k: int, sign: int, sizes: Any, tokens: Any, counts: Any) -> None:
    """Add a document to a cluster, or take it out."""
    sizes[k] += sign
    tokens[k] += sign * words.size
    for word in words:
        counts[k, word] += sign


@njit
def sweep(
    indptr: Any, words: Any, z: Any, sizes: Any, tokens: Any, counts: Any, draws: Any
) -> None:
    """Draw the cluster of every document once, given those of the others."""
    K, V = counts.shape
    log_p = np.empty(K)
    for d in range(z.size):
        document = words[indptr[d] : indptr[d + 1]]
        add(document, z[d], -1, sizes, tokens, counts)
        for k in range(K):
            log_p[k] = np.log(sizes[k] + SMOOTHING)
            for i, word in enumerate(document):
                again = (document[:i] == word).sum()
                log_p[k] += np.log(counts[k, word] + SMOOTHING + again)
                log_p[k] -= np.log(tokens[k] + V * SMOOTHING + i)
        p = np.cumsum(np.exp(log_p - log_p.max()))
        z[d] = np.searchsorted(p, draws[d] * p[-1])
        add(document, z[d], 1, sizes, tokens, counts)


def gsdmm(documents: Any, labels: Any, seed: int) -> dict[str, float]:
    """Return scores of collapsed Gibbs sampling of a Dirichlet multinomial mixture."""
    rows = CountVectorizer().fit_transform(documents)
    words = np.repeat(rows.indices, rows.data)
    indptr = np.append(0, np.cumsum(np.asarray(rows.sum(axis=1)).ravel()))
    rng = np.random.default_rng(seed)
    z = rng.integers(GIVEN_GSDMM, size=rows.shape[0])
    counts = np.zeros((GIVEN_GSDMM, rows.shape[1]))
    np.add.at(counts, (np.repeat(z, np.diff(indptr)), words), 1.0)
    sizes, tokens = np.bincount(z, minlength=GIVEN_GSDMM).astype(float), counts.sum(axis=1)
    sweep(indptr, words, z[:0], sizes, tokens, counts, rng.random(0))  # compile

    def learn() -> None:
        for _ in range(SWEEPS):
            sweep(indptr, words, z, sizes, tokens, counts, rng.random(z.size))

    seconds = cpu_seconds(learn)
    found = scores(labels, z) | {"documents per second": rows.shape[0] / seconds}
    return found | {"clusters used": int(np.unique(z).size)}


def show(name: str, runs: list[dict[str, Any]]) -> None:
    """Print means and, in brackets, the least and the largest."""
    print(f"  {name}")
    for key in [key for key in runs[0] if key != "labels"]:
        values = [run[key] for run in runs]
        form = ".3f" if key[:3] in ("NMI", "ARI") else ",.0f"
        low, high = min(values), max(values)
        print(f"    {key:24s} {np.mean(values):{form}} ({low:{form}}..{high:{form}})", flush=True)


def main() -> None:
    """Print the tables."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--orders", type=int, default=ORDERS, help="orders of the documents (3)")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options = parser.parse_args()
    print(f"means over {options.orders} orders, least and largest in brackets; {machine()}")
    results: dict[str, Any] = {}
    for name in options.sets:
        documents, labels = SETS[name]()
        raw = isinstance(documents, list)
        runs: dict[str, list[dict[str, Any]]] = {}
        for seed in range(options.orders):
            n = len(documents) if raw else documents.shape[0]
            order = np.random.default_rng(seed).permutation(n)
            rows = [documents[i] for i in order] if raw else documents[order]
            true = None if labels is None else labels[order]
            if seed == 0:
                ours(rows[:1200], None if true is None else true[:1200])  # compile
            runs.setdefault("bnpstream", []).append(ours(rows, true))
            if name == "stackoverflow":
                runs.setdefault(f"KMeans of tf-idf, told {GIVEN}", []).append(
                    k_means(rows, true, seed)
                )
                runs.setdefault(f"GSDMM, told {GIVEN_GSDMM}", []).append(gsdmm(rows, true, seed))
        print(name)
        for method, figures in runs.items():
            show(method, figures)
        for label in runs["bnpstream"][0].get("labels", []):
            print(f"      {label}")
        results[name] = runs
    save(results, options.json)


if __name__ == "__main__":
    main()
