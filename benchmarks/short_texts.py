"""Short texts with no option given: no order of the rows ends in a handful of clusters.

Drawn texts of 8 words whose topics follow a power law; 6 to 10 tokens of every document of
20 Newsgroups (words in five documents or more, the hundred commonest left out); the question titles
of `stackoverflow`, all words kept. Every order holds out its last 700 texts.

Beside the default: the point of a grid of (a, c) that predicts the texts held out best in the first
order, given m of all texts, in the same orders. A collapse is an order with an NMI below half of
that point's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from bnpstream import DirichletMultinomial, StreamingMixture, dirichlet_process
from bnpstream.datasets import load_20news
from bnpstream.likelihoods.multinomial import mean_of
from measure import Spread, arguments, cpu_seconds, machine, save
from titles import titles

ORDERS, HELD_OUT = 20, 700
CONCENTRATIONS, STRENGTHS = (1.0, 10.0, 100.0, 1000.0), (30.0, 100.0, 300.0, 1000.0, 30000.0)
RAREST, COMMONEST = 5, 100
Texts = tuple[Any, Any]


def power_law(n: int = 6000, topics: int = 500, words: int = 2000, length: int = 8) -> Texts:
    """Draw texts; sizes of topics, and frequencies of words, follow a power law."""
    rng = np.random.default_rng(20)
    mean = 1.0 / np.arange(1, words + 1)
    theta = rng.dirichlet(50.0 * mean / mean.sum() + 1e-9, size=topics)
    shares = 1.0 / np.arange(1, topics + 1)
    labels = rng.choice(topics, size=n, p=shares / shares.sum())
    return csr_array(rng.multinomial(length, theta[labels])), labels


def newsgroups() -> Texts:
    """Return 6 to 10 tokens of every document that has as many."""
    found, rng = load_20news("train"), np.random.default_rng(20)
    kept = np.asarray((found.counts > 0).sum(axis=0)) >= RAREST
    kept[np.argsort(-np.asarray(found.counts.sum(axis=0)), kind="stable")[:COMMONEST]] = False
    counts = csr_array(found.counts[:, kept])
    rows, columns = [], []
    for i, (start, stop) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        tokens = np.repeat(counts.indices[start:stop], counts.data[start:stop].astype(int))
        size = min(int(rng.integers(6, 11)), tokens.size)
        columns.append(rng.choice(tokens, size, replace=False))
        rows.append(np.full(size, i))
    places = (np.concatenate(rows), np.concatenate(columns))
    return csr_array((np.ones(places[0].size), places), shape=counts.shape), found.labels


def stackoverflow() -> Texts:
    """Return the counts of all words of the titles, and their tags."""
    texts, tags = titles()
    return csr_array(CountVectorizer().fit_transform(texts)), tags.astype(int)


SETS: dict[str, Callable[[], Texts]] = {
    "power law": power_law,
    "20 Newsgroups, 6 to 10 tokens": newsgroups,
    "stackoverflow": stackoverflow,
}


def outcome(model: StreamingMixture, texts: Texts, seed: int) -> dict[str, float]:
    """Return what one order gives; NMI and ARI are of the texts of the stream."""
    counts, labels = texts
    order = np.random.default_rng(seed).permutation(counts.shape[0])
    rows, held_out = counts[order[:-HELD_OUT]], counts[order[-HELD_OUT:]]
    seconds = cpu_seconds(lambda: model.partial_fit(rows))
    found, true = model.predict(rows), labels[order[:-HELD_OUT]]
    return {
        "nmi": float(normalized_mutual_info_score(true, found)),
        "ari": float(adjusted_rand_score(true, found)),
        "clusters": float(model.n_clusters_),
        "held_out": float(model.score_samples(held_out).sum() / held_out.sum()),
        "documents_per_second": rows.shape[0] / seconds,
    }


def fixed(texts: Texts, a: float, c: float) -> StreamingMixture:
    """Return a model that is given a and c, and m of all texts."""
    mean = mean_of(np.asarray(texts[0].sum(axis=0), float).ravel())
    return StreamingMixture(dirichlet_process(a), DirichletMultinomial(c * mean))


def show(name: str, figures: list[dict[str, float]]) -> None:
    print(f"  {name}")
    for key, form in (("nmi", ".3f"), ("ari", ".3f"), ("clusters", ".0f"), ("held_out", ".4f")):
        values = [figure[key] for figure in figures]
        print(f"    {key:9s} mean {np.mean(values):{form}}, {Spread.of(values).show(form)}")
    speed = Spread.of([figure["documents_per_second"] for figure in figures])
    print(f"    {speed.show('.0f')} documents per CPU second", flush=True)


def main() -> None:
    """Print the tables."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--orders", type=int, default=ORDERS, help="orders of the rows (20)")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options = parser.parse_args()
    print(machine())
    results: dict[str, Any] = {}
    for name in options.sets:
        texts = SETS[name]()
        StreamingMixture().fit(texts[0][:1100])  # compile
        grid = {
            (a, c): outcome(fixed(texts, a, c), texts, 0) for a in CONCENTRATIONS for c in STRENGTHS
        }
        a, c = max(grid, key=lambda at: grid[at]["held_out"])
        print(f"{name}: the grid's best point is a = {a:g}, c = {c:g}")
        orders = range(options.orders)
        default = [outcome(StreamingMixture(), texts, seed) for seed in orders]
        best = [outcome(fixed(texts, a, c), texts, seed) for seed in orders]
        show("default", default)
        show("grid's best", best)
        pairs = zip(default, best, strict=True)
        collapses = sum(one["nmi"] < 0.5 * other["nmi"] for one, other in pairs)
        print(f"  {collapses} of {options.orders} orders collapse", flush=True)
        results[name] = {"point": (a, c), "default": default, "best": best, "collapses": collapses}
    save(results, options.json)


if __name__ == "__main__":
    main()
