"""A stream whose topics change twice, with and without forgetting.

Documents of some 60 words come from ten topics, which all change after 10 000 rows and again after
20 000. "New words": the topics that come have words of their own. "New meanings": every topic gives
a fifth of its words away and gets words of others, so that old clusters fit the new documents half
well. A fifth of all words of a document are from a list that topics share and that stays.

How well every row was foretold is compared with the true model of its phase: 0 is perfect.
"""

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter
from scipy.sparse import csr_array, vstack
from scipy.special import gammaln, logsumexp

from bnpstream import StreamingMixture
from measure import arguments, machine, save

WORDS, SHARED, TOPICS, LENGTH, PHASES = 1000, 100, 10, 60, 3
SHARE_OF_SHARED, CHANGED = 0.2, 0.2
HALF_LIVES = (None, 500, 2000)
BIN = 250
NEAR = 0.1
"""Nats per token from the truth that count as recovered."""
STREAMS = ("new words", "new meanings")
COLOURS = {None: "#555555", 500: "#d55e00", 2000: "#0072b2"}
LINES = {None: (0, (4, 1.5)), 500: "-", 2000: "-"}


class Stream(NamedTuple):
    """Documents, and how likely each is under the true model."""

    counts: csr_array
    log_truth: Any
    n_tokens: Any


def topics_of(words: list[Any], rng: np.random.Generator) -> Any:
    """Return the word probabilities of topics, given the words that each has of its own."""
    theta = np.zeros((TOPICS, WORDS))
    for topic, own in enumerate(words):
        theta[topic, own] = (1 - SHARE_OF_SHARED) * rng.dirichlet(np.ones(len(own)))
    theta[:, :SHARED] += SHARE_OF_SHARED * rng.dirichlet(np.ones(SHARED))
    return theta


def phases_of(name: str, rng: np.random.Generator) -> list[Any]:
    """Return the topics of every phase."""
    if name == "new words":
        order = SHARED + rng.permutation(WORDS - SHARED)
        return [topics_of(np.split(part, TOPICS), rng) for part in np.split(order, PHASES)]
    own = [SHARED + rng.choice(WORDS - SHARED, 60, replace=False) for _ in range(TOPICS)]
    phases = [topics_of(own, rng)]
    while len(phases) < PHASES:
        theta = phases[-1].copy()
        for topic in theta:
            has = SHARED + np.flatnonzero(topic[SHARED:])
            lacks = SHARED + np.flatnonzero(topic[SHARED:] == 0)
            size = int(CHANGED * has.size)
            lost, won = rng.choice(has, size, replace=False), rng.choice(lacks, size, replace=False)
            topic[won], topic[lost] = topic[lost], 0.0
        phases.append(theta)
    return phases


def stream_of(name: str, phase_rows: int, seed: int) -> Stream:
    """Draw the documents of all phases."""
    rng = np.random.default_rng((STREAMS.index(name), seed))
    counts, truth = [], []
    for theta in phases_of(name, rng):
        lengths = np.maximum(1, rng.poisson(LENGTH, size=phase_rows))
        rows = rng.multinomial(lengths, theta[rng.integers(TOPICS, size=phase_rows)])
        coefficients = gammaln(lengths + 1) - gammaln(rows + 1.0).sum(axis=1)
        counts.append(csr_array(rows))
        scores = counts[-1] @ np.log(np.maximum(theta, 1e-300)).T
        truth.append(logsumexp(scores, axis=1) - np.log(TOPICS) + coefficients)
    joined = vstack(counts, format="csr")
    return Stream(joined, np.concatenate(truth), np.asarray(joined.sum(axis=1)).ravel())


