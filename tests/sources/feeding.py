"""What tests of sources share: writing files, and reading all that a source gives."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import zstandard
from scipy import sparse

from bnpstream.sources import Options, open_source

PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def write(folder: Path, name: str, content: str | bytes) -> str:
    """Write a file, packed as its name says, and return its path."""
    data = content.encode() if isinstance(content, str) else content
    path = folder / name
    path.write_bytes(PACKERS.get(path.suffix, bytes)(data))
    return str(path)


def as_list(rows) -> list:
    """Return rows of any kind as a list of one entry a row that can be compared."""
    if isinstance(rows, Sequence):
        return list(rows)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    if dense.dtype == object:
        return dense.tolist()
    return [tuple(None if np.isnan(cell) else float(cell) for cell in row) for row in dense]


def records_of(batch) -> list[tuple]:
    """Return (number, id, row, excerpt) of every record of a batch."""
    excerpts = batch.excerpts or [None] * len(batch)
    return list(zip(batch.numbers, batch.ids, as_list(batch.rows), excerpts, strict=True))


def read_all(source, batch_rows=1024, start=None) -> tuple[list[tuple], list]:
    """Return all records after a position, and all rejects."""
    records, rejects = [], []
    for batch, _ in source.batches(batch_rows, start):
        records += records_of(batch)
        rejects += batch.rejects
    return records, rejects


def read_text(folder: Path, name: str, content: str | bytes, **options) -> tuple:
    """Return the schema, the rows and the rejects of a file."""
    source = open_source(write(folder, name, content), Options(**options))
    records, rejects = read_all(source)
    return source.schema, [row for _, _, row, _ in records], rejects
