"""Multinomial and bursty documents along c, the strength of the base measure: evidence and labels.

20 Newsgroups (as in ``newsgroups.py``), one pass over the training documents in several orders. For
every c, alpha = c m of both models is given, m from all documents, so that no model has to find it;
s of bursty documents is learnt. "learnt" is each model with nothing given: c by prediction for the
multinomial, worth fifty documents for the bursty one. KOS and nyt8447 are judged by a fifth of the
documents, held out. The concentration is learnt, from 100 on.

Clusters that hold 90 % of the documents are counted apart: the others are mostly single documents.
"""

from typing import Any

import numpy as np

from bnpstream import BurstyMultinomial, DirichletMultinomial, StreamingMixture, dirichlet_process
from bnpstream.datasets import load_kos, load_nyt8447
from bnpstream.evaluation import agreement
from bnpstream.likelihoods.multinomial import mean_of
from measure import arguments, machine, save
from newsgroups import corpus

STRENGTHS = {"20news": (500, 1500, 5000, 15000), "kos": (300, 1000, 3000, 10000), "nyt8447": ()}
ORDERS = (1, 2, 3)


def families(rows: Any, strengths: tuple[int, ...]) -> dict[str, Any]:
    """Return both likelihoods, learnt and along c."""
    found: dict[str, Any] = {"multinomial, learnt": "multinomial", "bursty, learnt": "bursty"}
    for c in strengths:
        alpha = c * mean_of(np.asarray(rows.sum(axis=0), np.float64))
        found[f"multinomial, c = {c}"] = DirichletMultinomial(alpha)
        alpha = c * mean_of(np.asarray((rows > 0).sum(axis=0), np.float64))
        found[f"bursty, c = {c}"] = BurstyMultinomial(alpha)
    return found


def measured(likelihood: Any, rows: Any, labels: Any, held_out: Any) -> dict[str, float]:
    """Return what one pass comes to."""
    model = StreamingMixture(dirichlet_process(100.0).learning(), likelihood).partial_fit(rows)
    model.finish()
    shares = np.cumsum(np.sort(model.weights_)[::-1])
    found = {
        "clusters": float(model.n_clusters_),
        "holding 90 %": float(np.searchsorted(shares, 0.9) + 1),
        "evidence a token": model.total_log_evidence_ / rows.sum(),
    }
    if labels is not None:
        scores = agreement(labels, model.predict(rows))
        found |= {"nmi": scores.nmi, "ari": scores.ari}
    if held_out is not None:
        found["held out a token"] = float(model.score_samples(held_out).sum() / held_out.sum())
    return found


def main() -> None:
    """Print a line a model, order and set."""
    parser = arguments(__doc__ or "")
    parser.add_argument("sets", nargs="*", default=list(STRENGTHS), help="20news, kos, nyt8447")
    parser.add_argument("--documents", type=int, default=None, help="of 20news; default all")
    options = parser.parse_args()
    print(machine())
    results: dict[str, list[dict[str, float]]] = {}
    for name in options.sets:
        labels = None
        if name == "20news":
            counts, labels = corpus()
        else:
            counts = {"kos": load_kos, "nyt8447": load_nyt8447}[name]().counts
        for order in ORDERS:
            places = np.random.default_rng(order).permutation(counts.shape[0])
            n_out = 0 if labels is not None else counts.shape[0] // 5
            held_out = counts[places[:n_out]] if n_out else None
            places = places[n_out:][: options.documents if name == "20news" else None]
            rows, truth = counts[places], None if labels is None else labels[places]
            for what, likelihood in families(rows, STRENGTHS[name]).items():
                found = measured(likelihood, rows, truth, held_out)
                results.setdefault(f"{name}, {what}", []).append(found)
                said = ", ".join(f"{key} {value:.4g}" for key, value in found.items())
                print(f"{name}, order {order}, {what}: {said}", flush=True)
    save(results, options.json)


if __name__ == "__main__":
    main()
