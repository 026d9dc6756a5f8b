"""Files with one item per line: the words of a vocabulary, the labels of documents."""

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bnpstream.sources.files.lines import read_lines, unexpected_line


def read_vocabulary(path: str | PathLike[str]) -> list[str]:
    r"""Read the vocabulary of a docword file: one word per line, in the order of their ids.

    Parameters
    ----------
    path : str or path
        The file, plain, gzip or zstd, in UTF-8.

    Returns
    -------
    list of str, length W
        Word j is word j + 1 of docword files.

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
    for number, line in enumerate(read_lines(path), start=1):
        try:
            word = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise unexpected_line(path, number, line, f"UTF-8 text ({error.reason})") from error
        if not word:
            # Skipping the line would give all later words another id.
            raise unexpected_line(path, number, line, "a word, because line numbers are word ids")
        words.append(word)
    return words


def read_labels(path: str | PathLike[str]) -> NDArray[np.intp]:
    r"""Read the labels of documents: one whole number per line, in the order of the documents.

    Parameters
    ----------
    path : str or path
        The file, plain, gzip or zstd.

    Returns
    -------
    array of intp, shape (D,)
        The label in line i + 1.

    Raises
    ------
    ValueError
        If a line is not a whole number; the message names the file and the line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.txt")
    ...     n_characters = path.write_text("1\n1\n20\n")
    ...     read_labels(path)
    array([ 1,  1, 20])
    """
    from bnpstream.sources.formats.numerals import read_whole  # here, as it imports numba

    labels = []
    for number, line in enumerate(read_lines(path), start=1):
        label = read_whole(line.strip())
        if label is None:
            raise unexpected_line(path, number, line, "a whole number, the document's label")
        labels.append(label)
    return np.array(labels, dtype=np.intp)
