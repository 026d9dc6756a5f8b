"""Corpora in files, for what Dask's workers read."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv
from scipy.sparse import csr_array, save_npz, vstack

from bnpstream.datasets import load_kos, load_nyt8447, synthetic_corpus_blocks

N_NEWS, HELD_OUT, BLOCK = 266_000, 4_000, 500
LEVEL = 4
"""Of gzip: half the time of the default, for a file that is hardly larger."""


class Corpus(NamedTuple):
    """Rows to learn from, in small blocks, and rows to hold out."""

    blocks: list[Any]
    held_out: Any

    def parts(self, part: int) -> Iterator[Any]:
        """Yield blocks of `part` rows."""
        per_file = part // self.blocks[0].shape[0]
        for start in range(0, len(self.blocks), per_file):
            yield vstack(self.blocks[start : start + per_file], format="csr")


def news() -> Corpus:
    """Return a corpus of the size of the paper's New York Times corpus, and 4,000 more."""
    blocks = [
        csr_array(block.counts)
        for block in synthetic_corpus_blocks(N_NEWS + HELD_OUT, block_rows=BLOCK)
    ]
    kept = N_NEWS // BLOCK
    return Corpus(blocks[:kept], vstack(blocks[kept:], format="csr"))


def tenths(counts: Any) -> Corpus:
    """Return four fifths of a corpus in eight blocks, and the rest."""
    part = counts.shape[0] // 10
    blocks = [csr_array(counts[i * part : (i + 1) * part]) for i in range(8)]
    return Corpus(blocks, counts[8 * part :])


CORPORA: dict[str, Callable[[], Corpus]] = {
    "news": news,
    "kos": lambda: tenths(load_kos().counts),
    "nyt8447": lambda: tenths(load_nyt8447().counts),
}


def write_npz(path: Path, rows: Any) -> None:
    save_npz(path, rows, compressed=False)


def write_uci(path: Path, rows: Any) -> None:
    """Write a gzipped docword file."""
    documents = np.repeat(np.arange(1, rows.shape[0] + 1), np.diff(rows.indptr))
    columns = (documents, rows.indices + 1, np.asarray(rows.data, np.int64))
    lines = pa.table([pa.array(x) for x in columns], names=["document", "word", "count"])
    with gzip.open(path, "wb", compresslevel=LEVEL) as file:
        file.write(f"{rows.shape[0]}\n{rows.shape[1]}\n{rows.nnz}\n".encode())
        options = csv.WriteOptions(include_header=False, delimiter=" ")
        csv.write_csv(lines, file, options)


FORMATS = {"npz": (".npz", write_npz), "uci": (".txt.gz", write_uci)}


def write(folder: Path, form: str, corpus: Corpus, part: int) -> list[str]:
    """Write a file for every `part` rows; return their names."""
    folder.mkdir()
    suffix, write_one = FORMATS[form]
    paths = []
    for number, rows in enumerate(corpus.parts(part)):
        paths.append(folder / f"docword.{number:03d}{suffix}")
        write_one(paths[-1], rows)
    return [str(path) for path in paths]
