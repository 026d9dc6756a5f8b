"""What is learnt with no option given: KOS held out, the cost of learning, and a curve on nyt8447.

KOS: the fixed split (`default_rng(0).permutation(3430)`, the first 686 held out), five orders of
the rest. The cost is the time of the pass that learns over that of a pass from the same rows with
what it learnt in the end given from the start, less one: CPU seconds of one thread, the two in
turn, and beside it what the learner's own methods take of the pass.

nyt8447: random order, the last 1 500 held out; the log predictive a token of these after every
1 000 documents, learnt against alpha .5.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bnpstream import DirichletMultinomial, StreamingMixture, dirichlet_process
from bnpstream.datasets import load_kos, load_nyt8447
from bnpstream.search import Learner
from measure import Spread, arguments, cpu_seconds, machine, save

ORDERS, REPEATS = 5, 7
SETTINGS: dict[str, dict[str, Any]] = {
    "one pass": {},
    "revisit 1000": {"revisit": 1000},
    "10 passes": {"n_passes": 10},
}
EVERY, HELD_OUT = 1000, 1500


def kos() -> tuple[Any, Any]:
    """Return the rows of the stream, and those held out."""
    counts = load_kos().counts
    order = np.random.default_rng(0).permutation(counts.shape[0])
    return counts[order[686:]], counts[order[:686]]


def held_out_figures() -> dict[str, Any]:
    """Return log predictive, clusters and seconds of every setting."""
    rows, held_out = kos()
    StreamingMixture().fit(rows[:600])  # compile
    results = {}
    for name, settings in SETTINGS.items():
        found = []
        for seed in range(ORDERS):
            order = np.random.default_rng(seed).permutation(rows.shape[0])
            start = time.perf_counter()
            model = StreamingMixture(**settings).fit(rows[order])
            seconds = time.perf_counter() - start
            figure = float(model.score_samples(held_out).sum())
            found.append((figure, model.n_clusters_, seconds))
        mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(ORDERS)
        results[name] = {
            "log_predictive": mean[0],
            "standard_error": error[0],
            "clusters": mean[1],
            "seconds": mean[2],
        }
        print(f"KOS {name:14s} {mean[0]:10.0f} +- {error[0]:.0f}  {mean[1]:6.1f}  {mean[2]:.2f} s")
    return results


@contextmanager
def counted(spent: list[float]) -> Iterator[None]:
    """Add up the CPU seconds of what learns."""
    methods = {name: getattr(Learner, name) for name in ("first", "watch", "again")}
    for name, method in methods.items():

        def timed(self: Learner, *given: Any, method: Any = method) -> Any:
            start = time.thread_time()
            result = method(self, *given)
            spent.append(time.thread_time() - start)
            return result

        setattr(Learner, name, timed)
    yield
    for name, method in methods.items():
        setattr(Learner, name, method)


def cost() -> dict[str, Any]:
    """Return what learning adds to a pass."""
    rows, _ = kos()
    more, share = [], []
    for seed in range(REPEATS):
        order = np.random.default_rng(seed).permutation(rows.shape[0])
        given, model = rows[order], StreamingMixture()
        with counted(spent := []):
            learning = cpu_seconds(lambda: model.partial_fit(given))  # noqa: B023
        prior = dirichlet_process(model.prior_.concentration)
        known = StreamingMixture(prior, model.likelihood_)
        without = cpu_seconds(lambda: known.partial_fit(given))  # noqa: B023
        more.append(learning / without - 1.0)
        share.append(sum(spent) / (learning - sum(spent)))
    print(f"learning adds {Spread.of(more).show()} to a pass with what it learns given")
    print(f"its own methods take {Spread.of(share).show()} of the rest of the pass")
    return {"more_than_given": more, "own_share": share}


def curve() -> dict[str, Any]:
    """Return the held-out log predictive a token after every 1 000 documents."""
    counts = load_nyt8447().counts
    order = np.random.default_rng(0).permutation(counts.shape[0])
    rows, held_out = counts[order[:-HELD_OUT]], counts[order[-HELD_OUT:]]
    tokens = float(held_out.sum())
    models = {
        "learnt": StreamingMixture(),
        "alpha .5": StreamingMixture(likelihood=DirichletMultinomial(0.5)),
    }
    seen = list(range(EVERY, rows.shape[0] + 1, EVERY))
    results: dict[str, Any] = {"documents": seen}
    for name, model in models.items():
        results[name] = []
        for stop in seen:
            model.partial_fit(rows[stop - EVERY : stop])
            results[name].append(float(model.score_samples(held_out).sum()) / tokens)
        shown = " ".join(f"{figure:.4f}" for figure in results[name])
        print(f"nyt8447 {name:9s} {shown}   {model.n_clusters_} clusters")
    return results


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw the curve."""
    import matplotlib.pyplot as plt

    from bnpstream.plots.style import BLUE, ORANGE, tidy

    figure, ax = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
    tidy(ax)
    for name, colour, mark in (("learnt", BLUE, "o"), ("alpha .5", ORANGE, "s")):
        ax.plot(results["documents"], results[name], color=colour, marker=mark, label=name)
    ax.set_xlabel("documents seen")
    ax.set_ylabel("held-out log predictive, nats per token")
    ax.legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    """Print the figures."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the curve")
    options = parser.parse_args()
    print(f"{machine()}")
    results = {"kos": held_out_figures(), "cost": cost(), "nyt8447": curve()}
    if options.picture is not None:
        draw(results["nyt8447"], options.picture)
    save(results, options.json)


if __name__ == "__main__":
    main()
