"""Seconds and speed of reading files of counts, stage by stage.

- news: a gzipped docword file of the size of the paper's New York Times corpus, 266,000 documents
  of 7841 words. "unpack" is gunzip alone, "all" is unpacking, parsing and batches of rows.
- formats: the first 20,000 of these documents in every format of numbers, gzipped and plain (npz is
  packed by itself); "table" are 20,000 rows of 100 real numbers with 17 digits.

Megabytes are those of the unpacked text, of npz those of its file. Seconds are those that the one
thread worked; memory is what Python objects and arrays held at most while a file was read.
"""

import gzip
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import io, sparse

from bnpstream.datasets import synthetic_corpus_blocks
from bnpstream.sources import Options, open_source
from bnpstream.sources.files.byte_reader import ByteReader
from measure import MIB, Spread, arguments, cpu_seconds, machine, save

REPETITIONS = 3
N_NEWS, N_SMALL, N_WORDS = 266_000, 20_000, 7_841
N_TABLE = 100
# Half the time of the default, for a file that is hardly larger.
LEVEL = 4


def docword_lines(blocks: Iterator[Any]) -> tuple[int, list[bytes]]:
    """Return how many entries there are, and their lines in blocks."""
    n_rows, n_entries, pieces = 0, 0, []
    for block in blocks:
        counts = block.counts
        rows = np.repeat(np.arange(n_rows, n_rows + counts.shape[0]), np.diff(counts.indptr)) + 1
        columns = (counts.indices + 1).tolist()
        entries = zip(rows.tolist(), columns, counts.data.tolist(), strict=True)
        pieces.append("".join(f"{row} {word} {n}\n" for row, word, n in entries).encode())
        n_rows, n_entries = n_rows + counts.shape[0], n_entries + counts.nnz
    return n_entries, pieces


def write_docword(path: Path, n_documents: int) -> None:
    n_entries, pieces = docword_lines(synthetic_corpus_blocks(n_documents))
    with gzip.open(path, "wb", compresslevel=LEVEL) as file:
        file.write(f"{n_documents}\n{N_WORDS}\n{n_entries}\n".encode())
        for piece in pieces:
            file.write(piece)


def pair_lines(counts: Any, lead: Callable[[int], int], first_id: int) -> bytes:
    """Return lines of pairs; the lead depends on how many there are."""
    lines = []
    for begin, end in zip(counts.indptr[:-1].tolist(), counts.indptr[1:].tolist(), strict=True):
        ids = (counts.indices[begin:end] + first_id).tolist()
        pairs = zip(ids, counts.data[begin:end].tolist(), strict=True)
        lines.append(" ".join([str(lead(end - begin)), *(f"{i}:{n}" for i, n in pairs)]) + "\n")
    return "".join(lines).encode()


def write_formats(folder: Path) -> list[tuple[str, str, Path]]:
    """Write the small files; return name, format and path of each."""
    blocks = [block.counts for block in synthetic_corpus_blocks(N_SMALL)]
    counts = sparse.vstack(blocks, format="csr")
    table = sparse.csr_array(np.random.default_rng(0).normal(size=(N_SMALL, N_TABLE)))
    write_docword(folder / "uci.gz", N_SMALL)
    (folder / "lda-c").write_bytes(pair_lines(counts, lambda n: n, 0))
    (folder / "svmlight").write_bytes(pair_lines(counts, lambda n: 1, 1))
    (folder / "svmlight table").write_bytes(pair_lines(table, lambda n: 1, 1))
    for name, matrix in (("mtx", counts), ("mtx table", table)):
        with (folder / name).open("wb") as file:
            io.mmwrite(file, matrix, symmetry="general")
    sparse.save_npz(folder / "npz.npz", counts)
    (folder / "uci").write_bytes(gzip.decompress((folder / "uci.gz").read_bytes()))
    for name in ("lda-c", "svmlight", "mtx"):
        packed = gzip.compress((folder / name).read_bytes(), LEVEL)
        (folder / f"{name}.gz").write_bytes(packed)
    return [(path.name, path.stem.split()[0], path) for path in sorted(folder.iterdir())]


def unpack(path: Path) -> int:
    """Return how many bytes a file has, unpacked."""
    with ByteReader(str(path)) as file:
        return sum(map(len, file.blocks()))


def read(path: Path, format: str) -> int:
    """Return how many records a file gives."""
    # Without n_features, files of pairs would be read twice.
    n_features = N_TABLE if "table" in path.name else N_WORDS
    source = open_source(str(path), Options(format=format, n_features=n_features))
    return sum(len(records) for records, _ in source.batches())


def measure(path: Path, format: str) -> dict[str, Any]:
    """Return seconds of every stage, and memory."""
    n_bytes = path.stat().st_size if format == "npz" else unpack(path)
    n_records = read(path, format)  # compile
    tracemalloc.start()
    read(path, format)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "records": n_records,
        "megabytes": n_bytes / 1e6,
        "unpack": Spread.of([cpu_seconds(lambda: unpack(path)) for _ in range(REPETITIONS)]),
        "all": Spread.of([cpu_seconds(lambda: read(path, format)) for _ in range(REPETITIONS)]),
        "memory_mib": peak / MIB,
    }


def show(name: str, found: dict[str, Any]) -> None:
    speed = found["megabytes"] / found["all"].median
    print(
        f"{name:15s} {found['records']:8,d} records {found['megabytes']:6.1f} MB  "
        f"unpack {found['unpack'].show()} s  all {found['all'].show()} s  "
        f"{speed:5.0f} MB/s  {found['memory_mib']:.1f} MiB",
        flush=True,
    )


def main() -> None:
    """Print a line for every file."""
    options = arguments(__doc__ or "").parse_args()
    print(f"medians, least and largest of {REPETITIONS}; {machine()}")
    results = {}
    with TemporaryDirectory() as folder:
        news = Path(folder, "news.gz")
        write_docword(news, N_NEWS)
        results["news"] = measure(news, "uci")
        show("news", results["news"])
        news.unlink()
        for name, format, path in write_formats(Path(folder)):
            results[name] = measure(path, format)
            show(name, results[name])
    save({"files": results}, options.json)


if __name__ == "__main__":
    main()
