"""Speed and memory of one pass over long streams, each run in a process of its own.

- news: a synthetic corpus of the size of the paper's New York Times corpus, 266,000 documents of
  7841 words, drawn and absorbed a block at a time. Documents a second by tenths of the stream.
- million: a million short documents of 50 clusters: the number of clusters stays what it is, so
  the cost of a document should too.

"pass" is what `partial_fit` takes without `encode`, "all" is with it; drawing is not counted.
Seconds are those that the one thread worked.
Memory is the process's; what it held before the first row, with everything compiled, is "before".
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bnpstream import DirichletMultinomial, StreamingMixture, normalized_inverse_gaussian
from bnpstream.datasets import bars, synthetic_corpus_blocks
from bnpstream.likelihoods import Batch
from measure import (
    MIB,
    Spread,
    arguments,
    in_fresh_process,
    machine,
    peak_mib,
    report,
    resident_mib,
    save,
)

REPETITIONS, LINES = 3, 10
ENCODING = [0.0]


class TimedDocuments(DirichletMultinomial):
    """Documents whose encoding is timed."""

    def encode(self, X: Any) -> Batch:
        start = time.thread_time()
        batch = super().encode(X)
        ENCODING[0] += time.thread_time() - start
        return batch


def news() -> tuple[int, Iterator[Any]]:
    """Return how many documents there are, and blocks of them."""
    return 266_000, (block.counts for block in synthetic_corpus_blocks())


def million() -> tuple[int, Iterator[Any]]:
    """Return a million rows of 30 words out of 200, from 50 clusters."""
    n, block, rng = 1_000_000, 10_000, np.random.default_rng(0)
    components = rng.dirichlet(np.full(200, 0.1), size=50)
    labels = (rng.integers(50, size=block) for _ in range(n // block))
    return n, (rng.multinomial(30, components[some]) for some in labels)


PARTS = {"news": (news, 0.02), "million": (million, 0.1)}


def stream(part: str) -> dict[str, Any]:
    """Absorb a stream; return a line for every tenth of it."""
    source, alpha = PARTS[part]
    prior = normalized_inverse_gaussian(10, 100)
    StreamingMixture(prior, TimedDocuments(alpha)).fit(bars(n_images=50).counts)  # compile
    model = StreamingMixture(prior, TimedDocuments(alpha))
    before, lines, spent, seen = resident_mib(), [], 0.0, 0
    total, blocks = source()
    last: tuple[int, float, float] = (0, 0.0, ENCODING[0])
    for counts in blocks:
        start = time.thread_time()
        model.partial_fit(counts)
        spent += time.thread_time() - start
        seen += counts.shape[0]
        if seen * LINES >= total * (len(lines) + 1):
            rows, whole, encoding = seen - last[0], spent - last[1], ENCODING[0] - last[2]
            last = (seen, spent, ENCODING[0])
            lines.append(
                {
                    "seen": seen,
                    "clusters": model.n_clusters_,
                    "pass_documents_per_second": rows / (whole - encoding),
                    "all_documents_per_second": rows / whole,
                    "resident_mib": resident_mib(),
                }
            )
    return {
        "seconds": spent,
        "lines": lines,
        "before_mib": before,
        "peak_mib": peak_mib(),
        "table_mib": model.state_.nbytes / MIB,
    }


def summarize(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return spreads over repetitions."""
    spreads = ("pass_documents_per_second", "all_documents_per_second", "resident_mib")
    lines = [
        {"seen": same[0]["seen"], "clusters": same[0]["clusters"]}
        | {key: Spread.of([line[key] for line in same]) for key in spreads}
        for same in zip(*(run["lines"] for run in runs), strict=True)
    ]
    keys = ("seconds", "before_mib", "peak_mib", "table_mib")
    return {key: Spread.of([run[key] for run in runs]) for key in keys} | {"lines": lines}


def show(part: str, found: dict[str, Any]) -> None:
    print(f"{part}: {found['seconds'].show('.1f')} s in all")
    for line in found["lines"]:
        print(
            f"{line['seen']:9,d} documents  {line['clusters']:5d} clusters  "
            f"pass {line['pass_documents_per_second'].show(',.0f')} documents/s  "
            f"all {line['all_documents_per_second'].show(',.0f')}  "
            f"{line['resident_mib'].median:5.0f} MiB"
        )
    print(
        f"peak {found['peak_mib'].show('.0f')} MiB, of which {found['before_mib'].median:.0f} "
        f"before the first row; table at the end {found['table_mib'].median:.0f} MiB",
        flush=True,
    )


def main() -> None:
    """Print a line every tenth of a stream."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--part", choices=PARTS, help="one stream, once, as JSON")
    options = parser.parse_args()
    if options.part:
        report(stream(options.part))
        return
    print(f"medians, least and largest of {REPETITIONS}; {machine()}")
    results = {}
    for part in PARTS:
        runs = [in_fresh_process(__file__, part) for _ in range(REPETITIONS)]
        results[part] = summarize(runs)
        show(part, results[part])
    save({"streams": results}, options.json)


if __name__ == "__main__":
    main()
