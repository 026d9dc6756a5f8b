"""Cells of Parquet and Arrow, checked before use and turned into plain Python values."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import accumulate
from typing import Any

from bnpstream.sources.formats.record_reader import PEEKED_RECORDS
from bnpstream.sources.formats.schemas import differs
from bnpstream.sources.formats.vectors import commonest_length
from bnpstream.sources.records import UnusableError

_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks per second."""


def pyarrow(module: str = "pyarrow") -> Any:
    """Import a module of pyarrow; ImportError says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        message = "Parquet and Arrow need pyarrow: pip install 'bnpstream[arrow]'"
        raise ImportError(message) from error


@contextmanager
def errors_named(path: str) -> Iterator[None]:
    """Add the file to an error of pyarrow."""
    try:
        yield
    except (pyarrow().ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        what = str(error) or "it asks for more memory than available"
        raise ValueError(f"{path}: damaged, or not in this format: {what}") from error


def checked(chunk: Any) -> Any:
    """Return a record batch in which all offsets are valid; pyarrow itself trusts what it reads.

    A column with strings that are not UTF-8 becomes bytes, so that only these rows are lost. The
    batch must not be part of another: pyarrow crashes if a part has a damaged map.

    Raises
    ------
    ArrowInvalid
        If it is damaged.
    """
    pa = pyarrow()
    columns = [_checked(column, pa) for column in chunk.columns]
    found = pa.RecordBatch.from_arrays(columns, names=chunk.schema.names)
    found.validate()  # all columns have the same length
    return found


def _checked(column: Any, pa: Any) -> Any:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        as_bytes = _as_bytes(column.type)
        if as_bytes is column.type:  # checking it once more would not be safe
            raise
        column = column.view(as_bytes)
        column.validate(full=True)
    return column


def _as_bytes(type_: Any) -> Any:
    """Return a type with bytes in place of strings, no deeper than in a list or a map."""
    pa, is_ = pyarrow(), pyarrow("pyarrow.types")
    if is_.is_string(type_):
        return pa.binary()
    if is_.is_large_string(type_):
        return pa.large_binary()
    if is_.is_string_view(type_):
        return pa.binary_view()
    if is_.is_map(type_):
        inside, more = type_.key_type, type_.item_type
    elif is_.is_list(type_) or is_.is_large_list(type_) or is_.is_dictionary(type_):
        inside, more = type_.value_type, None
    else:
        return type_
    found = _as_bytes(inside)
    if found is inside or is_.is_nested(inside) or (more is not None and is_.is_nested(more)):
        return type_
    if is_.is_map(type_):
        return pa.map_(found, more)
    if is_.is_dictionary(type_):
        return pa.dictionary(type_.index_type, found, type_.ordered)
    return pa.list_(found) if is_.is_list(type_) else pa.large_list(found)


def cells_of(column: Any, type_: str) -> list[Any]:
    """Return the cells of a column, None where missing; numbers as float, vectors as arrays.

    Raises
    ------
    TypeError
        If the cells cannot be converted to this type.
    """
    pa = pyarrow()
    if type_ == "vector":
        return _vectors(column)
    try:
        if type_ != "number":
            cells: list[Any] = column.to_pylist()
            return cells
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise TypeError(f"is of type {column.type}, not of {type_}s") from error
    return [None if number != number else number for number in numbers.tolist()]


def _vectors(column: Any) -> list[Any]:
    """Return the arrays of a column of lists, with numbers as narrow as stored."""
    if _type(column.type) != "vector":
        raise TypeError(f"is of type {column.type}, not of lists of floating-point numbers")
    numbers = column.flatten().to_numpy(zero_copy_only=False)
    lengths = _lengths(column)
    ends = accumulate(length or 0 for length in lengths)
    return [
        None if length is None else numbers[end - length : end]
        for length, end in zip(lengths, ends, strict=True)
    ]


def _lengths(column: Any) -> list[int | None]:
    found: list[int | None] = pyarrow("pyarrow.compute").list_value_length(column).to_pylist()
    return found


def differing_columns(first: Callable[[list[str]], Iterator[Any]], names: list[str]) -> list[str]:
    """Return the string columns whose values differ in nearly every one of the first rows.

    Parameters
    ----------
    first : callable
        Yields record batches with the given columns.
    names : list of str
        Names of columns.
    """
    cells: dict[str, list[Any]] = {name: [] for name in names}
    n_rows = 0
    # Damage and duplicate names are reported when the rows are read.
    with suppress(pyarrow().ArrowException, OSError, KeyError, UnicodeDecodeError):
        for chunk in first(names) if names else ():
            chunk = checked(chunk).slice(0, PEEKED_RECORDS - n_rows)
            for name, column in cells.items():
                column += chunk.column(name).to_pylist()
            n_rows += chunk.num_rows
            if n_rows == PEEKED_RECORDS:
                break
    return [name for name, column in cells.items() if differs(column)]


def vector_length(
    schema: Any, first: Callable[[list[str]], Iterator[Any]], name: str
) -> int | None:
    """Return the length of the vectors in a column.

    Parameters
    ----------
    schema : pyarrow.Schema
        Gives the length of fixed-size lists.
    first : callable
        Yields record batches with the given columns; first rows show the length of other lists.
    name : str
        Name of the column.
    """
    if column_types(schema).get(name) != "vector":
        return None
    type_ = schema.field(name).type
    if pyarrow("pyarrow.types").is_fixed_size_list(type_):
        return int(type_.list_size) or None
    chunk = next((chunk for chunk in first([name]) if chunk.num_rows > 0), None)
    if chunk is None:
        return None
    lengths = _lengths(checked(chunk).column(name))
    return commonest_length(length or 0 for length in lengths)


def times_of(column: Any) -> list[Any]:
    """Return a column of times, with dates and timestamps as seconds."""
    pa, is_ = pyarrow(), pyarrow("pyarrow.types")
    type_ = column.type
    if is_.is_date32(type_):
        return [t and t * 86400.0 for t in column.cast(pa.int32()).to_pylist()]
    if not is_.is_timestamp(type_) and not is_.is_date64(type_):
        return cells_of(column, "label")
    ticks = _TICKS[type_.unit if is_.is_timestamp(type_) else "ms"]
    # Via whole microseconds: nanoseconds since 1970 are not exact as floats.
    finer = max(1, ticks // 10**6)
    whole = column.cast(pa.int64()).to_pylist()
    return [None if t is None else t // finer / (ticks // finer) for t in whole]


def usable(cell: Any, name: str) -> Any:
    """Return a cell with bytes as strings and a map as dict; UnusableError if invalid."""
    if isinstance(cell, bytes):
        return _decoded(cell, name)
    if not isinstance(cell, list) or not cell:
        return cell
    if not isinstance(cell[0], tuple):
        return [_decoded(word, name) for word in cell]
    counts = {_decoded(word, name): count for word, count in cell}
    if len(counts) < len(cell):
        ((twice, _),) = Counter(_decoded(word, name) for word, _ in cell).most_common(1)
        raise UnusableError(f"column {name!r}: {str(twice)[:40]!r} occurs twice")
    if None in counts:
        raise UnusableError(f"column {name!r} has a count without its word")
    if not all(isinstance(word, str) for word in counts):
        raise UnusableError(f"column {name!r} counts something that is not a word")
    return counts


def _decoded(word: Any, name: str) -> Any:
    if not isinstance(word, bytes):
        return word
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        raise UnusableError(f"column {name!r} is not UTF-8: {error.reason}") from error


def column_types(schema: Any) -> dict[str, str | None]:
    """Return the types of the columns, by the names that schemas use."""
    return {field.name: _type(field.type) for field in schema}


def _type(type_: Any) -> str | None:
    is_ = pyarrow("pyarrow.types")
    if is_.is_dictionary(type_):
        type_ = type_.value_type
    if is_.is_integer(type_) or is_.is_floating(type_) or is_.is_decimal(type_):
        return "number"
    if is_.is_boolean(type_):
        return "truth"
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return "label"
    if is_.is_map(type_):
        return "counts" if _type(type_.key_type) == "label" else "other"
    is_list = is_.is_list(type_) or is_.is_large_list(type_)
    if (is_list or is_.is_fixed_size_list(type_)) and is_.is_floating(type_.value_type):
        return "vector"
    if is_list:
        return "counts" if _type(type_.value_type) == "label" else "other"
    return None if is_.is_null(type_) else "other"
