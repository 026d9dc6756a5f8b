"""The bag-of-words format of the UCI repository: a "docword" file and its vocabulary.

A docword file starts with three lines: the number of documents D, of words W and of entries NNZ.
Each further line is an entry ``docID wordID count``: ids count from 1, and entries are sorted by
docID. Duplicate pairs are summed; blank lines between entries are skipped. Files may be compressed
with gzip or zstd, recognised from their first bytes.
"""

from collections.abc import Iterator
from os import PathLike
from typing import ClassVar

import numpy as np
from scipy import sparse

from bnpstream.kernels.text.digits import WHOLE
from bnpstream.sources.files.byte_reader import BYTE_ORDER_MARK, ByteReader
from bnpstream.sources.files.lines import unexpected_line
from bnpstream.sources.formats.entries import EntryReader, Header, Wording
from bnpstream.sources.formats.numerals import BLANKS, read_whole
from bnpstream.sources.records import Options

_HEADER = (("documents D", 1), ("words W", 1), ("entries NNZ", 0))
# A header has three numbers, so memory stays bounded for a file without line ends.
_HEADER_BYTES = 4096
_WORDING = Wording(
    entry="three whole numbers of at most 18 digits: docID wordID count",
    row="docID",
    column="wordID",
    row_source="line 1",
    column_source="line 2",
    entry_source="line 3",
)


class DocwordReader(EntryReader):
    """Reads the documents of a docword file."""

    format: ClassVar[str] = "uci"

    @classmethod
    def read_header(cls, file: ByteReader) -> Header:
        """Return the numbers in the first three lines, without taking them."""
        lines = file.peek(_HEADER_BYTES, lines=3).removeprefix(BYTE_ORDER_MARK).split(b"\n")
        numbers: list[int] = []
        for what, least in _HEADER:
            line = lines[len(numbers)] if len(numbers) < len(lines) else b""
            number = read_whole(line.strip(BLANKS))
            if number is None or number < least:
                expected = (
                    f"the number of {what}, at least {least}: "
                    "a docword file starts with three lines, D, W and NNZ"
                )
                raise unexpected_line(file.path, len(numbers) + 1, line, expected)
            numbers.append(number)
        n_documents, n_words, n_entries = numbers
        return Header(n_documents, n_words, n_entries, 3, WHOLE, _WORDING)


def iter_docword(
    path: str | PathLike[str], batch_rows: int = 1024
) -> Iterator[tuple[sparse.csr_array[np.int64], int]]:
    r"""Yield the documents of a UCI docword file in order, in batches.

    Memory holds one batch and one block of text, however long the file is. Row i over all batches
    is document i + 1; a document without entries is an empty row.

    Parameters
    ----------
    path : str or path
        The file, plain, gzip or zstd.
    batch_rows : int, default 1024
        Rows per batch; the last batch may have fewer.

    Yields
    ------
    batch : csr_array of int64, shape (batch_rows, W)
        Word counts, one row per document.
    position : int
        Documents delivered so far, including this batch.

    Raises
    ------
    ValueError
        If `batch_rows` is less than 1, or if the file is invalid: the message names the file, the
        line, its content and what was expected. What was delivered before is sound.

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
    with ByteReader(str(path)) as file:
        schema = DocwordReader.find_schema(file, Options())
        yield from DocwordReader(file, schema, Options()).all_rows(batch_rows)


def read_docword(path: str | PathLike[str]) -> sparse.csr_array[np.int64]:
    r"""Read a whole UCI docword file.

    Parameters
    ----------
    path : str or path
        The file, plain, gzip or zstd.

    Returns
    -------
    csr_array of int64, shape (D, W)
        Word counts; row i is document i + 1, column j is word j + 1.

    Raises
    ------
    ValueError
        If the file is invalid, as for `iter_docword`.

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
