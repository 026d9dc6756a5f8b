"""Descriptions of runs, as fitted models give them."""

from dataclasses import replace

import numpy as np

from bnpstream import DirichletMultinomial, StreamingMixture, normalized_inverse_gaussian
from bnpstream.datasets import bars, digits
from bnpstream.mixture import Event
from bnpstream.runs.description import ClusterDescription, Exemplar, Feature, RunDescription

N_BINS = 64

SETTINGS = {
    "model": {
        "prior": "nig",
        "concentration": 10.0,
        "tilt": 100.0,
        "alpha": 0.1,
        "engine": "auto",
        "merge_threshold": None,
    },
    "source": {"paths": ["docword.kos.txt.gz"], "format": "uci", "vocab": "vocab.kos.txt"},
}
VERSIONS = {"bnpstream": "0.1.0", "numpy": "2.4.6", "python": "3.11.7", "numba": "0.68.1"}


def describe(model, X, name, kind, names, *, image_shape=None, excerpt=lambda row: ""):
    """Feed rows to a model a bin at a time, and say what was found."""
    n = X.shape[0]
    ends = np.unique(np.linspace(0, n, N_BINS + 1).astype(int)[1:])
    evidence, clusters, labels = [], [], []
    for start, end in zip(np.append(0, ends[:-1]), ends, strict=True):
        model.partial_fit(X[start:end])
        evidence.append(float(model.log_evidence_.mean()))
        clusters.append(model.n_clusters_)
        labels.append(model.label_ids_)
    ids, weights, means = model.cluster_ids_, model.weights_, model.means_
    births = {e.id: e.n_observations for e in model.lineage_ if e.kind == "birth"}
    of_all = weights @ means
    responsibilities = model.predict_proba(X)
    found = []
    for k in np.argsort(-weights, kind="stable"):
        if kind == "columns":
            lifts = (means[k] - of_all) / (means.std(axis=0) + 1e-12)
            by_lift = np.argsort(-np.abs(lifts), kind="stable")[:20]
        else:
            lifts = means[k] / of_all
            matter = np.argsort(-means[k], kind="stable")[:200]
            by_lift = matter[np.argsort(-lifts[matter], kind="stable")][:20]
        by_value = np.argsort(-means[k], kind="stable")[:20]
        best = np.argsort(-responsibilities[:, k], kind="stable")[:5]
        found.append(
            ClusterDescription(
                id=int(ids[k]),
                weight=float(weights[k]),
                size=float(weights[k] * n),
                born=births.get(int(ids[k])),
                likely=[Feature(names[v], float(means[k, v]), float(lifts[v])) for v in by_value],
                lifted=[Feature(names[v], float(means[k, v]), float(lifts[v])) for v in by_lift],
                exemplars=[
                    Exemplar(int(i), int(i), float(responsibilities[i, k]), excerpt(i))
                    for i in best
                ],
                trend=[int((part == ids[k]).sum()) for part in labels],
                mean=means[k].tolist() if kind == "pixels" else None,
            )
        )  # fmt: skip
    return RunDescription(
        name=name,
        kind=kind,
        finished=True,
        rows=n,
        records=n + 17,
        rejects=17,
        tokens=int(X.sum()) if kind == "words" else None,
        seconds=2.4,
        log_evidence=model.total_log_evidence_,
        n_clusters=model.n_clusters_,
        clusters=found,
        bin_ends=ends.tolist(),
        bin_evidence=evidence,
        bin_clusters=clusters,
        events=list(model.lineage_),
        reject_reasons=[("a word index beyond the vocabulary", 12), ("a negative count", 5)],
        settings=SETTINGS,
        versions=VERSIONS,
        image_shape=image_shape,
    )


def bars_run(n_images=600):
    """Return a run over the paper's bars."""
    X = bars(n_images=n_images, seed=0).counts
    model = StreamingMixture(normalized_inverse_gaussian(10, 100), DirichletMultinomial(0.5))
    names = [f"pixel {i // 8}, {i % 8}" for i in range(64)]
    return describe(model, X, "bars", "pixels", names, image_shape=(8, 8))


def digits_run():
    """Return a run over scikit-learn's digits."""
    data = digits()
    X = data.counts[np.random.default_rng(0).permutation(data.counts.shape[0])]
    model = StreamingMixture(normalized_inverse_gaussian(1, 1), DirichletMultinomial(2.0))
    return describe(model, X, "digits", "pixels", data.feature_names, image_shape=(8, 8))


