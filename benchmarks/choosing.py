"""Figures and pictures of docs/choosing.md: priors, learning, passes, coarse and fine.

Priors: what four of them expect of 100 to a million rows, all of them 200 clusters in 10 000; sizes
of clusters by rank, medians of nine draws of 10 000 rows.

Learning and passes: 4 000 documents of 25 words, drawn from some 130 clusters with power-law sizes;
the last 1 000 are held out, the others come in three orders. Fixed alphas against a learnt base
measure; one pass, windows and several passes, with DP and NIG.

Forgetting where nothing drifts: digits and these documents, in random orders.

Digits: scikit-learn's, as counts, one pass without options, cut from coarse to fine.
"""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from bnpstream import (
    DirichletMultinomial,
    PitmanYor,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
    normalized_stable,
)
from bnpstream.datasets import Dataset, digits, synthetic_corpus
from choosing_charts import draw_coarse, draw_learning, draw_priors
from measure import arguments, machine, save

N_CLUSTERS, N_ROWS, DRAWS = 200, 10_000, 9
GROWTH = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
STABLE = 0.5626
"""The discount with which a stable process, which has no other parameter, expects 200."""
HELD_OUT, ORDERS = 1000, 3
EARLY, LATE = 500, 1000
"""First and last rows of which it is counted how many are labelled with their kind."""
ALPHAS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
WAYS: dict[str, dict[str, Any]] = {
    "one pass": {},
    "window of 300": {"revisit": 300},
    "window of 1 000": {"revisit": 1000},
    "2 passes": {"n_passes": 2},
    "5 passes": {"n_passes": 5},
    "20 passes": {"n_passes": 20},
    "one pass, merging at even odds": {"merge_threshold": 0.0},
    "one pass, 50 clusters at most": {"max_clusters": 50},
}
GROUPS = (2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100)
SHOWN = 10


def priors() -> list[dict[str, Any]]:
    """Return growth and sizes of every prior; the stable one is drawn as the same Pitman-Yor."""
    stable = normalized_stable(STABLE)
    compared = [
        ("Dirichlet process", dirichlet_process(), None),
        ("Pitman-Yor, discount .25", PitmanYor(1.0, 0.25), None),
        ("NIG, discount .5", normalized_inverse_gaussian(), None),
        ("stable, discount .56", stable, PitmanYor(0.0, STABLE)),
    ]
    results = []
    for name, given, drawn in compared:
        prior = given if drawn else given.with_expected_clusters(N_CLUSTERS, n=N_ROWS)
        rng = np.random.default_rng(0)
        draws = [(drawn or prior).sample_partition(N_ROWS, rng) for _ in range(DRAWS)]
        sizes = np.zeros((DRAWS, N_ROWS))
        for row, labels in zip(sizes, draws, strict=True):
            counts = np.sort(np.bincount(labels))[::-1]
            row[: counts.size] = counts
        by_rank = np.median(sizes, axis=0)
        results.append(
            {
                "name": name,
                "prior": repr(prior),
                "expected": [prior.expected_clusters(n) for n in GROWTH],
                "sizes": by_rank[by_rank > 0].tolist(),
            }
        )
        alone = int((by_rank == 1).sum())
        expected = [round(x) for x in results[-1]["expected"]]
        print(f"{name}: {expected}; largest {by_rank[0]:.0f}, {alone} of one row")
    return results


def short_documents() -> Dataset:
    """Return the corpus that learning and passes are tried on."""
    prior = PitmanYor(1.0, 0.4).with_expected_clusters(100, n=4000)
    return synthetic_corpus(4000, 2000, mean_length=25, word_concentration=300, prior=prior)


def tried(corpus: Dataset, *given: Any, **settings: Any) -> dict[str, float]:
    """Return means over the orders of a model with these parameters."""
    counts, labels = corpus.counts, corpus.labels
    held_out, found = counts[-HELD_OUT:], []
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(counts.shape[0] - HELD_OUT)
        model = StreamingMixture(*given, **settings).fit(counts[order])
        arrived, settled = model.labels_, model.predict(counts[order])
        agreements = [
            normalized_mutual_info_score(labels[order], placed) for placed in (arrived, settled)
        ]
        right = among_its_kind(labels[order], arrived)
        shares = right[:EARLY].mean(), right[-LATE:].mean()
        found.append((model.score(held_out), model.n_clusters_, *agreements, *shares))
    names = ("held_out", "clusters", "nmi_arrived", "nmi", "early", "late")
    return dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))


