"""Determines schemas: documents, tables or counts, from the contents of a file and the options."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.lists import read_vocabulary
from bnpstream.sources.records import Options, Schema

CELL_TYPES = ("number", "truth", "label")
_DEFAULT_COUNTS = ("counts", "words")
MOST_TABLE_COLUMNS = 2000
"""Limit for tables, whose rows are dense."""
MOST_VECTOR_COLUMNS = 8184
"""Limit of the likelihoods of vectors."""
TELLING, NEARLY = 20, 0.9
"""Cells needed to decide that strings are not labels, and the share that must then differ."""
DIFFERS = "it is different in nearly every row"


class Input(Protocol):
    """Where records come from."""

    @property
    def path(self) -> str:
        """Return its name, for messages."""

    @property
    def is_live(self) -> bool:
        """Return whether it may grow while it is read."""


def schema_of_columns(
    name: str,
    found: Mapping[str, str | None],
    options: Options,
    file: Input,
    differing: Callable[[list[str]], Iterable[str]],
    vector_length: Callable[[str], int | None] | None = None,
) -> Schema:
    """Determine the schema of records with these columns.

    Columns that the user names take precedence: a vector over a text, which is then only shown to
    people. Otherwise a text makes documents, and so do word counts; failing these, all columns but
    the id and the time form a table. Columns without any cell so far are left out unless named;
    they then count as numbers. Strings that differ in nearly every row are left out too, because
    they are names or texts, not labels.

    Parameters
    ----------
    name : str
        Name of the format.
    found : mapping
        Columns in order, with their types: "number", "truth", "label"; "counts" for counts by word
        and lists of words; "vector" for arrays of numbers; "other"; None if no cell was seen.
    options : Options
        The user's options.
    file : Input
        The file. In a live one, named columns may appear later.
    differing : callable
        Returns which of some string columns differ in nearly every one of the first rows.
    vector_length : callable, optional
        Returns the length of the vectors in a column, None if none was seen; for formats with
        vectors.

    Raises
    ------
    ValueError
        If a named column is missing, or if no column can be used.
    """
    if options.text_field is not None and options.counts_field is not None:
        raise ValueError("text_field and counts_field are both given: give one of them")
    if options.vector_field is not None and (options.counts_field or options.columns):
        other = "counts_field" if options.counts_field else "columns"
        raise ValueError(f"vector_field and {other} are both given: give one of them")
    named = [options.id_field, options.text_field, options.counts_field, options.time_field]
    named.append(options.vector_field)
    if not file.is_live:
        _check_there([column for column in named if column is not None], found, file.path)

    fields = {}
    if options.id_field is not None:
        fields["id"] = options.id_field
    elif found.get("id") in ("label", "number"):
        fields["id"] = "id"
    if options.time_field is not None:
        fields["time"] = options.time_field

    if options.text_field is not None:
        fields["text"] = options.text_field
    elif options.counts_field is not None:
        fields["counts"] = options.counts_field
    elif options.columns is None:
        counts = [column for column in _DEFAULT_COUNTS if found.get(column) == "counts"]
        if found.get("text") == "label":
            fields["text"] = "text"
        elif counts:
            fields["counts"] = counts[0]
    if options.vector_field is not None and vector_length is not None:
        fields = {role: fields[role] for role in ("id", "time", "text") if role in fields}
        fields["vector"] = options.vector_field
        length = known_features(options) or vector_length(options.vector_field)
        return _vector_schema(name, fields, options, file, length)
    if "text" in fields or "counts" in fields:
        return document_schema(name, fields, options)
    return _table_schema(name, found, fields, options, file.path, differing)


def document_schema(name: str, fields: dict[str, str], options: Options) -> Schema:
    """Return the schema of documents: words for a growing vocabulary, or counts by column.

    Examples
    --------
    >>> document_schema("text", {}, Options()).kind
    'documents'
    >>> document_schema("text", {}, Options(hash_bits=10)).n_features
    1024
    """
    if options.vocab is not None and options.hash_bits is not None:
        raise ValueError("vocab and hash_bits are both given: give one of them, or neither")
    if options.vocab is not None:
        names = tuple(read_vocabulary(options.vocab))
        return Schema(name, "counts", len(names), names, fields=fields, ngrams=options.ngrams)
    if options.hash_bits is not None:
        if not 1 <= options.hash_bits <= 30:
            raise ValueError(f"hash_bits is {options.hash_bits}: give 1 to 30")
        n_columns = 1 << options.hash_bits
        return Schema(name, "counts", n_columns, fields=fields, ngrams=options.ngrams)
    return Schema(name, "documents", fields=fields, ngrams=options.ngrams)


def _vector_schema(
    name: str, fields: dict[str, str], options: Options, file: Input, length: int | None
) -> Schema:
    if length is None:
        raise ValueError(
            f"{file.path}: none of the first records has an array of numbers {fields['vector']!r}: "
            "name the field that has one; if it appears later, give its length by n_features"
        )
    return replace(
        number_schema(name, file, length, options, is_real=True, most=MOST_VECTOR_COLUMNS),
        fields=fields,
    )


def differs(cells: Iterable[str | None]) -> bool:
    """Return whether strings, None if missing, differ in nearly every row.

    Examples
    --------
    >>> differs(map(str, range(20))), differs(map(str, range(19))), differs(["a", "b"] * 10)
    (True, False, False)
    """
    there = [cell for cell in cells if cell is not None]
    return len(there) >= TELLING and len(set(there)) > NEARLY * len(there)


def _table_schema(
    name: str,
    found: Mapping[str, str | None],
    fields: dict[str, str],
    options: Options,
    path: str,
    differing: Callable[[list[str]], Iterable[str]],
) -> Schema:
    left_out: dict[str, str] = {}
    if options.columns is not None:
        names = options.columns
        _check_there(names, found, path)
        unfit = [column for column in names if found[column] not in (*CELL_TYPES, None)]
    else:
        others = [column for column in found if column not in fields.values()]
        for column in others:
            if found[column] not in CELL_TYPES:
                no_cell, no_type = "no values seen so far", "it has values of another type"
                left_out[column] = no_cell if found[column] is None else no_type
        labels = [column for column in others if found[column] == "label"]
        left_out |= dict.fromkeys(differing(labels), DIFFERS)
        names = tuple(column for column in others if column not in left_out)
        unfit = []
    if unfit or not names:
        what = f"column {unfit[0]!r} does not hold" if unfit else "no column holds"
        hint = "; vector_field names an array of numbers" if "vector" in found.values() else ""
        if DIFFERS in left_out.values():
            text = next(column for column, reason in left_out.items() if reason == DIFFERS)
            hint += f"; {text!r} differs in nearly every row: name it as text_field, or in columns"
        raise ValueError(f"{path}: {what} numbers, booleans or labels; {_listed(found)}{hint}")
    types = tuple(found[column] or "number" for column in names)
    return Schema(name, "table", len(names), names, types, fields, left_out=left_out)


def _check_there(columns: Iterable[str], found: Mapping[str, str | None], path: str) -> None:
    for column in columns:
        if column not in found:
            raise ValueError(f"{path}: has no column {column!r}; {_listed(found)}")


def _listed(found: Mapping[str, str | None]) -> str:
    shown = ", ".join(list(found)[:20]) or "none"
    return f"it has {shown}" + (", ..." if len(found) > 20 else "")


def number_schema(
    format: str,
    file: Input,
    n_features: int,
    options: Options,
    *,
    is_real: bool = False,
    most: int = MOST_TABLE_COLUMNS,
) -> Schema:
    """Return the schema of files with numbers.

    Parameters
    ----------
    format : str
        Name of the format.
    file : Input
        The file, for messages.
    n_features : int
        Number of columns.
    options : Options
        May name a vocabulary, which must have as many words.
    is_real : bool
        Whether values are real numbers, not counts.
    most : int
        Most columns allowed for real numbers.
    """
    names = None if options.vocab is None else tuple(read_vocabulary(options.vocab))
    if names is not None and len(names) != n_features:
        raise ValueError(
            f"{options.vocab}: has {len(names)} words, but there are {n_features} columns in "
            f"{file.path}: give the vocabulary of this file"
        )
    if not is_real:
        return Schema(format, "counts", n_features, names)
    if n_features > most:
        raise ValueError(
            f"{file.path}: the values are real numbers in {n_features} columns, and tables have at "
            f"most {most}: write counts as whole numbers, or reduce the columns"
        )
    return Schema(format, "table", n_features, names, types=("number",) * n_features)


def check_features(file: ByteReader, n_features: int, schema: Schema) -> None:
    """Raise ValueError if a file announces another number of columns than the source has."""
    if n_features != schema.n_features:
        raise ValueError(
            f"{file.path}: it has {n_features} columns, but the source has {schema.n_features}: "
            "give files that share a vocabulary"
        )


def known_features(options: Options) -> int | None:
    """Return the number of columns, if the user gives it."""
    if options.n_features is None and options.vocab is not None:
        return len(read_vocabulary(options.vocab))
    return options.n_features