def follow(stream: Stream, half_life: int | None, phase_rows: int) -> dict[str, Any]:
    """Absorb the stream; return what happened, bin by bin, and after every change."""
    model = StreamingMixture(half_life=half_life)
    n_rows = stream.counts.shape[0]
    gaps, clusters = [], []
    for start in range(0, n_rows, BIN):
        rows = slice(start, start + BIN)
        model.partial_fit(stream.counts[rows])
        missed = model.log_evidence_ - stream.log_truth[rows]
        gaps.append(float(missed.sum() / stream.n_tokens[rows].sum()))
        clusters.append(model.n_clusters_)
    per_phase = phase_rows // BIN
    changes = []
    for phase in range(1, PHASES):
        after = np.array(gaps[phase * per_phase : (phase + 1) * per_phase])
        near = np.flatnonzero(after >= -NEAR)
        changes.append(
            {
                "first": float(after[0]),
                "last": float(after[-1]),
                "mean": float(after.mean()),
                "made_up": None if half_life is None else 1 - after[half_life // BIN] / after[0],
                "rows_to_recover": int(near[0]) * BIN if near.size > 0 else None,
                "clusters": clusters[(phase + 1) * per_phase - 1],
            }
        )
    retired = [event.n_observations for event in model.lineage_ if event.kind == "retire"]
    return {
        "half_life": half_life,
        "gap": gaps,
        "clusters": clusters,
        "changes": changes,
        "retired": retired,
    }


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw gap and clusters of both streams; the suffix of `path` says the format."""
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "changing"})
    figure, axes = plt.subplots(
        2, len(STREAMS), figsize=(8.4, 5.0), sharex=True, sharey="row", layout="constrained"
    )
    phase_rows = results["phase_rows"]
    for column, name in enumerate(STREAMS):
        upper, lower = axes[:, column]
        for run in results["streams"][name]:
            half_life = run["half_life"]
            label = "no forgetting" if half_life is None else f"half-life of {half_life:,} rows"
            style = {"color": COLOURS[half_life], "linestyle": LINES[half_life], "label": label}
            style["zorder"] = 3 if half_life is None else 2  # dashes do not hide what is below
            seen = BIN * (1 + np.arange(len(run["gap"])))
            upper.plot(seen - BIN / 2, run["gap"], linewidth=1.4, **style)
            lower.plot(seen, run["clusters"], linewidth=1.4, **style)
        for panel in (upper, lower):
            for change in range(1, PHASES):
                panel.axvline(change * phase_rows, color="#bbbbbb", linewidth=0.8, zorder=0)
            panel.grid(axis="y", color="#e6e6e6", linewidth=0.6)
            panel.set_axisbelow(True)
            panel.spines[["top", "right"]].set_visible(False)
        upper.set_title(name, fontsize=10)
        lower.set_xlabel("rows seen")
    place = (phase_rows * 1.02, -0.6)
    axes[0, 0].annotate("topics change", place, color="#777777", fontsize=8)
    axes[0, 0].set_ylabel("log predictive less the truth's,\nnats per token")
    axes[0, 0].set_ylim(-0.65, 0.02)
    axes[1, 0].set_ylabel("live clusters")
    axes[1, 0].set_ylim(0)
    axes[1, 0].set_xlim(0, PHASES * phase_rows)
    axes[1, 0].set_xticks(phase_rows * np.arange(PHASES + 1))
    axes[1, 0].xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
    plt.close(figure)


def main() -> None:
    """Print a line a stream and half-life."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw a PNG or SVG picture")
    parser.add_argument("--phase-rows", type=int, default=10_000)
    options = parser.parse_args()
    print(f"{PHASES} phases of {options.phase_rows} rows; {machine()}")
    results: dict[str, Any] = {"phase_rows": options.phase_rows, "streams": {}}
    for name in STREAMS:
        stream = stream_of(name, options.phase_rows, seed=0)
        runs = [follow(stream, half_life, options.phase_rows) for half_life in HALF_LIVES]
        results["streams"][name] = runs
        for run in runs:
            print(f"{name}, half-life {run['half_life']}: {len(run['retired'])} retired")
            for change in run["changes"]:
                recovered, made_up = change["rows_to_recover"], change["made_up"]
                print(
                    f"  gap {change['first']:.3f} in the first {BIN} rows, {change['mean']:.3f} on "
                    f"average, {change['last']:.3f} in the last; "
                    f"within {NEAR} after {recovered} rows; {change['clusters']} clusters"
                    + ("" if made_up is None else f"; {made_up:.0%} made up after a half-life")
                )
    save(results, options.json)
    if options.chart is not None:
        draw(results, options.chart)


if __name__ == "__main__":
    main()
