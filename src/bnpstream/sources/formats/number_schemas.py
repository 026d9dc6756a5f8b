"""What records of numbers are: counts, or a table where values are real."""

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.records import Options, Schema
from bnpstream.sources.vocabulary_file import read_vocabulary

__all__ = ["check_features", "number_schema"]

MOST_TABLE_COLUMNS = 2000
"""Rows of a table are dense."""


def number_schema(
    format: str, file: ByteReader, n_features: int, options: Options, *, is_real: bool = False
) -> Schema:
    """Return what the records of a file are.

    Parameters
    ----------
    format : str
        Name of the format.
    file : ByteReader
        The file, for messages.
    n_features : int
        Number of columns.
    options : Options
        May name a vocabulary, which has to have as many words.
    is_real : bool
        Whether values are any numbers, and not counts.
    """
    names = None if options.vocab is None else tuple(read_vocabulary(options.vocab))
    if names is not None and len(names) != n_features:
        raise ValueError(
            f"{options.vocab}: there are {len(names)} words, but {n_features} columns in "
            f"{file.path}: give the vocabulary of this file"
        )
    if not is_real:
        return Schema(format, "counts", n_features, names)
    if n_features > MOST_TABLE_COLUMNS:
        raise ValueError(
            f"{file.path}: the values are real numbers in {n_features} columns, and tables have at "
            f"most {MOST_TABLE_COLUMNS}: write counts as whole numbers, or reduce the columns"
        )
    return Schema(format, "table", n_features, names, types=("number",) * n_features)


def check_features(file: ByteReader, n_features: int, schema: Schema) -> None:
    """Raise ValueError if a file announces other columns than the source has."""
    if n_features != schema.n_features:
        raise ValueError(
            f"{file.path}: it has {n_features} columns, but the source has {schema.n_features}: "
            "give files that share a vocabulary"
        )
