"""A sample of the rows of a stream that does not depend on how rows are split into calls."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods import Batch

Arrays = dict[str, NDArray[Any]]

ENTRIES = 2**19
"""Most words in the rows kept."""
NUMBERS, LEAST_VECTORS, MOST_VECTORS = 2**21, 2048, 8192
"""Most numbers in the vectors kept, except for the least number of vectors; most vectors."""
PENDING, WAITING = 64, 0.125
"""Calls whose rows are stored together, or the share of the space for rows that they take."""
MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Constants of splitmix64."""


def row_keys(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a hash of row numbers, by splitmix64, which decides which rows are kept."""
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + np.uint64(1)) * MIX[0]
        z = (z ^ (z >> np.uint64(30))) * MIX[1]
        z = (z ^ (z >> np.uint64(27))) * MIX[2]
        return z ^ (z >> np.uint64(31))


def require(arrays: Arrays, name: str, dtype: Any, size: int | None = None) -> NDArray[Any]:
    """Return an array of a snapshot; ValueError if its type or size is wrong."""
    array = arrays[name]
    if array.dtype != dtype or array.ndim != 1 or size not in (None, array.size):
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
    return array


def require_rows(arrays: Arrays, start: str, columns: str, values: str, n: int) -> None:
    """Raise ValueError if arrays of a snapshot are not n compressed rows."""
    indptr = arrays[f"{start}indptr"]
    if indptr.dtype.kind != "i" or indptr.shape != (n + 1,):
        raise ValueError(f"{start}indptr is {indptr.dtype} of shape {indptr.shape}")
    found = arrays[f"{start}{columns}"]
    if found.dtype.kind != "i" or found.ndim != 1 or found.min(initial=0) < 0:
        raise ValueError(f"{start}{columns} are not columns")
    counts = require(arrays, f"{start}{values}", np.float64, found.size)
    if indptr[0] != 0 or indptr[-1] != found.size or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"{start}indptr does not go from 0 to {found.size}")
    if not np.isfinite(counts).all():
        raise ValueError(f"{start}{values} are not all finite")


class Words(NamedTuple):
    """Word counts in compressed rows, without the lengths of documents."""

    indptr: Integers
    columns: NDArray[np.int64]
    values: Floats

    @classmethod
    def of(cls, indptr: Any, columns: Any, values: Any) -> Self:
        """Return rows whose last entry is their length."""
        keep = np.ones(len(columns), np.bool_)
        keep[np.asarray(indptr[1:], np.int64) - 1] = False
        starts = np.asarray(indptr, np.int64) - np.arange(len(indptr))
        return cls(starts, np.asarray(columns)[keep].astype(np.int64), np.asarray(values)[keep])

    @classmethod
    def of_batch(cls, batch: Batch) -> Self:
        """Return the words of encoded documents."""
        rows = batch.kernel_rows
        return cls.of(rows.indptr, rows.indices, rows.values)

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Return the rows of several, in order."""
        found = list(parts)
        sizes = [np.diff(part.indptr) for part in found]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(sizes))])
        columns, values = (np.concatenate(x) for x in list(zip(*found, strict=True))[1:])
        return cls(indptr, columns, values)

    @property
    def fullness(self) -> float:
        """Return the share of the space for words that these take."""
        return self.columns.size / ENTRIES

    @property
    def last(self) -> NDArray[np.bool_]:
        """Return the last rows that fit."""
        fits: NDArray[np.bool_] = self.indptr[:-1] >= self.indptr[-1] - ENTRIES
        return fits

    def common(self) -> Self:
        """Return rows without words that only one of them has, because these join nothing.

        If there are no others, all words are kept.
        """
        n_rows = np.bincount(self.columns)
        keep = n_rows[self.columns] > 1
        if not keep.any():
            return self
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])[self.indptr]
        return type(self)(indptr, self.columns[keep], self.values[keep])

    def chosen(self, rows: NDArray[np.bool_]) -> Self:
        """Return some rows."""
        keep = np.repeat(rows, np.diff(self.indptr))
        sizes = np.diff(self.indptr)[rows]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        return type(self)(indptr, self.columns[keep], self.values[keep])


