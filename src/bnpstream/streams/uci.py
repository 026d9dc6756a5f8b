"""The bag-of-words format of the UCI repository: a "docword" file and its vocabulary.

A docword file starts with three lines, the number of documents D, of words W and of entries NNZ.
Each further line is an entry ``docID wordID count``: ids count from 1, and entries are sorted by
docID. A pair that occurs twice is summed; blank lines between entries are skipped. Files may be
packed by gzip or zstd, which is recognised by their first bytes and not by the name.
"""

from collections.abc import Iterator
from os import PathLike

import numpy as np
from scipy import sparse

from bnpstream.kernels.parsing import WHOLE
from bnpstream.streams._entries import EntryParser, Header, Wording
from bnpstream.streams._files import broken, read_lines, unexpected_line
from bnpstream.streams._gathering import read_batches
from bnpstream.streams._values import read_whole
from bnpstream.streams.reading import ByteReader
from bnpstream.streams.records import Options, Position, Records, Schema
from bnpstream.streams.source import Reader

__all__ = ["DocwordReader", "iter_docword", "read_docword", "read_vocabulary"]

_HEADER = (("documents D", 1), ("words W", 1), ("entries NNZ", 0))
# A header has three numbers: memory stays bounded on a file without line ends.
_HEADER_BYTES = 4096
_WORDING = Wording(
    entry="three whole numbers of at most 18 digits: docID wordID count",
    row="docID",
    column="wordID",
    row_source="line 1",
    column_source="line 2",
    entry_source="line 3",
)


class DocwordReader(Reader):
    """Reads the documents of a docword file."""

    format = "uci"

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._header = _read_header(file)
        if self._header.n_columns != schema.n_features:
            raise ValueError(
                f"{file.path}, line 2: there are {self._header.n_columns} words, but "
                f"{schema.n_features} in the vocabulary: give files that share it"
            )

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the header and the vocabulary say."""
        n_words = _read_header(file).n_columns
        return Schema(cls.format, "counts", n_words, read_names(options, n_words, file.path))

    @property
    def n_records(self) -> int:
        """Return how many documents the header announces."""
        return self._header.n_rows

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield documents, and the position after each batch."""
        parser = EntryParser(
            self.file.path, self._header, WHOLE, self.options.max_line_bytes, _WORDING
        )
        return read_batches(self.file, parser, self.schema, batch_rows, start)


def iter_docword(
    path: str | PathLike[str], batch_rows: int = 1024
) -> Iterator[tuple[sparse.csr_array[np.int64], int]]:
    r"""Yield the documents of a UCI docword file in order, in batches.

    Memory holds one batch and one block of text, however long the file is. Row i of all batches
    laid end to end is document i + 1; a document without entries is an empty row.

    Parameters
    ----------
    path : str or path
        The file, plain, gzip or zstd.
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
    with ByteReader(str(path)) as file:
        schema = DocwordReader.find_schema(file, Options())
        reader = DocwordReader(file, schema, Options())
        for records, position in reader.batches(batch_rows, Position()):
            if records.rejects:
                raise broken(records.rejects[0])
            yield records.rows, position.records


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
        The file, plain, gzip or zstd, in UTF-8.

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
    for number, line in enumerate(read_lines(path), start=1):
        try:
            word = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise unexpected_line(path, number, line, f"UTF-8 text ({error.reason})") from error
        if not word:
            # Skipping it would move every later word to another id.
            raise unexpected_line(path, number, line, "a word, as line numbers are word ids")
        words.append(word)
    return words


def read_names(options: Options, n_features: int, path: str) -> tuple[str, ...] | None:
    """Return the words of the vocabulary, which must be as many as columns, or None without one."""
    if options.vocab is None:
        return None
    words = tuple(read_vocabulary(options.vocab))
    if len(words) != n_features:
        raise ValueError(
            f"{options.vocab}: there are {len(words)} words, but {n_features} columns in {path}: "
            "give the vocabulary of this file"
        )
    return words


def _read_header(file: ByteReader) -> Header:
    """Return what the first three lines say, without taking them."""
    lines = file.peek(_HEADER_BYTES).split(b"\n")
    numbers: list[int] = []
    for what, least in _HEADER:
        line = lines[len(numbers)] if len(numbers) < len(lines) else b""
        number = read_whole(line.strip())
        if number is None or number < least:
            expected = (
                f"the number of {what}, at least {least}: "
                "a docword file starts with three lines, D, W and NNZ"
            )
            raise unexpected_line(file.path, len(numbers) + 1, line, expected)
        numbers.append(number)
    n_documents, n_words, n_entries = numbers
    return Header(n_documents, n_words, n_entries, n_lines=3)
