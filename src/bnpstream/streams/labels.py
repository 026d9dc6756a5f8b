"""Labels of documents: a file with one whole number a line."""

import re
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bnpstream.streams._files import open_bytes, unexpected_line

__all__ = ["read_labels"]

# Eighteen digits are the most that always fit in int64.
_WHOLE_NUMBER = re.compile(rb"-?[0-9]{1,18}")


def read_labels(path: str | PathLike[str]) -> NDArray[np.intp]:
    r"""Read the labels of documents: one whole number a line, in the order of the documents.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip.

    Returns
    -------
    array of intp, shape (D,)
        Line i + 1, as it is written there.

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
    labels = []
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            text = line.strip()
            if not _WHOLE_NUMBER.fullmatch(text):
                raise unexpected_line(path, number, line, "a whole number, the document's label")
            labels.append(int(text))
    return np.array(labels, dtype=np.intp)
