"""Memory of a posterior with 100,000 words and about 10,000 clusters, in a process of its own.

One pass over 200,000 documents of a power-law corpus, a block at a time. Its clusters are drawn
from a Pitman-Yor process, their words from Dirichlet(c m) with c = 100; alpha sums up to c too. A
dense table of 100,000 by 10,000 doubles would take 7630 MiB.

"steady" is what the process holds between blocks; "transient" is by how much a block had more than
that on the way, when tables grow.
"""

import time
from typing import Any

import numpy as np

from bnpstream import DirichletMultinomial, PitmanYor, StreamingMixture, normalized_inverse_gaussian
from bnpstream.datasets import bars, synthetic_corpus_blocks
from measure import (
    MIB,
    arguments,
    forget_peak,
    in_fresh_process,
    machine,
    peak_mib,
    recent_peak_mib,
    report,
    resident_mib,
    save,
)

DOCUMENTS, WORDS, CONCENTRATION = 200_000, 100_000, 100.0
TRUE_CLUSTERS = 13_000
"""The pass finds some three quarters of them."""
LINES, LIMIT_MIB = 10, 2048


def screen_mib(model: StreamingMixture) -> float:
    """Return the memory of the screen."""
    screen = model.state_.cache(model.likelihood)  # type: ignore[arg-type]
    parts = [part for part in screen if isinstance(part, np.ndarray)]
    return sum(part.nbytes for part in parts) / MIB


def absorb() -> dict[str, Any]:
    """Make the pass; return a line for every tenth of it."""
    prior = normalized_inverse_gaussian(10, 100)
    StreamingMixture(prior, DirichletMultinomial(0.1)).fit(bars(n_images=50).counts)  # compile
    model = StreamingMixture(prior, DirichletMultinomial(CONCENTRATION / WORDS))
    before, seen, spent, transient = resident_mib(), 0, 0.0, (0.0, 0)
    peak = peak_mib()
    lines: list[dict[str, Any]] = []
    corpus_prior = PitmanYor(1.0, 0.5).with_expected_clusters(TRUE_CLUSTERS, n=DOCUMENTS)
    blocks = synthetic_corpus_blocks(
        DOCUMENTS, WORDS, word_concentration=CONCENTRATION, prior=corpus_prior
    )
    for block in blocks:
        peak = max(peak, recent_peak_mib())  # of drawing; kept here, as it is forgotten next
        forget_peak()
        held, start = resident_mib(), time.perf_counter()
        model.partial_fit(block.counts)
        spent += time.perf_counter() - start
        seen += block.counts.shape[0]
        steady = resident_mib()
        highest = recent_peak_mib()
        peak = max(peak, highest)
        transient = max(transient, (highest - max(held, steady), seen))
        if seen * LINES >= DOCUMENTS * (len(lines) + 1):
            lines.append(
                {
                    "seen": seen,
                    "clusters": model.n_clusters_,
                    "documents_per_second": seen / spent,
                    "table_mib": model.state_.nbytes / MIB,
                    "screen_mib": screen_mib(model),
                    "steady_mib": steady,
                    "peak_mib": peak,
                }
            )
    return {"before_mib": before, "transient_mib": transient, "lines": lines}


def show(found: dict[str, Any]) -> None:
    for line in found["lines"]:
        print(
            f"{line['seen']:8,d} documents  {line['clusters']:6,d} clusters  "
            f"{line['documents_per_second']:7,.0f} documents/s  table {line['table_mib']:4.0f} MiB"
            f"  screen {line['screen_mib']:4.0f} MiB  steady {line['steady_mib']:5.0f} MiB  "
            f"peak {line['peak_mib']:5.0f} MiB"
        )
    transient, seen = found["transient_mib"]
    peak = found["lines"][-1]["peak_mib"]
    print(
        f"{found['before_mib']:.0f} MiB before the first row; largest transient {transient:.0f} "
        f"MiB, at {seen:,d} documents; peak {peak:.0f} MiB, "
        f"{'below' if peak < LIMIT_MIB else 'NOT BELOW'} {LIMIT_MIB} MiB",
        flush=True,
    )


def main() -> None:
    """Print a line every tenth of the stream."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--part", choices=["pass"], help="the pass, as JSON")
    options = parser.parse_args()
    if options.part:
        report(absorb())
        return
    print(f"one pass; {machine()}")
    found = in_fresh_process(__file__, "pass")
    show(found)
    save(found, options.json)


if __name__ == "__main__":
    main()
