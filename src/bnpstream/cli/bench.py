"""``bnpstream bench``: the speed of reading, learning and saving on this machine."""

import gzip
import tempfile
import time
from pathlib import Path
from typing import Any

from bnpstream.cli.output import print_json, print_numbers
from bnpstream.datasets import synthetic_corpus_blocks
from bnpstream.runs.feed import Feed
from bnpstream.runs.options import Pace
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.sources import open_source


def run_bench(source: list[str] | None, rows: int, as_json: bool) -> None:
    """Time a run over a source, or over randomly drawn documents."""
    with tempfile.TemporaryDirectory(prefix="bnpstream-bench-") as folder:
        if not source:
            source = [str(Path(folder, "docword.txt.gz"))]
            _draw(Path(source[0]), rows)
        _run(source, Path(folder, "warm-up"), limit=True)  # compiles what is not cached
        began = time.perf_counter()
        n_records = sum(
            len(records) + len(records.rejects) for records, _ in open_source(source).batches()
        )
        reading = time.perf_counter() - began
        began = time.perf_counter()
        feed = _run(source, Path(folder, "run"), limit=False)
        total = time.perf_counter() - began
        began = time.perf_counter()
        feed.checkpoint()
        saving = time.perf_counter() - began
        feed.close()
        found: dict[str, Any] = {
            "records": n_records,
            "rows": feed.n_rows,
            "clusters": feed.model.n_clusters,
            "reading_seconds": reading,
            "pass_seconds": feed.seconds_in_pass,
            "checkpoint_seconds": saving,
            "total_seconds": total,
            "rows_per_second": feed.n_rows / total,
        }
    (print_json if as_json else print_numbers)(found)


def _run(source: list[str], folder: Path, *, limit: bool) -> Feed:
    """Feed a source to a default model; with a limit, only its first batch."""
    feed = start(folder, RunOptions(tuple(source)))
    with Interrupts() as interrupts:

        def after(_: object) -> None:
            interrupts.requested = limit

        feed.run(Pace(), interrupts, after)
    if limit:
        feed.close()
    return feed


def _draw(path: Path, rows: int) -> None:
    """Write randomly drawn documents in the UCI format."""
    entries, n_entries, n_words = [], 0, 0
    for block in synthetic_corpus_blocks(rows, block_rows=rows):
        matrix = block.counts.tocoo()
        n_entries, n_words = matrix.nnz, matrix.shape[1]
        columns = zip(
            (matrix.row + 1).tolist(),
            (matrix.col + 1).tolist(),
            matrix.data.tolist(),
            strict=True,
        )
        entries += [f"{document} {word} {count}\n" for document, word, count in columns]
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(f"{rows}\n{n_words}\n{n_entries}\n")
        file.writelines(entries)
