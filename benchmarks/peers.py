"""bnpstream beside its peers: documents a second and quality, in one process, on one core each.

Every repetition has its own order of the training documents and its own seed, and runs all methods
in turn, so that a busy machine is busy for all. Reported are medians, least and largest values.

- documents/s: training documents by the seconds of training, all passes together, from rows in
  memory in the method's own form. The clock stops while quality is looked at.
- completion: mean log probability of a token of a held-out document's second half, given its first
  half (`peers_corpora.py`). Methods without word probabilities have none.
- NMI, ARI: agreement of clusters, or largest topics, with the newsgroups of held-out documents;
  "used" is how many clusters that is. NMI favours many clusters, ARI does not.
- time to reach: seconds of training until completion is as high as another method's at its end.
"""

import argparse
import json
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from bnpstream.evaluation import agreement
from peers_chart import draw
from peers_corpora import CORPORA, Corpus, completion
from peers_learners import Learner, Watch
from peers_methods import METHODS, Method

VERSIONS = ("bnpstream", "gensim", "tomotopy", "river", "scikit-learn", "numpy", "numba")
TARGETS = (("gensim HDP", False), ("scikit-learn LDA", False), ("scikit-learn LDA", True))
BRIEF = 1.0
"""Training that takes fewer seconds is timed once more without looks, which cool the caches."""
WIDTH = 160


class Training(NamedTuple):
    """A learner after training, and what the watch said."""

    learner: Learner
    n_documents: int
    seconds: float
    trace: list[tuple[float, float]]


def train(method: Method, corpus: Corpus, seed: int, *, looking: bool) -> Training:
    """Train once, looking at the completion meanwhile if the method has one, or only at the end."""
    order = np.random.default_rng(seed).permutation(corpus.rows.shape[0])
    learner = method.learner(seed, **method.settings[corpus.name])
    n_documents = learner.load(corpus.rows[order])

    def figure() -> float:
        shares = learner.shares(corpus.seen_half)
        return completion(shares, learner.word_probabilities(), corpus.scored_half)

    watch = Watch(figure if looking and learner.completes else None)
    learner.learn(watch)
    watch.stop()
    return Training(learner, n_documents, watch.seconds, watch.trace)


def measure(method: Method, corpus: Corpus, seed: int) -> dict[str, Any]:
    """Return every figure of one repetition."""
    looked_at = train(method, corpus, seed, looking=True)
    seconds = looked_at.seconds
    if seconds < BRIEF:
        seconds = train(method, corpus, seed, looking=False).seconds
    outcome: dict[str, Any] = {
        "seed": seed,
        "documents": looked_at.n_documents,
        "seconds": seconds,
        "documents_per_second": looked_at.n_documents / seconds,
        "trace": looked_at.trace,
    }
    if looked_at.trace:
        outcome["completion"] = looked_at.trace[-1][1]
    if corpus.labels is not None:
        clusters = looked_at.learner.assign(corpus.held_out)
        outcome |= agreement(corpus.labels, clusters)._asdict()
        outcome["used"] = np.unique(clusters).size
    return outcome


def compare(corpus: Corpus, n_repetitions: int, console: Console) -> list[dict[str, Any]]:
    """Run all methods on a corpus; return a record of each."""
    records: list[dict[str, Any]] = [
        {
            "tool": method.tool,
            "name": method.name,
            "tuned": method.tuned,
            "settings": {key: repr(value) for key, value in method.settings[corpus.name].items()},
            "missing": method.why_missing(),
            "repetitions": [],
        }
        for method in METHODS
    ]
    for seed in range(n_repetitions):
        for method, record in zip(METHODS, records, strict=True):
            if record["missing"] is None:
                with console.status(f"{corpus.name}, repetition {seed + 1}: {method.name}"):
                    record["repetitions"].append(measure(method, corpus, seed))
    return records


def add_times(records: list[dict[str, Any]]) -> list[str]:
    """Add to every repetition when it reached the targets; return what the targets are."""
    named = []
    for tool, tuned in TARGETS:
        reference = next(r for r in records if (r["tool"], r["tuned"]) == (tool, tuned))
        if not reference["repetitions"]:
            continue
        level = float(np.median([run["completion"] for run in reference["repetitions"]]))
        name = f"{tool}, {'tuned' if tuned else 'defaults'}: {level:.3f}"
        named.append(name)
        for record in records:
            for run in record["repetitions"]:
                reached = [seconds for seconds, figure in run["trace"] if figure >= level]
                run.setdefault("time_to_reach", {})[name] = min(reached, default=None)
    return named


