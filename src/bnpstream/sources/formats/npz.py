"""Sparse matrices in compressed rows, as `scipy.sparse.save_npz` writes them.

The file is a zip archive of arrays. Row i has the columns ``indices[indptr[i]:indptr[i + 1]]`` and
the values ``data[indptr[i]:indptr[i + 1]]``; the three are read side by side, some rows at a time.
Whole numbers are counts, real ones make a table.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.archives import open_archive
from bnpstream.sources.formats.schemas import check_features, number_schema
from bnpstream.sources.records import BEGINNING, Options, Records, Reject, Schema

__all__ = ["NpzReader"]

_CONVERT = "write it by scipy.sparse.save_npz(path, scipy.sparse.csr_array(matrix))"
_NAMES = ("format", "shape", "indptr", "indices", "data")


class NpzReader(Reader):
    """Reads the rows of a sparse matrix out of an archive of arrays."""

    format = "npz"

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        with _Matrix(file) as matrix:
            self._n_rows = matrix.n_rows
            check_features(file, matrix.n_columns, schema)

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the arrays are."""
        with _Matrix(file) as matrix:
            return number_schema(
                cls.format, file, matrix.n_columns, options, is_real=matrix.is_real
            )

    @property
    def n_records(self) -> int:
        """Return how many rows the matrix has."""
        return self._n_rows

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield rows, and the position after each batch."""
        before = start.records - start.in_file
        with _Matrix(self.file) as matrix:
            first = 0
            while first < matrix.n_rows:
                until = min(first + batch_rows - first % batch_rows, matrix.n_rows)
                if first < start.in_file:
                    until = min(until, start.in_file)
                rows, faults = matrix.take(until - first)
                if first >= start.in_file:
                    records = self._records(rows, faults, first, before)
                    yield records, Position(before + until, start.file, until, until)
                self.file.consumed = (self.file.size or 0) * until // matrix.n_rows
                first = until
            if matrix.n_rows < start.in_file:
                raise ValueError(
                    f"{self.file.path}: it has {matrix.n_rows} rows, but {start.in_file} were read "
                    "before: it is not the same file; start afresh"
                )

    def _records(
        self, rows: sparse.csr_array, faults: dict[int, tuple[str, str]], first: int, before: int
    ) -> Records:
        """Leave out the rows that have a fault."""
        kept = [i for i in range(rows.shape[0]) if i not in faults]
        numbers = [before + first + i for i in kept]
        if faults:
            rows = rows[kept]
        return Records(
            rows=rows if self.schema.kind == "counts" else rows.toarray(),
            numbers=numbers,
            ids=list(numbers),
            rejects=[
                Reject(self.file.path, first + i + 1, before + first + i, reason, beginning)
                for i, (reason, beginning) in faults.items()
            ],
        )


class _Matrix:
    """A matrix whose rows are taken in order.

    Parameters
    ----------
    file : ByteReader
        Its path is the archive.

    Raises
    ------
    ValueError
        If the archive has no matrix in compressed rows.
    """

    def __init__(self, file: ByteReader) -> None:
        if file.is_live or file.path == "-":
            raise ValueError(
                f"{file.path}: an archive has its contents at the end, so it cannot be read from a "
                "pipe or while it grows: give a file"
            )
        self._path = file.path
        with ExitStack() as opened:
            archive = opened.enter_context(open_archive(file.path))
            missing = [name for name in _NAMES if name not in archive]
            if missing:
                raise ValueError(
                    f"{file.path}: there is no array {missing[0]!r} in the archive, so it is no "
                    f"sparse matrix: {_CONVERT}"
                )
            layout = str(archive.open("format").take(1).astype(str)[0])
            if layout != "csr":
                raise ValueError(
                    f"{file.path}: the matrix is stored as {layout!r}, and not as 'csr', by rows: "
                    f"{_CONVERT}"
                )
            self.n_rows, self.n_columns = map(int, archive.open("shape").take(2))
            self._bounds, self._indices, self._values = map(archive.open, _NAMES[2:])
            self._check()
            self._last = int(self._bounds.take(1)[0])
            self._opened = opened.pop_all()

    @property
    def is_real(self) -> bool:
        """Return whether values are floating-point numbers."""
        return self._values.dtype.kind == "f"

    def __enter__(self) -> "_Matrix":
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def take(self, n_rows: int) -> tuple[sparse.csr_array, dict[int, tuple[str, str]]]:
        """Return the next rows, and the reason and the beginning of those that have a fault."""
        bounds = np.concatenate([[self._last], self._bounds.take(n_rows)]).astype(np.int64)
        if np.any(np.diff(bounds) < 0) or bounds[0] < 0 or bounds[-1] > self._indices.size:
            raise ValueError(f"{self._path}: the bounds of rows are out of order: {_CONVERT}")
        self._last = int(bounds[-1])
        bounds -= bounds[0]
        columns = self._indices.take(int(bounds[-1]))
        values = self._values.take(int(bounds[-1]))
        faults = self._faults(bounds, columns, values)
        small = max(self.n_columns, int(bounds[-1])) <= np.iinfo(np.int32).max
        index_type = np.int32 if small else np.int64
        rows = sparse.csr_array(
            (
                values.astype(np.float64 if self.is_real else np.int64),
                # Rows with a fault are dropped, but until then they must not harm.
                np.where(self._is_outside(columns), 0, columns).astype(index_type),
                bounds.astype(index_type),
            ),
            shape=(n_rows, self.n_columns),
        )
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return rows, faults

    def _check(self) -> None:
        """Raise ValueError if the arrays do not belong together."""
        kinds = self._bounds.dtype.kind + self._indices.dtype.kind
        if min(self.n_rows, self.n_columns) < 1 or not set(kinds) <= set("iu"):
            raise ValueError(f"{self._path}: it is no matrix of numbers with rows: {_CONVERT}")
        if self._values.dtype.kind not in "biuf":
            raise ValueError(
                f"{self._path}: the values are of type {self._values.dtype}, and not numbers: "
                f"{_CONVERT}"
            )
        if self._bounds.size != self.n_rows + 1 or self._indices.size != self._values.size:
            raise ValueError(f"{self._path}: its arrays do not belong together: {_CONVERT}")

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
                inside = slice(bounds[row], bounds[row] + BEGINNING)
                pairs = zip(columns[inside].tolist(), values[inside].tolist(), strict=True)
                text = " ".join(f"{column}:{value}" for column, value in pairs)[:BEGINNING]
                reason = f"columns in 0..{self.n_columns - 1}" if outside[entry] else expected
                faults[row] = (f"expected {reason}", text)
        return faults