def columns_run():
    """Return a run over numbers in columns."""
    from sklearn.datasets import load_wine

    wine = load_wine()
    X = wine.data[np.random.default_rng(0).permutation(len(wine.data))]
    model = StreamingMixture(likelihood="diagonal", prefix_rows=20)
    model.fit(X)
    model = StreamingMixture(likelihood=model.likelihood_)
    return describe(
        model, X, "wine", "columns", wine.feature_names,
        excerpt=lambda i: ", ".join(f"{wine.feature_names[v]} {X[i, v]:g}" for v in range(4)),
    )  # fmt: skip


def corpus_run(data, name="kos-run"):
    """Return a run over a corpus."""
    X, names = data.counts, data.feature_names

    def commonest(i):
        row = X[[i]].tocoo()
        order = np.argsort(-row.data, kind="stable")[:24]
        return " ".join(names[v] for v in row.coords[1][order])

    model = StreamingMixture(normalized_inverse_gaussian(10, 100), DirichletMultinomial(0.1))
    return describe(model, X, name, "words", names, excerpt=commonest)


def many_clusters_run(n_clusters):
    """Return a run with invented clusters, as many as asked for, whose texts are long."""
    ends = [1000 * (i + 1) for i in range(N_BINS)]
    weights = 1.0 / np.arange(1, n_clusters + 1)
    weights /= weights.sum()
    clusters = [
        ClusterDescription(
            id=3 * k + 1,
            weight=float(weights[k]),
            size=float(64000 * weights[k]),
            born=int(k * 64000 // n_clusters),
            likely=[Feature(f"word{k}-{i}-" + 30 * "é", 0.1 / (i + 1), 2.0) for i in range(20)],
            lifted=[Feature(f"lift{k}-{i}-" + 30 * "é", 0.01, 30.0 / (i + 1)) for i in range(20)],
            exemplars=[Exemplar(i, f"record-{i}", 1.0, "long " * 200) for i in range(8)],
            trend=[(k + 7 * i) % 50 for i in range(N_BINS)],
        )
        for k in range(n_clusters)
    ]
    return RunDescription(
        name="many", kind="words", finished=False, rows=64000, records=64000, rejects=0,
        tokens=6_400_000, seconds=7301.0, log_evidence=-6.4e6, n_clusters=n_clusters,
        clusters=clusters, bin_ends=ends, bin_evidence=[-100.0] * N_BINS,
        bin_clusters=[n_clusters] * N_BINS,
        events=[Event("birth", c.id, None, c.born, 1.0) for c in clusters],
        settings=SETTINGS, versions=VERSIONS,
    )  # fmt: skip


def small_run(**changes):
    """Return a run of three clusters, made by hand: every number can be told at sight."""
    clusters = [
        ClusterDescription(
            id=id,
            weight=weight,
            size=400 * weight,
            born=born,
            likely=[Feature(first, 0.25, 3.0), Feature("the", 0.125, 1.0)],
            lifted=[Feature(f"{first}-most", 0.0625, 12.0), Feature(first, 0.25, 3.0)],
            exemplars=[Exemplar(id, f"doc-{id}", 1.0, f"{first} and the rest")],
            trend=trend,
        )
        for id, weight, born, first, trend in (
            (7, 0.5, 1, "rain", [100, 50, 40, 10]),
            (2, 0.375, 50, "stocks", [0, 50, 40, 60]),
            (12, 0.125, 301, "goal", [0, 0, 20, 30]),
        )
    ]
    run = RunDescription(
        name="small", kind="words", finished=True, rows=400, records=404, rejects=4, tokens=4000,
        seconds=75.0, log_evidence=-12000.0, n_clusters=3, clusters=clusters,
        bin_ends=[100, 200, 300, 400], bin_evidence=[-40.0, -30.0, -26.0, -24.0],
        bin_clusters=[1, 2, 2, 3],
        events=[
            Event("birth", 7, None, 1, 1.0), Event("birth", 2, None, 50, 1.0),
            Event("birth", 3, None, 60, 1.0), Event("merge", 3, 2, 150, 4.0),
            Event("birth", 4, None, 210, 1.0), Event("death", 4, None, 260, 0.01),
            Event("birth", 12, None, 301, 1.0),
        ],
        reject_reasons=[("broken JSON", 3), ("a negative count", 1)],
        settings=SETTINGS, versions=VERSIONS,
    )  # fmt: skip
    return replace(run, **changes)
