"""A vocabulary that grows beside one that is known in advance: log evidence and held-out scores.

Five orders of a fixed split, a fifth held out; NIG(10, 100). Words of held-out documents that were
never seen are given numbers and alphas as if they came next, so that both models score the same
event: which words a document has, and how often.
"""

from typing import Any, NamedTuple

import numpy as np

from bnpstream import (
    DirichletMultinomial,
    DocumentMixture,
    StreamingMixture,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import bars, load_20news, load_kos
from measure import arguments, machine, save

ORDERS = 5
NIG = normalized_inverse_gaussian(10, 100)
CORPORA = {
    "KOS": lambda: load_kos().counts,
    "20 Newsgroups": lambda: load_20news("train").counts,
    "bars, 2000 images of 64 pixels": lambda: bars(n_images=2000, seed=0).counts,
}


class Outcome(NamedTuple):
    """One order."""

    evidence: float
    """Summed one-step-ahead log predictive of the rows learnt."""
    held_out: float
    n_clusters: int
    words: int
    """g: words of the first documents."""


def closed(alpha: float, train: Any, held_out: Any) -> Outcome:
    model = StreamingMixture(NIG, DirichletMultinomial(alpha)).partial_fit(train)
    scores = model.score_samples(held_out)
    return Outcome(model.total_log_evidence_, scores.sum(), model.n_clusters_, 0)


def growing(spread: float | None, train: Any, held_out: Any) -> Outcome:
    model = DocumentMixture(NIG, spread=spread).partial_fit(documents(train))
    model.vocabulary_.add(documents(held_out))
    scores = model.score_samples(documents(held_out))
    words = int(model.vocabulary_.base.spread)
    return Outcome(model.total_log_evidence_, scores.sum(), model.n_clusters_, words)


def documents(counts: Any) -> list[dict[int, int]]:
    bounds = zip(counts.indptr[:-1], counts.indptr[1:], strict=True)
    return [
        {int(w): int(x) for w, x in zip(counts.indices[a:b], counts.data[a:b], strict=True)}
        for a, b in bounds
    ]


METHODS = {
    "known, alpha .1": lambda *rows: closed(0.1, *rows),
    "known, alpha .02": lambda *rows: closed(0.02, *rows),
    "growing, defaults": lambda *rows: growing(None, *rows),
    "growing, g = 1000": lambda *rows: growing(1000.0, *rows),
    "growing, g = 10000": lambda *rows: growing(10000.0, *rows),
}


def main() -> None:
    """Print a line a method."""
    options = arguments(__doc__ or "").parse_args()
    print(f"mean and standard error over {ORDERS} orders; {machine()}")
    results: dict[str, Any] = {}
    for corpus, load in CORPORA.items():
        try:
            counts = load().tocsr()
        except FileNotFoundError as error:
            print(f"{corpus}: {error}")
            continue
        split = np.random.default_rng(0).permutation(counts.shape[0])
        held_out, rest = np.split(split, [counts.shape[0] // 5])
        for method, run in METHODS.items():
            orders = [np.random.default_rng((1, i)).permutation(rest) for i in range(ORDERS)]
            found = np.array([run(counts[order], counts[held_out]) for order in orders])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(ORDERS)
            shown = [f"{m:12,.0f} +- {e:6,.0f}" for m, e in zip(mean, error, strict=True)]
            print(f"{corpus:32s} {method:20s} " + "  ".join(shown), flush=True)
            results[f"{corpus}, {method}"] = {
                name: [float(m), float(e)]
                for name, m, e in zip(Outcome._fields, mean, error, strict=True)
            }
    save({"outcomes": results}, options.json)


if __name__ == "__main__":
    main()
