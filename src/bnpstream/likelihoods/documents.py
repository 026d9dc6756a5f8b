"""Documents as lists of words or word counts: validation, and batches."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.kernels.arrays import Floats, Integers, SparseRows
from bnpstream.kernels.text.bags import Bags
from bnpstream.kernels.words.numbering import number_words
from bnpstream.kernels.words.tokens import with_tokens
from bnpstream.likelihoods.batch import Batch, Row, plain_rows
from bnpstream.likelihoods.counts import LARGEST_COUNT, reason
from bnpstream.likelihoods.errors import RowError
from bnpstream.likelihoods.typicality import log_factorial

Document = dict[Hashable, int]

UNSEEN = 0
"""Column of all unknown words; known words are numbered from one on."""
LENGTH = 2**31 - 2
"""Column of the length: the last, too far out for any vocabulary to reach."""


def as_documents(documents: Any) -> Sequence[Document]:
    """Return documents as word counts; ValueError says which one is wrong, and why.

    Parameters
    ----------
    documents : Bags, or iterable of (mapping from words to counts, or iterable of words)
        Words may be any hashable. Words with count 0 are left out. Bags are returned unchanged.
    """
    if isinstance(documents, Bags) and len(documents) > 0:
        return documents  # type: ignore[return-value]
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        raise ValueError(
            "documents must be a list of documents, each a list of words or a dict of counts, "
            f"got {type(documents).__name__}; for a single one use [document]"
        )
    found = [as_document(document, f"document {i}", i) for i, document in enumerate(documents)]
    if not found:
        raise ValueError("documents is empty: it needs at least one document")
    return found


def as_document(document: Any, name: str, row: int = 0) -> Document:
    """Return one document as word counts; `name` is its name in errors."""
    if isinstance(document, str | bytes):
        raise _refused(row, name, "is a string: split it into words, for example with .split()")
    if isinstance(document, Mapping):
        counts = document.values()
        if set(map(type, counts)) == {int} and min(counts) > 0 and max(counts) < LARGEST_COUNT:
            return dict(document)
        return {
            word: _as_count(count, word, name, row) for word, count in document.items() if count
        }
    if not isinstance(document, Iterable):
        raise _refused(row, name, f"must be a list of words or a dict of counts, got {document!r}")
    try:
        return dict(Counter(document))
    except TypeError as error:
        raise _refused(row, name, f"contains something that cannot be a word: {error}") from None


def _refused(row: int, name: str, fault: str) -> RowError:
    return RowError(row, f"it {fault}", f"{name} {fault}")


def _as_count(value: Any, word: Hashable, name: str, row: int) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError):
        fault = "counts must be numbers"
    else:
        if 0 <= number <= LARGEST_COUNT and number == int(number):
            return int(number)
        fault = f"{reason(number)}; counts must be whole numbers >= 0"
    said = f"word {word!r} is {value!r}: {fault}"
    raise RowError(row, said, f"{name}, {said}")


class DocumentBatch(Batch):
    """Encoded documents: columns of words in ascending order, the length last.

    Parameters
    ----------
    indptr : ndarray of shape (n + 1,)
        Start of each document, and end of the last.
    columns, values : ndarray of shape (entries,)
        Words and counts.
    log_base : ndarray of shape (n,)
        log h(x), the log multinomial coefficient.
    weights : ndarray of shape (n,), optional
        Number of rows that each document counts for; by default one.
    """

    def __init__(
        self,
        indptr: Integers,
        columns: Integers,
        values: Floats,
        log_base: Floats,
        weights: Floats | None = None,
    ) -> None:
        object.__setattr__(self, "indptr", indptr)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "log_base", log_base)
        object.__setattr__(self, "weights", weights)

    indptr: Integers
    columns: Integers
    values: Floats

    @classmethod
    def of(cls, documents: Sequence[Document], numbers: Mapping[Hashable, int]) -> Self:
        """Return documents with their words numbered; words without a number are `UNSEEN`."""
        columns: list[int] = []
        counts: list[int] = []
        ends = [0]
        for document in documents:
            found = list(map(numbers.get, document))
            if None in found:
                known = Counter[int]()
                for number, count in zip(found, document.values(), strict=True):
                    known[UNSEEN if number is None else number] += count
                columns += known.keys()
                counts += known.values()
            else:
                columns += found  # type: ignore[arg-type]
                counts += document.values()
            columns.append(LENGTH)
            counts.append(sum(document.values()))
            ends.append(len(columns))
        indptr, unsorted = np.array(ends, np.int64), np.array(columns, np.int64)
        if len(documents) == 1:
            order = np.argsort(unsorted)
        else:
            order = np.lexsort((unsorted, np.repeat(np.arange(len(documents)), np.diff(indptr))))
        return cls._of_sorted(indptr, unsorted[order], np.array(counts, np.float64)[order])

    @classmethod
    def of_bags(cls, bags: Bags, numbers: Integers) -> Self:
        """Return documents, given the numbers of the words in their lexicon.

        The rows are those that `of` makes of the same documents.
        """
        n_entries = bags.ids.size + len(bags)
        indptr, columns = np.zeros(len(bags) + 1, np.int64), np.empty(n_entries, np.int64)
        values = np.empty(n_entries)
        entries = (bags.indptr, bags.ids, bags.counts)
        used = number_words(entries, numbers, LENGTH, indptr, columns, values)
        return cls._of_sorted(indptr, columns[:used], values[:used])

    @classmethod
    def _of_sorted(cls, indptr: Integers, columns: Integers, values: Floats) -> Self:
        terms = -log_factorial(values)
        terms[indptr[1:] - 1] *= -1.0
        return cls(indptr, columns, values, np.add.reduceat(terms, indptr[:-1]))

    @property
    def n_statistics(self) -> int:
        """Return D, the length of a row of sufficient statistics."""
        return LENGTH + 1

    @cached_property
    def statistics(self) -> csr_array:
        """Return t(x) of all rows, sparse."""
        return csr_array(
            (self.values, self.columns, self.indptr), shape=(len(self), self.n_statistics)
        )

    def row(self, i: int) -> Row:
        """Return document i."""
        inside = slice(self.indptr[i], self.indptr[i + 1])
        weight = float(self.row_weights[i])
        return Row(self.columns[inside], self.values[inside], float(self.log_base[i]), weight)

    def weighted(self, weights: Floats | None) -> Self:
        """Return the same documents with other weights."""
        return type(self)(self.indptr, self.columns, self.values, self.log_base, weights)

    def chosen(self, rows: NDArray[np.intp] | slice) -> Self:
        """Return some documents."""
        if isinstance(rows, slice):
            indptr = self.indptr[rows.start : rows.stop + 1]
            places: Any = slice(indptr[0], indptr[-1])
            indptr = indptr - indptr[0]
        else:
            sizes = np.diff(self.indptr)[rows]
            indptr = np.append(0, np.cumsum(sizes))
            places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], sizes)
        weights = None if self.weights is None else self.weights[rows]
        log_base = self.log_base[rows]
        return type(self)(indptr, self.columns[places], self.values[places], log_base, weights)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the documents of several batches, in order."""
        sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        columns, values = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("columns", "values")
        )
        return cls(np.append(0, np.cumsum(sizes)), columns, values, *cls._joined_ends(parts))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that `VocabularyLikelihood.batch_of` needs to restore these rows."""
        names = ("indptr", "columns", "values", "log_base")
        found = {name: getattr(self, name) for name in names}
        return found if self.weights is None else found | {"weights": self.weights}

    def totals(self, n_columns: int) -> Floats:
        """Return the first columns of the statistics summed over all documents."""
        return self._summed(n_columns, self.values)

    def _summed(self, n_columns: int, values: Floats) -> Floats:
        inside = self.columns < n_columns
        if self.weights is not None:
            values = values * np.repeat(self.weights, np.diff(self.indptr))
        found = np.bincount(self.columns[inside], values[inside], minlength=n_columns)
        return found.astype(np.float64)

    def weighted_sums(self, responsibilities: csr_array) -> csr_array:
        """Return the (K, D) summed statistics given (n, K) responsibilities, sparse.

        Columns are renumbered meanwhile, because products take memory for each column.
        """
        words, places = np.unique(self.columns, return_inverse=True)
        counts = csr_array((self.values, places, self.indptr), shape=(len(self), words.size))
        sums = csr_array(responsibilities.T) @ counts
        sums.sort_indices()
        shape = (sums.shape[0], self.n_statistics)
        return csr_array((sums.data, words[sums.indices], sums.indptr), shape=shape)

    @cached_property
    def kernel_rows(self) -> SparseRows:
        """Return the arrays for compiled loops."""
        return with_tokens(
            plain_rows(self.indptr, self.columns, self.values, self.log_base, self.row_weights)
        )


class BurstyDocumentBatch(DocumentBatch):
    """Encoded documents whose base measure counts each word once per document."""

    def totals(self, n_columns: int) -> Floats:
        """Return the number of documents with each of the first columns."""
        return self._summed(n_columns, np.ones(self.values.size))
