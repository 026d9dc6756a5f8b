"""The format of Blei's LDA-C: one line per document, ``n id:count id:count ...``.

n is the number of pairs on the line, and word ids count from 0. A document without words is the
line ``0``; a blank line is refused, because row numbers are line numbers. Duplicate pairs are
summed. Files may be compressed with gzip or zstd, recognised from their first bytes.
"""

import re
from os import PathLike
from typing import ClassVar

import numpy as np
from scipy import sparse

from bnpstream.kernels.text.digits import WHOLE
from bnpstream.kernels.text.parser import Rules
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.formats.numerals import fields_of
from bnpstream.sources.formats.pairs import MOST_COLUMNS, PairReader, Pairs
from bnpstream.sources.formats.schemas import known_features, number_schema
from bnpstream.sources.records import Options, Schema, UnusableError

# Eighteen digits always fit in int64.
_LINE = re.compile(rb"[ \t\r]*([0-9]{1,18})(?:[ \t\r]+[0-9]{1,18}:[0-9]{1,18})*[ \t\r]*")
_NO_LIMIT = 2**62


class LdaCReader(PairReader):
    """Reads the documents of a file in LDA-C format."""

    format: ClassVar[str] = "lda-c"
    has_labels = False
    wording = ("word ids", "words")
    widest = Schema("lda-c", "counts", MOST_COLUMNS)

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self.rules = Rules(schema.n_features or 0, 0, WHOLE, options.max_line_bytes)

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return the schema; if the user gives no number of columns, find the largest word id."""
        n_words = known_features(options)
        if n_words is None:
            n_words = cls.survey_file(file, options).most_id + 1
            if n_words == 0:
                raise ValueError(f"{file.path}: no document has a word: give --n-features")
        return number_schema(cls.format, file, n_words, options)

    def is_record(self, line: bytes) -> bool:
        """Return True: row numbers are line numbers."""
        return True

    def read(self, line: bytes) -> Pairs:
        """Parse a line."""
        match = _LINE.fullmatch(line)
        if match is None:
            raise UnusableError(
                "n and n pairs id:count, all whole numbers of at most 18 digits; "
                "0 stands for a document without words"
            )
        pairs = [pair.split(b":") for pair in fields_of(line)[1:]]
        if int(match[1]) != len(pairs):
            raise UnusableError(
                f"{int(match[1])} pairs id:count, as its first number says, not {len(pairs)}"
            )
        counts = [int(count) for _, count in pairs]
        if min(counts, default=1) < 1:
            raise UnusableError("counts of at least 1: leave out words that do not occur")
        return Pairs([int(word) for word, _ in pairs], counts)


def read_lda_c(path: str | PathLike[str], n_words: int | None = None) -> sparse.csr_array[np.int64]:
    r"""Read a whole file in LDA-C format.

    Parameters
    ----------
    path : str or path
        The file, plain, gzip or zstd.
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
    options = Options(max_line_bytes=_NO_LIMIT)
    with ByteReader(str(path)) as file:
        if n_words is None:
            n_words = LdaCReader.survey_file(file, options).most_id + 1
        schema = Schema(LdaCReader.format, "counts", n_words)
        reader = LdaCReader(file, schema, options)
        batches: list[sparse.csr_array[np.int64]] = [rows for rows, _ in reader.all_rows()]
    if not batches:
        raise ValueError(f"{path}: the file is empty: expected a line for every document")
    return sparse.vstack(batches, format="csr")
