"""The bag-of-words format of the UCI repository: a "docword" file and its vocabulary.

A docword file starts with three lines, the number of documents D, of words W and of entries NNZ.
Each further line is an entry ``docID wordID count``: ids count from 1, and entries are sorted by
docID. A pair that occurs twice is summed; blank lines between entries are skipped. Files may be
compressed with gzip, which is recognised by its first bytes and not by the name.
"""

from collections.abc import Iterator
from os import PathLike

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bnpstream.streams._docword import iter_entries, read_header
from bnpstream.streams._files import open_bytes, unexpected_line

__all__ = ["iter_docword", "read_docword", "read_vocabulary"]


def iter_docword(
    path: str | PathLike[str], batch_rows: int = 1024
) -> Iterator[tuple[sparse.csr_array[np.int64], int]]:
    r"""Yield the documents of a UCI docword file in order, in batches.

    Memory holds one batch and one block of text, however long the file is. Row i of all batches
    laid end to end is document i + 1; a document without entries is an empty row.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip.
    batch_rows : int, default 1024
        Rows of a batch; the last one may have fewer.

    Yields
    ------
    batch : csr_array of int64, shape (batch_rows, W)
        Word counts, one row a document.
    position : int
        Documents of the file delivered so far, this batch included.

    Raises
    ------
    ValueError
        If `batch_rows` is less than 1, or if the file breaks the format: the message names the
        file, the line, its content and what was expected. What was delivered before is sound.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "docword.txt")
    ...     n_characters = path.write_text("3\n2\n3\n1 1 4\n1 2 1\n3 2 5\n")
    ...     for batch, position in iter_docword(path, batch_rows=2):
    ...         print(position, batch.toarray().tolist())
    2 [[4, 1], [0, 0]]
    3 [[0, 5]]
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows is {batch_rows}: a batch needs at least 1 row")
    with open_bytes(path) as file:
        header = read_header(file, path)
        delivered = 0
        pending: list[NDArray[np.int64]] = []
        for entries, n_complete in iter_entries(file, path, header):
            pending.append(entries)
            n_rows = n_complete - delivered
            if n_complete < header.n_documents:
                n_rows -= n_rows % batch_rows
            if n_rows == 0:
                continue
            joined = np.concatenate(pending, axis=1)
            for start in range(delivered, delivered + n_rows, batch_rows):
                stop = min(start + batch_rows, n_complete)
                yield _rows(joined, start, stop, header.n_words), stop
            delivered += n_rows
            pending = [joined[:, np.searchsorted(joined[0], delivered + 1) :]]


def read_docword(path: str | PathLike[str]) -> sparse.csr_array[np.int64]:
    r"""Read a whole UCI docword file.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip.

    Returns
    -------
    csr_array of int64, shape (D, W)
        Word counts; row i is document i + 1, column j is word j + 1.

    Raises
    ------
    ValueError
        If the file breaks the format, as in `iter_docword`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "docword.txt")
    ...     n_characters = path.write_text("3\n2\n3\n1 1 4\n1 2 1\n3 2 5\n")
    ...     read_docword(path).toarray().tolist()
    [[4, 1], [0, 0], [0, 5]]
    """
    return sparse.vstack([batch for batch, _ in iter_docword(path)], format="csr")


def read_vocabulary(path: str | PathLike[str]) -> list[str]:
    r"""Read the vocabulary of a docword file: one word a line, in the order of their ids.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip, in UTF-8.

    Returns
    -------
    list of str, length W
        Word j is the one that docword files call j + 1.

    Raises
    ------
    ValueError
        If a line is empty or is not UTF-8; the message names the file and the line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "vocab.txt")
    ...     n_characters = path.write_text("senate\nhouse\n")
    ...     read_vocabulary(path)
    ['senate', 'house']
    """
    words = []
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                word = line.rstrip(b"\r\n").decode("utf-8")
            except UnicodeDecodeError as error:
                raise unexpected_line(path, number, line, f"UTF-8 text ({error.reason})") from error
            if not word:
                # Skipping it would move every later word to another id.
                raise unexpected_line(path, number, line, "a word, as line numbers are word ids")
            words.append(word)
    return words


def _rows(
    entries: NDArray[np.int64], start: int, stop: int, n_words: int
) -> sparse.csr_array[np.int64]:
    """Gather the entries of documents start + 1, ..., stop into rows."""
    documents, words, counts = entries
    bounds = np.searchsorted(documents, np.arange(start + 1, stop + 2))
    inside = slice(bounds[0], bounds[-1])
    # Much code that takes sparse matrices, scikit-learn's included, wants 32-bit indices.
    fits = max(n_words, bounds[-1] - bounds[0]) <= np.iinfo(np.int32).max
    index_type = np.int32 if fits else np.int64
    rows = sparse.csr_array(
        (
            # Copied, as `sum_duplicates` works in place and a view would keep the block alive.
            counts[inside].copy(),
            (words[inside] - 1).astype(index_type),
            (bounds - bounds[0]).astype(index_type),
        ),
        shape=(stop - start, n_words),
    )
    rows.sum_duplicates()
    return rows
