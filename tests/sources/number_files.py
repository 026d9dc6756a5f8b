"""Files of numbers in every format, from dense rows; they share no code with the readers."""

import gzip
import io
from pathlib import Path

import numpy as np
import zstandard
from scipy import sparse

from bnpstream.sources import Options, open_source
from bnpstream.sources.files.byte_reader import ByteReader


def docword(rows: np.ndarray) -> bytes:
    entries = [f"{i + 1} {j + 1} {rows[i, j]}" for i, j in zip(*rows.nonzero(), strict=True)]
    return "\n".join([*map(str, rows.shape), str(len(entries)), *entries, ""]).encode()


def lda_c(rows: np.ndarray) -> bytes:
    lines = []
    for row in rows:
        pairs = [f"{j}:{row[j]}" for j in row.nonzero()[0]]
        lines.append(" ".join([str(len(pairs)), *pairs]) + "\n")
    return "".join(lines).encode()


def svmlight(rows: np.ndarray, first_id: int = 1) -> bytes:
    lines = ["# id:value\n"]
    for i, row in enumerate(rows):
        pairs = [f"{j + first_id}:{row[j]}" for j in row.nonzero()[0]]
        lines.append(" ".join([f"{i % 3 - 1}", *pairs]) + (" # no 1:2\n" if i % 4 == 0 else "\n"))
    return "".join(lines).encode()


def matrix_market(rows: np.ndarray, field: str = "integer") -> bytes:
    lines = [f"%%MatrixMarket matrix coordinate {field} general", "% one 1 1", "%"]
    lines.append(" ".join(map(str, [*rows.shape, np.count_nonzero(rows)])))
    for i, j in zip(*rows.nonzero(), strict=True):
        lines.append(f"{i + 1} {j + 1}" + ("" if field == "pattern" else f" {rows[i, j]}"))
    return "\n".join([*lines, ""]).encode()


def npz(rows: np.ndarray) -> bytes:
    file = io.BytesIO()
    sparse.save_npz(file, sparse.csr_array(rows))
    return file.getvalue()


def npy(rows: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, rows)
    return file.getvalue()


WRITERS = {
    "uci": docword,
    "lda-c": lda_c,
    "svmlight": svmlight,
    "mtx": matrix_market,
    "npz": npz,
    "npy": npy,
}
TEXT_FORMATS = ["uci", "lda-c", "svmlight", "mtx"]
PACKERS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def random_counts(seed: int, n_rows: int = 23, n_columns: int = 9) -> np.ndarray:
    """Return counts with empty rows, in the first and the last place too."""
    rng = np.random.default_rng((61, seed))
    rows = rng.integers(1, 3000, size=(n_rows, n_columns))
    rows *= rng.random((n_rows, n_columns)) < 0.3
    rows[rng.random(n_rows) < 0.2] = 0
    rows[[0, -1]] = 0
    rows[n_rows // 2, -1] = 10**17
    return rows


def write(folder: Path, content: bytes | str, name: str = "rows") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def read(path, format, batch_rows=1024, start=None, **options):
    """Return all batches of a file, and the positions after them."""
    source = open_source(path, Options(format=format, **options))
    return list(source.batches(batch_rows, start))


def dense(batches) -> list:
    """Return all rows of batches as lists."""
    found = []
    for records, _ in batches:
        rows = records.rows
        assert rows.shape[0] == len(records.numbers) == len(records.ids)
        found += (rows.toarray() if sparse.issparse(rows) else rows).tolist()
    return found


def rejects(batches) -> list:
    return [reject for records, _ in batches for reject in records.rejects]


class CutReader(ByteReader):
    """Gives a file in two pieces."""

    cut = 0

    def blocks(self):
        whole = b"".join(super().blocks())
        return iter([piece for piece in (whole[: self.cut], whole[self.cut :]) if piece])
