"""What is slow around the pass: the tree of merges, the report, a budget, half-lives and merges.

Documents of eight words out of 700 topics, drawn. Tree and report are those of one run, in seconds
of CPU time; a budget, a half-life and merges are ratios to the same stream without them.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bnpstream import StreamingMixture
from bnpstream.inference.tree import merge_tree
from bnpstream.report import write_report
from bnpstream.runs.overview import Run
from measure import arguments, cpu_seconds, machine, save

ROWS, FIRST, TOPICS, WORDS, TOPIC_WORDS, LENGTH = 12_000, 1_000, 700, 5_000, 30, 8
BUDGET, HALF_LIFE, WINDOW = 200, 1_000, 300
REPEATS = 3
COMMAND = [sys.executable, "-m", "bnpstream"]


def documents() -> csr_array:
    """Return the counts of words: topics have weights 1/(k + 10) and thirty words each."""
    rng = np.random.default_rng(1)
    weights = 1.0 / (np.arange(TOPICS) + 10.0)
    topics = rng.choice(TOPICS, size=ROWS, p=weights / weights.sum())
    words = np.array([rng.choice(WORDS, TOPIC_WORDS, replace=False) for _ in range(TOPICS)])
    drawn = words[topics[:, None], rng.integers(TOPIC_WORDS, size=(ROWS, LENGTH))]
    rows = np.repeat(np.arange(ROWS), LENGTH)
    counts = csr_array((np.ones(rows.size, np.int64), (rows, drawn.ravel())), (ROWS, WORDS))
    counts.sum_duplicates()
    return counts


def seconds(rows: csr_array, **options: Any) -> float:
    """Return the CPU time of a stream after its first rows, which may compile something."""
    found = []
    for _ in range(REPEATS):
        model = StreamingMixture("nig", **options).partial_fit(rows[:FIRST])
        found.append(cpu_seconds(lambda model=model: model.partial_fit(rows[FIRST:])))  # type: ignore[misc]
    return float(np.median(found))


def tree_and_report(rows: csr_array) -> dict[str, float]:
    """Return the clusters of a run, and the CPU time of its tree and of its page."""
    with TemporaryDirectory() as folder:
        path, run = Path(folder) / "texts.txt", Path(folder) / "run"
        lines = (
            " ".join(np.repeat([f"w{w}" for w in row.indices], row.data).tolist())
            for row in (rows[[i]] for i in range(ROWS))
        )
        path.write_text("\n".join(lines))
        subprocess.run([*COMMAND, "fit", path, "--out", run, "--quiet"], check=True)
        fitted = Run(run)
        posterior = fitted.model.posterior
        merge_tree(posterior.model, posterior.state, 2)  # compiles
        tree = cpu_seconds(lambda: merge_tree(posterior.model, posterior.state, 20))
        page = Path(folder) / "report.html"
        whole = cpu_seconds(
            lambda: write_report(Run(run).describe(n_features=20, with_tree=True), page)
        )
        size = page.stat().st_size / 1e6
        return {
            "clusters": fitted.model.n_clusters,
            "tree_seconds": tree,
            "report_seconds": whole,
            "report_megabytes": size,
        }


def main() -> None:
    """Print the five figures."""
    options = arguments(__doc__ or "").parse_args()
    rows = documents()
    print(f"{ROWS:,} documents of {LENGTH} words; {machine()}")
    seconds(rows[: 2 * FIRST])
    plain, budget = seconds(rows), seconds(rows, max_clusters=BUDGET)
    fading = seconds(rows, half_life=HALF_LIFE)
    few = rows[: 3 * FIRST]
    swept = seconds(few, revisit=WINDOW)
    merged = seconds(few, revisit=WINDOW, merge_threshold=0.0)
    figures = {
        **tree_and_report(rows),
        "budget_speed_over_plain": plain / budget,
        "half_life_over_plain": fading / plain,
        "merges_over_window": merged / swept,
    }
    for name, value in figures.items():
        print(f"{name:26s} {value:10.2f}")
    save(figures, options.json)


if __name__ == "__main__":
    main()
