"""Records a second, one dict at a time: `learn_one` and `predict_one` of the face for river.

Documents are those of KOS, as `BagOfWords` would give them; numbers are ten features, 30 clusters.
CPU time of the one thread, after the first 500 records; several runs, each a new model.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bnpstream.datasets import load_kos
from bnpstream.river import StreamingMixture
from measure import Spread, arguments, cpu_seconds, machine, save

REPETITIONS, FIRST, ASKED = 5, 500, 1000
Record = dict[str, Any]


def documents(longest: int | None = None) -> list[Record]:
    """Return KOS in random order, as counts of words; of every document the first words."""
    counts = load_kos().counts
    order = np.random.default_rng(0).permutation(counts.shape[0])
    found = []
    for i in order:
        inside = slice(counts.indptr[i], counts.indptr[i + 1])
        pairs = zip(counts.indices[inside].tolist(), counts.data[inside].tolist(), strict=True)
        found.append({f"word{w}": int(count) for w, count in list(pairs)[:longest]})
    return found


def numbers(n: int = 5000) -> list[Record]:
    """Return ten numbers a record, of 30 clusters."""
    rng = np.random.default_rng(0)
    centres = 5.0 * rng.standard_normal((30, 10))
    cells = centres[rng.integers(30, size=n)] + rng.standard_normal((n, 10))
    return [dict(zip("abcdefghij", row, strict=True)) for row in cells.tolist()]


def short_documents(n: int = 5000) -> list[Record]:
    """Return documents of some 40 words each, of 30 topics with 60 words of their own."""
    rng = np.random.default_rng(1)
    found = []
    for topic in rng.integers(30, size=n).tolist():
        length = rng.poisson(50)
        own = 60 * topic + rng.geometric(0.05, size=length) % 60
        common = 1800 + rng.geometric(0.01, size=length) % 600
        words = np.where(rng.random(length) < 0.6, own, common)
        numbers, counts = np.unique(words, return_counts=True)
        pairs = zip(numbers.tolist(), counts.tolist(), strict=True)
        found.append({f"word{w}": count for w, count in pairs})
    return found


def streams() -> dict[str, list[Record]]:
    gaps = [
        {name: x for j, (name, x) in enumerate(record.items()) if (i + j) % 7}
        for i, record in enumerate(numbers())
    ]
    return {
        "documents of KOS": documents(),
        "documents of KOS, 30 words of each": documents(30),
        "documents of 30 topics": short_documents(),
        "ten numbers": numbers(),
        "ten numbers, a seventh missing": gaps,
    }


def each(method: Callable[[Record], object], records: list[Record]) -> float:
    """Return records a second of a method called with one at a time."""

    def job() -> None:
        for record in records:
            method(record)

    return len(records) / cpu_seconds(job)


def measure(records: list[Record]) -> dict[str, Any]:
    """Return speeds of learning and of asking."""
    learning, asking, clusters = [], [], 0
    for repetition in range(REPETITIONS + 1):
        model = StreamingMixture()
        each(model.learn_one, records[:FIRST])
        speed = each(model.learn_one, records[FIRST:])
        asked = each(model.predict_one, records[-ASKED:])
        if repetition > 0:  # the first compiles
            learning.append(speed)
            asking.append(asked)
        clusters = model.n_clusters
    features = float(np.mean([len(record) for record in records]))
    return {
        "features": features,
        "clusters": clusters,
        "learn_one": Spread.of(learning),
        "predict_one": Spread.of(asking),
    }


def main() -> None:
    """Print a line a stream."""
    options = arguments(__doc__ or "").parse_args()
    print(f"records a second, medians, least and largest of {REPETITIONS}; {machine()}")
    results = {}
    for name, records in streams().items():
        results[name] = found = measure(records)
        print(
            f"{name:36s} {found['features']:6.1f} features  {found['clusters']:4d} clusters  "
            f"learn_one {found['learn_one'].show(',.0f')}  "
            f"predict_one {found['predict_one'].show(',.0f')}",
            flush=True,
        )
    save({"streams": results}, options.json)


if __name__ == "__main__":
    main()
