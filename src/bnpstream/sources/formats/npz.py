"""Sparse matrices in compressed rows, written by `scipy.sparse.save_npz`.

The file is a zip archive of arrays. Row i has the columns ``indices[indptr[i]:indptr[i + 1]]`` and
the values ``data[indptr[i]:indptr[i + 1]]``; the three are read side by side, some rows at a time.
Whole numbers are counts, real ones make a table.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position, too_short
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.archives import ArrayStream, open_archive, open_array
from bnpstream.sources.formats.rows import TOO_LONG, too_long
from bnpstream.sources.formats.schemas import check_features, number_schema
from bnpstream.sources.records import BEGINNING, Options, Records, Reject, Schema

_CONVERT = "write it with scipy.sparse.save_npz(path, scipy.sparse.csr_array(matrix))"
_READ_ROWS = 1024
"""Rows read at a time; fixed, so that damage shows at the same row whatever the batches."""
_NAMES = ("format", "shape", "indptr", "indices", "data")


class NpzReader(Reader):
    """Reads the rows of a sparse matrix from an archive of arrays."""

    format: ClassVar[str] = "npz"

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        with _open_matrix(file) as matrix:
            self._n_rows = matrix.n_rows
            check_features(file, matrix.n_columns, schema)

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return the schema of the matrix."""
        with _open_matrix(file) as matrix:
            return number_schema(
                cls.format, file, matrix.n_columns, options, is_real=matrix.is_real
            )

    @property
    def n_records(self) -> int:
        """Return the number of rows of the matrix."""
        return self._n_rows

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield rows, with the position after each batch."""
        before, n_rows = start.records - start.in_file, self._n_rows
        with _open_matrix(self.file) as matrix:
            for first in range(0, n_rows, _READ_ROWS):
                rows, found = matrix.take(min(_READ_ROWS, n_rows - first))
                faults = {first + i: fault for i, fault in found.items()}
                end, at = first + rows.shape[0], max(first, start.in_file)
                while at < end:
                    until = min(at + batch_rows - at % batch_rows, end)
                    records = self._records(rows[at - first : until - first], faults, at, before)
                    yield records, Position(before + until, start.file, until, until)
                    at = until
                self.file.consumed = (self.file.size or 0) * end // n_rows
        if n_rows < start.in_file:
            raise too_short(self.file.path, n_rows, "rows", start.in_file)

    def _records(
        self, rows: sparse.csr_array, faults: dict[int, tuple[str, str]], first: int, before: int
    ) -> Records:
        """Return the valid rows, and rejects for the others; `first` numbers the first row."""
        all_rows = range(first, first + rows.shape[0])
        kept = [i for i in all_rows if i not in faults]
        if len(kept) < rows.shape[0]:
            rows = rows[[i - first for i in kept]]
        numbers = [before + i for i in kept]
        return Records(
            rows=rows if self.schema.kind == "counts" else rows.toarray(),
            numbers=numbers,
            ids=list(numbers),
            rejects=[
                Reject(self.file.path, i + 1, before + i, *faults[i])
                for i in all_rows
                if i in faults
            ],
        )


@contextmanager
def _open_matrix(file: ByteReader) -> Iterator["_Matrix"]:
    """Open the matrix in an archive; ValueError if there is none in compressed rows."""
    path = file.path
    if file.is_live or path == "-":
        raise ValueError(
            f"{path}: an archive has its index at the end, so it cannot be read from a pipe or "
            "while it grows: give a file"
        )
    with open_archive(path) as zipped:
        members = zipped.namelist()
        missing = [name for name in _NAMES if f"{name}.npy" not in members]
        if missing:
            raise ValueError(
                f"{path}: no array {missing[0]!r} in the archive, so it is not a sparse "
                f"matrix: {_CONVERT}"
            )
        layout = str(open_array(zipped, "format").take(1).astype(str)[0])
        if layout != "csr":
            raise ValueError(
                f"{path}: the matrix is stored as {layout!r}, not as 'csr' (by rows): {_CONVERT}"
            )
        shape, bounds, indices, values = (open_array(zipped, name) for name in _NAMES[1:])
        if {array.dtype.kind for array in (shape, bounds, indices)} - set("iu"):
            raise ValueError(f"{path}: its shape and columns are not whole numbers: {_CONVERT}")
        n_rows, n_columns = map(int, shape.take(2))
        if min(n_rows, n_columns) < 1:
            raise ValueError(f"{path}: not a matrix of numbers: {_CONVERT}")
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{path}: the values are of type {values.dtype}, not numbers: {_CONVERT}"
            )
        if bounds.size != n_rows + 1 or indices.size != values.size:
            raise ValueError(f"{path}: its arrays do not belong together: {_CONVERT}")
        if bounds.take(1)[0] != 0:
            raise ValueError(f"{path}: the bounds of rows are out of order: {_CONVERT}")
        yield _Matrix(path, n_rows, n_columns, bounds, indices, values)


@dataclass
class _Matrix:
    """A matrix whose rows are read in order."""

    path: str
    n_rows: int
    n_columns: int
    bounds: ArrayStream
    indices: ArrayStream
    values: ArrayStream
    last: int = 0
    """Entries read so far."""

    @property
    def is_real(self) -> bool:
        """Return whether values are floating-point numbers."""
        return self.values.dtype.kind == "f"

    def take(self, n_rows: int) -> tuple[sparse.csr_array, dict[int, tuple[str, str]]]:
        """Return the next rows, with reason and beginning of those that are invalid."""
        bounds = np.concatenate([[self.last], self.bounds.take(n_rows)]).astype(np.int64)
        if np.any(bounds[1:] < bounds[:-1]) or bounds[-1] > self.indices.size:
            raise ValueError(f"{self.path}: the bounds of rows are out of order: {_CONVERT}")
        self.last = int(bounds[-1])
        bounds -= bounds[0]
        columns = self.indices.take(int(bounds[-1]))
        values = self.values.take(int(bounds[-1]))
        faults = self._faults(bounds, columns, values)
        small = max(self.n_columns, int(bounds[-1])) <= np.iinfo(np.int32).max
        index_type = np.int32 if small else np.int64
        rows = sparse.csr_array(
            (
                values.astype(np.float64 if self.is_real else np.int64),
                # Invalid rows are dropped later; until then they must do no harm.
                np.where(self._is_outside(columns), 0, columns).astype(index_type),
                bounds.astype(index_type),
            ),
            shape=(n_rows, self.n_columns),
        )
        if not self.is_real:
            for row in np.flatnonzero(too_long(rows)).tolist():
                faults.setdefault(row, (TOO_LONG, ""))
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return rows, dict(sorted(faults.items()))

    def _is_outside(self, columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (columns < 0) | (columns >= self.n_columns)

    def _faults(
        self, bounds: NDArray[np.int64], columns: NDArray[np.int64], values: NDArray[np.float64]
    ) -> dict[int, tuple[str, str]]:
        outside = self._is_outside(columns)
        if self.is_real:
            wrong, expected = ~np.isfinite(values), "finite values"
        else:
            # Larger numbers of type uint64 do not fit.
            wrong = (values < 0) | (values > np.iinfo(np.int64).max)
            expected = "values of at least 0 that fit in 64 bits"
        faults: dict[int, tuple[str, str]] = {}
        for entry in np.flatnonzero(outside | wrong):
            row = int(np.searchsorted(bounds, entry, side="right")) - 1
            if row not in faults:
                inside = slice(bounds[row], min(bounds[row] + BEGINNING, bounds[row + 1]))
                pairs = zip(columns[inside].tolist(), values[inside].tolist(), strict=True)
                text = " ".join(f"{column}:{value}" for column, value in pairs)[:BEGINNING]
                reason = f"columns in 0..{self.n_columns - 1}" if outside[entry] else expected
                faults[row] = (f"expected {reason}", text)
        return faults
