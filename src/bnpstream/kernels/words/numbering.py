"""Bags of words as rows of documents: columns in ascending order, the length last."""

from typing import Any

from bnpstream.kernels.jit.decorators import entry, inlined


@inlined
def _sort(columns: Any, values: Any, start: int, stop: int) -> None:
    """Sort the entries of a document by column (Shell's way: most documents are short)."""
    gap = 1
    while 3 * gap < stop - start:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, stop):
            column = columns[i]
            value = values[i]
            at = i
            while at - gap >= start and columns[at - gap] > column:
                columns[at] = columns[at - gap]
                values[at] = values[at - gap]
                at -= gap
            columns[at] = column
            values[at] = value
        gap //= 3


@entry
def number_words(bags: Any, numbers: Any, last: int, indptr: Any, columns: Any, values: Any) -> int:
    """Write the rows of documents; return how many entries they have.

    Parameters
    ----------
    bags : (indptr, ids, counts)
        Documents.
    numbers : ndarray
        Column of every word; words of column 0 are counted together.
    last : int
        Column of the length.
    indptr, columns, values : ndarray
        Receive the rows, which have at most an entry more than the documents.
    """
    bounds, ids, counts = bags
    end = 0
    for i in range(bounds.size - 1):
        start = end
        length = 0.0
        for j in range(bounds[i], bounds[i + 1]):
            columns[end] = numbers[ids[j]]
            values[end] = counts[j]
            length += counts[j]
            end += 1
        _sort(columns, values, start, end)
        first = start
        while first + 1 < end and columns[first + 1] == 0:
            values[first + 1] += values[first]
            first += 1
        if first > start:
            for j in range(first, end):
                columns[start + j - first] = columns[j]
                values[start + j - first] = values[j]
            end -= first - start
        columns[end] = last
        values[end] = length
        end += 1
        indptr[i + 1] = end
    return end
