"""Compiles loops before they are needed, by running tiny streams through the real engine."""

import csv
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
from scipy.sparse import csr_matrix, save_npz

from bnpstream.kernels.jit.cache import KEPT, kept_in
from bnpstream.runs.feed import Feed
from bnpstream.runs.options import Pace
from bnpstream.runs.overview import Run
from bnpstream.runs.score import predict, source_for
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.sources.formats.tokenizer import PLAIN_TEXTS


class Kind(NamedTuple):
    """Streams that share their compiled loops."""

    about: str
    seconds: int
    """Approximate time to compile everything on one core."""
    write: Callable[[Path], Path]
    """Writes a small source into a folder and returns its path."""


class Warmed(NamedTuple):
    """Result of warming up one kind of stream."""

    kind: str
    compiled: int
    """Number of loops compiled; all others were cached."""
    seconds: float


class Cache(NamedTuple):
    """Cache of compiled loops."""

    folders: list[str]
    bytes: int


def _texts(folder: Path) -> Path:
    path, rng = folder / "texts.jsonl", np.random.default_rng(0)
    n = PLAIN_TEXTS + 1100  # enough for their words to be counted in compiled code, too
    topics = rng.integers(5, size=n)
    words = 400 * topics[:, None] + rng.zipf(1.4, size=(n, 20)) % 400
    lines = [orjson.dumps({"text": " ".join(f"word{w}" for w in row)}) for row in words.tolist()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def _counts(folder: Path) -> Path:
    path, rng = folder / "counts.npz", np.random.default_rng(0)
    topics, n_words = rng.integers(5, size=1100), 10_000
    words = 400 * topics[:, None] + rng.zipf(1.4, size=(1100, 20)) % 400
    rows = np.repeat(np.arange(1100), 20)
    entries = (np.ones(rows.size, np.int64), (rows, words.ravel()))
    save_npz(path, csr_matrix(entries, shape=(1100, n_words)))
    return path


def _rows(folder: Path) -> Path:
    path, rng = folder / "rows.csv", np.random.default_rng(0)
    rows = rng.normal(size=(1100, 3)) + 6.0 * rng.integers(4, size=(1100, 1))
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c"], *rows.tolist()])
    return path


KINDS = {
    "text": Kind("texts", 20, _texts),
    "counts": Kind("word counts in fixed columns", 5, _counts),
    "rows": Kind("tables of numbers, booleans and labels", 15, _rows),
}


def cache() -> Cache:
    """Return where compiled loops are cached, and the size of the cache.

    Raises
    ------
    OSError
        If they cannot be cached anywhere.
    """
    try:
        folders = sorted({kept_in(loop) for loop in KEPT})
    except RuntimeError as error:
        wanted = os.environ.get("NUMBA_CACHE_DIR")
        tried = f"NUMBA_CACHE_DIR, which is {wanted}," if wanted else "the package's own folder"
        raise OSError(
            f"compiled code cannot be cached: neither {tried} nor the user's cache is writable; "
            "set NUMBA_CACHE_DIR to a writable folder"
        ) from error
    files = [file for folder in folders for file in folder.glob("*.nb[ic]*")]
    return Cache([str(folder) for folder in folders], sum(file.stat().st_size for file in files))


def warm_up(kinds: list[str]) -> Iterator[Warmed]:
    """Compile the loops for some kinds of streams; yield a result for each."""
    for kind in kinds:
        began, before = time.perf_counter(), _n_compiled()
        with tempfile.TemporaryDirectory(prefix="bnpstream-warmup-") as folder:
            _fit_and_predict(KINDS[kind].write(Path(folder)), Path(folder, "run"))
        yield Warmed(kind, _n_compiled() - before, time.perf_counter() - began)


def _fit_and_predict(source: Path, out: Path) -> None:
    feed: Feed = start(out, RunOptions((str(source),)))
    try:
        with Interrupts() as interrupts:
            if not feed.run(Pace(), interrupts, lambda status: None):
                raise KeyboardInterrupt
    finally:
        feed.close()
    run = Run(out)
    for _ in predict(run, source_for(run, [str(source)])):
        pass


def _n_compiled() -> int:
    return sum(sum(loop.stats.cache_misses.values()) for loop in KEPT)
