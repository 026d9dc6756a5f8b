"""Labels of documents: a file with one whole number a line."""

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bnpstream.sources.files.bad_lines import read_lines, unexpected_line
from bnpstream.sources.formats.numerals import read_whole

__all__ = ["read_labels"]


def read_labels(path: str | PathLike[str]) -> NDArray[np.intp]:
    r"""Read the labels of documents: one whole number a line, in the order of the documents.

    Parameters
    ----------
    path : str or path
        The file, plain, gzip or zstd.

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
    for number, line in enumerate(read_lines(path), start=1):
        label = read_whole(line.strip())
        if label is None:
            raise unexpected_line(path, number, line, "a whole number, the document's label")
        labels.append(label)
    return np.array(labels, dtype=np.intp)