class Vectors(NamedTuple):
    """Directions, to three digits."""

    vectors: NDArray[np.float16]

    @classmethod
    def of_batch(cls, batch: Any) -> Self:
        """Return the directions of a `VectorBatch`."""
        return cls((batch.factors[:, None].astype(np.float32) * batch.values).astype(np.float16))

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Return the rows of several, in order."""
        return cls(np.concatenate([part.vectors for part in parts]))

    @property
    def room(self) -> int:
        """Return the number of rows that may be kept."""
        n_columns = max(1, int(self.vectors.shape[1]))
        return min(max(NUMBERS // n_columns, LEAST_VECTORS), MOST_VECTORS)

    @property
    def fullness(self) -> float:
        """Return the share of the space for rows that these take."""
        return len(self.vectors) / self.room

    @property
    def last(self) -> NDArray[np.bool_]:
        """Return the last rows that fit."""
        n = len(self.vectors)
        return np.arange(n) >= n - self.room

    def chosen(self, rows: NDArray[np.bool_]) -> Self:
        """Return some rows."""
        return type(self)(self.vectors[rows])


class Memory:
    """A sample of the rows of a stream, with the cluster of each on arrival.

    A row is kept if the hash of its number is below a limit, which is halved as soon as the rows
    kept have too many words. In a stream that forgets, the last rows are kept instead. So the
    sample depends on the rows seen, never on calls.

    Attributes
    ----------
    n_seen : int
        Number of rows seen.
    """

    def __init__(self) -> None:
        self.n_seen, self._halvings, self._forgets = 0, 0, False
        self._numbers, self._ids = np.empty(0, np.int64), np.empty(0, np.int64)
        self._rows: Any = Words(np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0))
        self._pending: list[tuple[Integers, Integers, Any]] = []

    def add(self, batch: Batch, ids: NDArray[np.int64], forgets: bool = False) -> None:
        """Look at absorbed rows: the first of a batch, as many as have clusters."""
        self._forgets = forgets
        numbers, rows = np.arange(self.n_seen, self.n_seen + ids.size), batch.kernel_rows
        self.n_seen += ids.size
        kept: Any
        if batch.has_sparse_rows:
            stop = rows.indptr[ids.size]
            ends = rows.indptr[: ids.size + 1]
            kept = Words.of(ends, rows.indices[:stop], rows.values[:stop])
        else:
            chosen = np.flatnonzero(self._stays(numbers))
            numbers, ids = numbers[chosen], ids[chosen]
            kept = Vectors.of_batch(batch.chosen(chosen))
        self._pending.append((numbers, ids.copy(), kept))
        waiting = sum(rows.fullness for _, _, rows in self._pending)
        if len(self._pending) == PENDING or waiting > WAITING:
            self._put_away()

    def _stays(self, numbers: Integers) -> NDArray[np.bool_]:
        """Return which rows have a hash below the limit."""
        if self._halvings == 0:
            return np.ones(numbers.size, np.bool_)
        below: NDArray[np.bool_] = row_keys(numbers) >> np.uint64(64 - self._halvings) == 0
        return below

    def _put_away(self) -> None:
        """Store the rows to be kept of those looked at."""
        if not self._pending:
            return
        numbers, ids, rows = zip(*self._pending, strict=True)
        self._pending = []
        self._take(np.concatenate(numbers), np.concatenate(ids), type(rows[0]).joined(rows))
        if self._forgets:
            self._keep(self._rows.last)
        while self._rows.fullness > 1.0:
            self._halvings += 1
            self._take(self._numbers[:0], self._ids[:0], None)

    def _take(self, numbers: Integers, ids: Integers, rows: Any) -> None:
        """Add rows, and drop those whose hash is above the limit, including old ones."""
        if rows is not None:
            self._rows = rows if self._numbers.size == 0 else type(rows).joined([self._rows, rows])
        self._numbers, self._ids = np.append(self._numbers, numbers), np.append(self._ids, ids)
        if self._halvings:
            self._keep(self._stays(self._numbers))

    def vectors(self, last: float = np.inf) -> NDArray[np.float16]:
        """Return the kept rows among the last of a stream of vectors, in order of arrival."""
        self._put_away()
        found: NDArray[np.float16] = self._rows.vectors[self._numbers >= self.n_seen - last]
        return found

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        self._numbers, self._ids = self._numbers[kept], self._ids[kept]
        self._rows = self._rows.chosen(kept)

    def rows(self, most_words: int = ENTRIES, last: float = np.inf) -> tuple[Words, Integers]:
        """Return kept rows, and the clusters in which they arrived.

        Parameters
        ----------
        most_words : int
            Most words in all of them together.
        last : float
            Number of last rows of the stream to choose from.
        """
        self._put_away()
        chosen = self._numbers >= self.n_seen - last
        sizes = np.diff(self._rows.indptr)
        if sizes[chosen].sum() > most_words:
            order = np.flatnonzero(chosen)
            order = order[np.argsort(row_keys(self._numbers[order]), kind="stable")]
            n = np.searchsorted(np.cumsum(sizes[order]), most_words, "right")
            chosen[order[n:]] = False
        return self._rows.chosen(chosen), self._ids[chosen]

    def save_into(self, arrays: Arrays) -> None:
        """Add the rows kept to a snapshot."""
        self._put_away()
        arrays["topics.memory.counters"] = np.array([self.n_seen, self._halvings])
        arrays["topics.memory.numbers"], arrays["topics.memory.ids"] = self._numbers, self._ids
        arrays |= {f"topics.memory.{k}": x for k, x in self._rows._asdict().items()}

    @classmethod
    def load_from(cls, arrays: Arrays) -> "Memory":
        """Return the rows that `save_into` added."""
        memory = cls()
        n_seen, halvings = require(arrays, "topics.memory.counters", np.int64, 2).tolist()
        if n_seen < 0 or not 0 <= halvings < 64:
            raise ValueError(f"topics.memory.counters: {n_seen} rows, {halvings} halvings")
        memory.n_seen, memory._halvings = n_seen, halvings
        n = require(arrays, "topics.memory.numbers", np.int64).size
        require(arrays, "topics.memory.ids", np.int64, n)
        memory._numbers, memory._ids = (
            arrays["topics.memory.numbers"],
            arrays["topics.memory.ids"],
        )
        if "topics.memory.vectors" in arrays:
            vectors = arrays["topics.memory.vectors"]
            if vectors.dtype != np.float16 or vectors.ndim != 2 or len(vectors) != n:
                raise ValueError(
                    f"topics.memory.vectors is {vectors.dtype} of shape {vectors.shape}"
                )
            memory._rows = Vectors(vectors)
        else:
            require_rows(arrays, "topics.memory.", "columns", "values", n)
            memory._rows = Words(*(arrays[f"topics.memory.{k}"] for k in Words._fields))
        return memory