def spread(values: list[float | None], form: str) -> str:
    """Return median, least and largest, with None for never."""
    known = np.sort([np.inf if value is None else value for value in values])

    def show(value: float) -> str:
        return format(value, form) if np.isfinite(value) else "never"

    middle, least, largest = show(np.median(known)), show(known[0]), show(known[-1])
    return middle if least == largest else f"{middle} ({least}..{largest})"


def table(corpus: dict[str, Any]) -> Table:
    """Return speed and quality of every method."""
    columns = {"documents/s": ("documents_per_second", ",.0f"), "completion": ("completion", ".3f")}
    if corpus["labelled"]:
        columns |= {"NMI": ("nmi", ".2f"), "ARI": ("ari", ".2f"), "used": ("used", ".0f")}
    grid = _grid(
        f"{corpus['name']}: {corpus['documents']} documents, {corpus['words']} words", columns
    )
    for record in corpus["methods"]:
        runs = record["repetitions"]
        if not runs:
            grid.add_row(*_label(record), f"not installed: {record['missing']}")
            continue
        cells = [
            spread([run[key] for run in runs], form) if key in runs[0] else "-"
            for key, form in columns.values()
        ]
        name, settings = _label(record)
        if runs[0]["documents"] < corpus["documents"]:
            settings += f", {runs[0]['documents']} documents"
        grid.add_row(name, settings, *cells)
    return grid


def time_table(corpus: dict[str, Any]) -> Table:
    """Return seconds to the targets of every method that completes documents."""
    grid = _grid(f"{corpus['name']}: seconds to reach the completion of", corpus["targets"])
    for record in corpus["methods"]:
        runs = record["repetitions"]
        if runs and "completion" in runs[0]:
            cells = [
                spread([run["time_to_reach"][target] for run in runs], ".3g")
                for target in corpus["targets"]
            ]
            grid.add_row(*_label(record), *cells)
    return grid


def _grid(title: str, columns: Any) -> Table:
    grid = Table("method", "settings", title=title, title_justify="left")
    for column in columns:
        grid.add_column(column, justify="right")
    return grid


def _label(record: dict[str, Any]) -> tuple[str, str]:
    return record["name"], "tuned" if record["tuned"] else "defaults"


def run(corpora: list[str], n_repetitions: int, n_documents: int | None) -> dict[str, Any]:
    """Run everything; return all numbers."""
    numba.set_num_threads(1)
    results: dict[str, Any] = {
        "versions": {"python": platform.python_version()},
        "corpora": [],
    }
    for package in VERSIONS:
        with suppress(PackageNotFoundError):
            results["versions"][package] = version(package)
    console = Console(stderr=True)
    with threadpool_limits(1):
        for name in corpora:
            corpus = CORPORA[name](n_documents)
            records = compare(corpus, n_repetitions, console)
            results["corpora"].append(
                {
                    "name": corpus.name,
                    "documents": corpus.rows.shape[0],
                    "words": corpus.rows.shape[1],
                    "completed_documents": corpus.scored_half.shape[0],
                    "labelled_documents": corpus.held_out.shape[0],
                    "labelled": corpus.labels is not None,
                    "targets": add_times(records),
                    "methods": records,
                }
            )
    return results


def main() -> None:
    """Print the tables; write numbers and chart where asked to."""
    parser = argparse.ArgumentParser(description="bnpstream beside its peers")
    parser.add_argument("--corpus", choices=CORPORA, action="append", help="default: all")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--documents", type=int, help="learn from the first so many, 100 at least")
    parser.add_argument("--json", type=Path, help="write every number to this file")
    parser.add_argument("--results", type=Path, help="show this JSON file; run nothing")
    parser.add_argument("--chart", type=Path, help="draw speed against quality to this file")
    options = parser.parse_args()
    if options.results:
        results = json.loads(options.results.read_text())
    else:
        results = run(options.corpus or list(CORPORA), options.repetitions, options.documents)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    console = Console(width=WIDTH)
    console.print(
        ", ".join(f"{package} {number}" for package, number in results["versions"].items())
    )
    for corpus in results["corpora"]:
        console.print(table(corpus))
        console.print(time_table(corpus))
    if options.chart:
        draw(results, options.chart)


if __name__ == "__main__":
    main()
