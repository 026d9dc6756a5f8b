"""Rows of records: counts by word or by column, and cells of a table."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bnpstream.kernels.text.bags import Bags
from bnpstream.sources.formats.tokenizer import HashedWords, TextCounter
from bnpstream.sources.records import Schema, UnusableError

EXCERPT_CHARACTERS, EXCERPT_WORDS = 160, 20
"""Length of the excerpt of a document for people to read."""
LARGEST_COUNT = 1 << 53
"""Beyond this, floats are not exact; no document is as long."""
LARGEST_SUM = 1 << 62
TOO_LONG = "its counts have a sum of more than 64 bits"
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "truth": (bool,),
    "label": (str,),
}
_REMEMBERED = 1000
NO_COLUMN = -1


class DocumentRows:
    """Turns documents into rows of a schema.

    Parameters
    ----------
    schema : Schema
        Of kind "documents", or of kind "counts": with names, unknown words are left out; without,
        words are hashed.

    Examples
    --------
    >>> rows = DocumentRows(Schema("text", "counts", 2, ("house", "senate")))
    >>> rows([{"senate": 2, "vote": 1}, {"house": 1}]).toarray().tolist()
    [[0, 2], [1, 0]]
    """

    def __init__(self, schema: Schema) -> None:
        self._columns: dict[str, int] | None = None
        self._n_columns, self._is_open = schema.n_features or 0, schema.names is None
        if schema.kind == "counts" and schema.names is None:
            self._columns = HashedWords(self._n_columns)
        elif schema.kind == "counts":
            self._columns = {}
            for column, word in enumerate(schema.names or ()):
                self._columns.setdefault(word, column)

    def __call__(self, documents: list[dict[str, int]]) -> Any:
        """Return the rows of documents."""
        if self._columns is None:
            return documents
        columns = self._columns
        if not self._is_open:
            documents = [
                {word: count for word, count in document.items() if word in columns}
                for document in documents
            ]
        bounds = np.zeros(len(documents) + 1, dtype=np.int32)
        np.cumsum([len(document) for document in documents], out=bounds[1:])
        indices = map(columns.__getitem__, chain.from_iterable(documents))
        counts = chain.from_iterable(document.values() for document in documents)
        return _counted(
            np.fromiter(counts, dtype=np.int64, count=bounds[-1]),
            np.fromiter(indices, dtype=np.int32, count=bounds[-1]),
            bounds,
            self._n_columns,
        )

    def column(self, word: str) -> int:
        """Return the column of a word, or `NO_COLUMN` if it is left out."""
        assert self._columns is not None
        is_known = self._is_open or word in self._columns
        return self._columns[word] if is_known else NO_COLUMN


class TextRows:
    """Turns texts into rows of a schema.

    Parameters
    ----------
    schema : Schema
        As for `DocumentRows`; rows of kind "documents" are `Bags`.

    Examples
    --------
    >>> rows = TextRows(Schema("text", "counts", 2, ("house", "senate")))
    >>> rows(["Senate vote, senate", "House"]).toarray().tolist()
    [[0, 2], [1, 0]]
    """

    def __init__(self, schema: Schema) -> None:
        self._count, self._documents = TextCounter(schema.ngrams), DocumentRows(schema)
        self._is_open, self._n_columns = schema.kind == "documents", schema.n_features or 0
        self._lexicon: object = None
        self._columns = np.empty(0, np.int32)

    def __call__(self, texts: list[str]) -> Any:
        """Return the rows of texts."""
        bags = self._count(texts)
        if self._is_open:
            return bags
        if not isinstance(bags, Bags):
            return self._documents(bags)
        columns = self._columns_of(bags)[bags.ids]
        kept = columns != NO_COLUMN
        bounds = np.append(0, np.cumsum(kept))[bags.indptr].astype(np.int32)
        return _counted(bags.counts[kept], columns[kept], bounds, self._n_columns)

    def _columns_of(self, bags: Bags) -> NDArray[np.int32]:
        """Return the column of each word in the lexicon."""
        if self._lexicon is not bags.words.lexicon:
            self._lexicon, self._columns = bags.words.lexicon, np.empty(0, np.int32)
        new = bags.words.spelled(range(self._columns.size, bags.words.size))
        if new:
            found = [self._documents.column(word) for word in new]
            self._columns = np.append(self._columns, np.array(found, np.int32))
        return self._columns


def _counted(
    counts: NDArray[np.int64], columns: NDArray[np.int32], bounds: NDArray[np.int32], n: int
) -> sparse.csr_array:
    """Return rows over n columns, each column once."""
    rows = sparse.csr_array((counts, columns, bounds), shape=(bounds.size - 1, n))
    rows.sum_duplicates()
    return rows


def too_long(rows: sparse.csr_array) -> NDArray[np.bool_]:
    """Return which rows of whole numbers >= 0 have a sum of `LARGEST_SUM` or more.

    Duplicate entries are summed next; in 64 bits, a larger sum could overflow to any number.

    Examples
    --------
    >>> rows = sparse.csr_array(np.array([[3, 4], [2**53, 1], [2**62, 2**62]]))
    >>> too_long(rows).tolist()
    [False, False, True]
    """
    if rows.nnz == 0 or rows.data.max() < LARGEST_SUM // rows.nnz:
        return np.zeros(rows.shape[0], np.bool_)
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    sums = np.bincount(row_of, rows.data.astype(np.float64), minlength=rows.shape[0])
    return sums >= LARGEST_SUM


def counts_of(field: Any) -> dict[str, int]:
    """Return the words of a field with counts by word, or with a list of words.

    Raises
    ------
    UnusableError
        If it is neither, or if a count is not a whole number >= 0.

    Examples
    --------
    >>> counts_of(["house", "vote", "house"])
    {'house': 2, 'vote': 1}
    >>> counts_of({"house": 2, "vote": 0})
    {'house': 2}
    """
    if isinstance(field, dict):
        counts = field.values()
        if (
            all(type(count) is int for count in counts)
            and min(counts, default=1) >= 1
            and sum(counts) <= LARGEST_COUNT
        ):
            return field
        found = {word: whole for word, count in field.items() if (whole := _whole(word, count))}
        if sum(found.values()) > LARGEST_COUNT:
            raise UnusableError(f"its counts have a sum of more than {LARGEST_COUNT}")
        return found
    if isinstance(field, list):
        if not all(type(word) is str for word in field):
            raise UnusableError("its list of words contains something that is not a string")
        return dict(Counter(field))
    raise UnusableError("counts are neither an object nor a list of words")


def _whole(word: str, count: Any) -> int:
    if isinstance(count, bool) or not isinstance(count, int | float):
        raise UnusableError(f"the count of {word[:40]!r} is not a number")
    if not 0 <= count <= LARGEST_COUNT or count != int(count):
        what = "negative" if count < 0 else "not a whole number, or too large"
        raise UnusableError(f"the count of {word[:40]!r} is {what}: {count}")
    return int(count)


def excerpt_of_text(text: str) -> str:
    """Return the beginning of a text."""
    return text[:EXCERPT_CHARACTERS]


def excerpt_of_counts(counts: dict[str, int]) -> str:
    """Return the most frequent words.

    Examples
    --------
    >>> excerpt_of_counts({"vote": 1, "house": 2})
    'house vote'
    """
    words = sorted(counts, key=counts.__getitem__, reverse=True)[:EXCERPT_WORDS]
    return " ".join(words)[:EXCERPT_CHARACTERS]


class CellTypes:
    """Checks the types of the cells of rows.

    Parameters
    ----------
    names, types : sequence of str
        Names and types of the columns.

    Examples
    --------
    >>> CellTypes(("size", "colour"), ("number", "label")).check(["red", "red"])
    Traceback (most recent call last):
    bnpstream.sources.records.UnusableError: column 'size' has 'red', not a number
    """

    def __init__(self, names: Sequence[str], types: Sequence[str]) -> None:
        self._names, self._types = names, types
        # Few combinations of types occur, so most rows take one lookup.
        self._sound: set[tuple[type, ...]] = set()

    def check(self, cells: list[Any]) -> list[Any]:
        """Return the cells of a row, None if missing; UnusableError if a type is wrong."""
        found = tuple(map(type, cells))
        if found not in self._sound:
            for name, type_, cell in zip(self._names, self._types, cells, strict=True):
                if cell is not None and type(cell) not in _PYTHON_TYPES[type_]:
                    raise UnusableError(f"column {name!r} has {str(cell)[:40]!r}, not a {type_}")
            if len(self._sound) < _REMEMBERED:
                self._sound.add(found)
        return cells


def gather_cells(rows: list[list[Any]], types: Sequence[str]) -> Any:
    """Return rows as an array of float, NaN for missing cells, if all cells are numbers.

    Otherwise as an array of objects: float, bool, str, or None.

    Examples
    --------
    >>> gather_cells([[3, 0.5], [None, 1]], ("number", "number"))
    array([[3. , 0.5],
           [nan, 1. ]])
    >>> gather_cells([[3, "red"], [None, "blue"]], ("number", "label"))
    array([[3.0, 'red'],
           [None, 'blue']], dtype=object)
    """
    shape = (len(rows), len(types))
    if set(types) == {"number"}:
        return np.array(rows, dtype=np.float64).reshape(shape)
    gathered = np.empty(shape, dtype=object)
    for column, type_ in enumerate(types):
        cells = [row[column] for row in rows]
        if type_ == "number":
            cells = [None if cell is None else float(cell) for cell in cells]
        gathered[:, column] = cells
    return gathered
