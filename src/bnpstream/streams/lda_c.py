"""The format of Blei's LDA-C: one line a document, ``n id:count id:count ...``.

n is the number of pairs on the line, and word ids count from 0. A document without words is the
line ``0``; a blank line is refused, as row numbers are line numbers. A pair that occurs twice is
summed. Files may be compressed with gzip, which is recognised by its first bytes and not by the
name.
"""

import re
from os import PathLike

import numpy as np
from scipy import sparse

from bnpstream.streams._files import read_lines, unexpected_line

__all__ = ["read_lda_c"]

# Eighteen digits are the most that always fit in int64.
_LINE = re.compile(rb"[ \t]*([0-9]{1,18})(?:[ \t]+[0-9]{1,18}:[0-9]{1,18})*[ \t]*")
_COLON_TO_SPACE = bytes.maketrans(b":", b" ")


def read_lda_c(path: str | PathLike[str], n_words: int | None = None) -> sparse.csr_array[np.int64]:
    r"""Read a whole file in LDA-C format.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip.
    n_words : int, optional
        Size V of the vocabulary; if not given, the largest word id plus one.

    Returns
    -------
    csr_array of int64, shape (D, V)
        Word counts; row i is line i + 1, column j is word id j.

    Raises
    ------
    ValueError
        If `n_words` is less than 1, or if the file breaks the format: the message names the file,
        the line, its content and what was expected.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "news.ldac")
    ...     n_characters = path.write_text("2 0:4 2:1\n0\n1 1:5\n")
    ...     read_lda_c(path).toarray().tolist()
    [[4, 0, 1], [0, 0, 0], [0, 5, 0]]
    """
    if n_words is not None and n_words < 1:
        raise ValueError(
            f"n_words is {n_words}: give at least 1, or None for the largest word id plus one"
        )
    lines = read_lines(path)
    if not lines:
        raise ValueError(f"{path}: the file is empty: expected a line for every document")

    n_pairs = np.array(
        [_count_pairs(path, number, line) for number, line in enumerate(lines, start=1)]
    )
    text = b"\n".join(lines).translate(_COLON_TO_SPACE)
    numbers = np.fromstring(text, dtype=np.int64, sep=" ")
    bounds = np.concatenate([[0], np.cumsum(n_pairs)])
    leading = 2 * bounds[:-1] + np.arange(len(lines))
    words, counts = np.delete(numbers, leading).reshape(-1, 2).T

    if n_words is None:
        n_words = int(words.max(initial=-1)) + 1
    for is_bad, expected in (
        (words >= n_words, f"word ids in 0..{n_words - 1}, as there are {n_words} words"),
        (counts < 1, "counts of at least 1: leave out words that do not occur"),
    ):
        if is_bad.any():
            row = int(np.searchsorted(bounds, is_bad.argmax(), side="right")) - 1
            raise unexpected_line(path, row + 1, lines[row], expected)

    # Much code that takes sparse matrices, scikit-learn's included, wants 32-bit indices.
    index_type = sparse.get_index_dtype(maxval=max(n_words, words.size))
    rows = sparse.csr_array(
        (counts.copy(), words.astype(index_type), bounds.astype(index_type)),
        shape=(len(lines), n_words),
    )
    rows.sum_duplicates()
    return rows


def _count_pairs(path: str | PathLike[str], number: int, line: bytes) -> int:
    """Return how many pairs a line has, after a look at everything but the values."""
    match = _LINE.fullmatch(line)
    if match is None:
        expected = (
            "n and n pairs id:count, all whole numbers of at most 18 digits; "
            "0 stands for a document without words"
        )
        raise unexpected_line(path, number, line, expected)
    announced, found = int(match[1]), line.count(b":")
    if announced != found:
        raise unexpected_line(
            path, number, line, f"{announced} pairs id:count, as it begins, and not {found}"
        )
    return found
