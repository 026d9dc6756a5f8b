"""Dense matrices written by `numpy.save`, such as embeddings, one row per record.

Real numbers make a table and keep their precision. Integers are counts if they look like word
counts or a vocabulary is given, else a table of numbers.
"""

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from bnpstream.kernels.counts import are_word_counts
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position, too_short
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.archives import UNREADABLE
from bnpstream.sources.formats.rows import LARGEST_SUM, TOO_LONG
from bnpstream.sources.formats.schemas import MOST_VECTOR_COLUMNS, check_features, number_schema
from bnpstream.sources.records import BEGINNING, Options, Records, Reject, Schema

FIRST_ROWS = 1000
"""Rows that tell whether integers are word counts."""
_CONVERT = "write it with numpy.save(path, matrix), one row per record"


class NpyReader(Reader):
    """Reads the rows of a matrix."""

    format: ClassVar[str] = "npy"

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._matrix = _open_matrix(file)
        check_features(file, self._matrix.shape[1], schema)

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return the schema of the matrix."""
        matrix = _open_matrix(file)
        is_real = matrix.dtype.kind == "f" or not (
            matrix.dtype.kind == "b"
            or options.vocab is not None
            or matrix.shape[1] > MOST_VECTOR_COLUMNS
            or are_word_counts(matrix[:FIRST_ROWS])
        )
        return number_schema(
            cls.format, file, matrix.shape[1], options, is_real=is_real, most=MOST_VECTOR_COLUMNS
        )

    @property
    def n_records(self) -> int:
        """Return the number of rows of the matrix."""
        return len(self._matrix)

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield rows, with the position after each batch."""
        before, n = start.records - start.in_file, self.n_records
        if n < start.in_file:
            raise too_short(self.file.path, n, "rows", start.in_file)
        first = start.in_file
        while first < n:
            until = min(first + batch_rows - first % batch_rows, n)
            yield (
                self._records(first, until, before),
                Position(before + until, start.file, until, until),
            )
            self.file.consumed = (self.file.size or 0) * until // n
            first = until

    def _records(self, first: int, until: int, before: int) -> Records:
        """Return the valid rows, and rejects for the others."""
        rows = np.array(self._matrix[first:until])
        is_counts = self.schema.kind == "counts"
        if is_counts:
            faults = _faults_of_counts(rows)
        else:
            faults = _faults(rows, ~np.isfinite(rows), "finite numbers")
        kept = [i for i in range(len(rows)) if i not in faults]
        numbers = [before + first + i for i in kept]
        return Records(
            rows=_counts(rows[kept]) if is_counts else _numbers(rows[kept]),
            numbers=numbers,
            ids=list(numbers),
            rejects=[
                Reject(
                    self.file.path,
                    first + i + 1,
                    before + first + i,
                    reason,
                    " ".join(map(str, rows[i, :BEGINNING].tolist()))[:BEGINNING],
                )
                for i, reason in faults.items()
            ],
        )


def _counts(rows: NDArray[Any]) -> sparse.csr_array[np.int64]:
    return sparse.csr_array(rows.astype(np.int64))


def _numbers(rows: NDArray[Any]) -> NDArray[Any]:
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def _faults_of_counts(rows: NDArray[Any]) -> dict[int, str]:
    """Return the rows that cannot be used, with reasons."""
    faults = _faults(rows, rows < 0, "counts of at least 0")
    sums = rows.sum(axis=1, dtype=np.float64)  # also for uint64, before it becomes int64
    too_long = np.flatnonzero(sums >= LARGEST_SUM).tolist()
    return dict(sorted((dict.fromkeys(too_long, TOO_LONG) | faults).items()))


def _faults(rows: NDArray[Any], wrong: NDArray[np.bool_], expected: str) -> dict[int, str]:
    at = {i: int(np.argmax(wrong[i])) for i in np.flatnonzero(wrong.any(axis=1)).tolist()}
    return {i: f"expected {expected}, but column {j} is {rows[i, j]}" for i, j in at.items()}


def _open_matrix(file: ByteReader) -> NDArray[Any]:
    """Return the matrix of a file, memory-mapped."""
    path = file.path
    if file.is_live or path == "-":
        raise ValueError(
            f"{path}: a matrix cannot be read from a pipe or while it grows: give a file"
        )
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore"):  # of sizes in a header
            warnings.simplefilter("ignore", DeprecationWarning)  # of types in a header
            matrix: NDArray[Any] = npy.open_memmap(path, mode="r")  # never objects
    except UNREADABLE as error:
        raise ValueError(f"{path}: not a matrix of numbers ({error}): {_CONVERT}") from error
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"{path}: an array of {matrix.dtype} of shape {matrix.shape}, not a non-empty "
            f"matrix of numbers: {_CONVERT}"
        )
    return matrix