def among_its_kind(kinds: Any, labels: Any) -> Any:
    """Return for every row whether its cluster is mostly of its own kind."""
    kinds = np.unique(kinds, return_inverse=True)[1]
    return contingency_matrix(kinds, labels).argmax(axis=0)[labels] == kinds


def learning(corpus: Dataset) -> dict[str, Any]:
    """Return what fixed alphas come to, and what is learnt."""
    fixed = [
        {"alpha": alpha} | tried(corpus, "dp", DirichletMultinomial(alpha)) for alpha in ALPHAS
    ]
    learnt = tried(corpus)
    for record in [*fixed, {"alpha": "learnt"} | learnt]:
        print(_line(f"alpha {record['alpha']}", record))
    labels = corpus.labels[:-HELD_OUT]
    return {"fixed": fixed, "learnt": learnt, "true_clusters": int(np.unique(labels).size)}


def passes(corpus: Dataset) -> list[dict[str, Any]]:
    """Return what looking again is worth, with either prior."""
    results = []
    for prior in ("dp", "nig"):
        for way, settings in WAYS.items():
            results.append({"prior": prior, "way": way} | tried(corpus, prior, **settings))
            print(_line(f"{prior}, {way}", results[-1]))
    return results


def forgetting(corpus: Dataset) -> list[dict[str, Any]]:
    """Return what forgetting is worth, in nats per row one step ahead, where nothing drifts."""
    pixels, results = digits().counts, []
    for name, counts, half_life, n_orders in (
        ("digits", pixels, 300, 4),
        ("documents", corpus.counts, 1000, ORDERS),
    ):
        for seed in range(n_orders):
            rows = counts[np.random.default_rng(seed).permutation(counts.shape[0])]
            kept, faded = (
                StreamingMixture(half_life=half).partial_fit(rows).total_log_evidence_
                for half in (None, half_life)
            )
            gain = (faded - kept) / rows.shape[0]
            results.append({"data": name, "half_life": half_life, "seed": seed, "gain": gain})
            print(f"{name}, order {seed}: half-life {half_life} gains {gain:.2f} nats per row")
    return results


def coarse() -> dict[str, Any]:
    """Return clusters of the digits, and how well groups of them agree with what was written."""
    data = digits()
    order = np.random.default_rng(0).permutation(data.counts.shape[0])
    counts, labels = data.counts[order], data.labels[order]
    fine = StreamingMixture().fit(counts)
    cuts = []
    for n in (*GROUPS, fine.n_clusters_):
        model = fine.coarsened(n)
        scores = (
            score(labels, model.labels_)
            for score in (normalized_mutual_info_score, adjusted_rand_score)
        )
        cuts.append(dict(zip(("groups", "nmi", "ari"), (n, *scores), strict=True)))
        print("digits", cuts[-1])
    return {"fine": _pictures(fine), "groups": _pictures(fine.coarsened(SHOWN)), "cuts": cuts}


def _pictures(model: StreamingMixture) -> dict[str, Any]:
    return {"means": model.means_.tolist(), "weights": model.weights_.tolist()}


def _line(name: str, record: dict[str, Any]) -> str:
    return (
        f"{name:36s} {record['held_out']:8.2f} nats per document  "
        f"{record['clusters']:6.1f} clusters  NMI {record['nmi']:.3f}, "
        f"of labels_ {record['nmi_arrived']:.3f}; "
        f"early {record['early']:.3f}, late {record['late']:.3f} among their kind"
    )


def main() -> None:
    """Print every figure."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--charts", type=Path, metavar="FOLDER", help="draw the pictures there")
    options = parser.parse_args()
    print(machine())
    corpus = short_documents()
    results = {
        "growth": GROWTH,
        "priors": priors(),
        "learning": learning(corpus),
        "passes": passes(corpus),
        "forgetting": forgetting(corpus),
        "coarse": coarse(),
    }
    save(results, options.json)
    if options.charts is not None:
        draw_priors(results["growth"], results["priors"], options.charts / "choosing-priors.svg")
        draw_learning(results["learning"], options.charts / "choosing-learning.svg")
        draw_coarse(results["coarse"], options.charts / "choosing-coarse.svg")


if __name__ == "__main__":
    main()
