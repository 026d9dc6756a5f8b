"""Records from columns of Arrow."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.document_rows import (
    counts_of,
    excerpt_of_counts,
    excerpt_of_text,
)
from bnpstream.sources.formats.record_batch import Gatherer, Parsed
from bnpstream.sources.formats.table_rows import CellTypes
from bnpstream.sources.formats.times import time_of
from bnpstream.sources.formats.tokenizer import count_words
from bnpstream.sources.records import Options, Records, Schema, UnusableError

__all__ = ["ColumnReader", "column_types", "pyarrow"]


def pyarrow(module: str = "pyarrow") -> Any:
    """Import a module of pyarrow; ImportError says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        message = "Parquet and Arrow need pyarrow: pip install 'bnpstream[arrow]'"
        raise ImportError(message) from error


class ColumnReader(Reader):
    """Reads record batches."""

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._id, self._time = schema.fields.get("id"), schema.fields.get("time")
        if schema.kind == "table":
            self._columns, self._types = schema.names or (), schema.types or ()
        else:
            role = "text" if "text" in schema.fields else "counts"
            self._columns, self._types = (schema.fields[role],), (role,)
        self._check = CellTypes(self._columns, self._types).check
        self.wanted: list[str] = []

    @abstractmethod
    def chunks(self, start: int, batch_rows: int) -> Iterator[Any]:
        """Yield record batches with all columns that are wanted, from a row on."""

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after a position, and the position after each batch."""
        position = start
        gatherer = Gatherer(self.file.path, self.schema, start.records)
        held: list[Any] = []
        room = batch_rows - start.in_file % batch_rows
        for chunk in self.chunks(start.in_file, batch_rows):
            at = 0
            while at < chunk.num_rows:
                piece = chunk.slice(at, room)
                held.append(piece)
                at, room = at + piece.num_rows, room - piece.num_rows
                if room == 0 or (at == chunk.num_rows and not self.file.waiting()):
                    records, position = self._records(held, position, gatherer)
                    yield records, position
                    held, room = [], batch_rows - position.in_file % batch_rows
        if held:
            yield self._records(held, position, gatherer)

    def _records(
        self, held: list[Any], before: Position, gatherer: Gatherer
    ) -> tuple[Records, Position]:
        table = pyarrow().Table.from_batches(held)
        columns = [
            self._cells(table.column(name), name, type_)
            for name, type_ in zip(self._columns, self._types, strict=True)
        ]
        ids = [None] * table.num_rows if self._id is None else table.column(self._id).to_pylist()
        times = [None] * table.num_rows if self._time is None else self._times(table)
        for row, (id_, time, *cells) in enumerate(zip(ids, times, *columns, strict=True)):
            try:
                parsed = self._parse(id_, cells)
                if self._time is not None:
                    parsed = parsed._replace(time=time_of(time, self._time))
                gatherer.add(parsed)
            except UnusableError as error:
                shown = dict(zip(self._columns, cells, strict=True))
                gatherer.reject(before.in_file + row + 1, str(error), str(shown))
        in_file = before.in_file + table.num_rows
        position = Position(gatherer.next_number, before.file, in_file, in_file)
        return gatherer.take(), position

    def _times(self, table: Any) -> list[Any]:
        """Return what the column of times has; dates and timestamps as seconds."""
        pa, column = pyarrow(), table.column(self._time)
        is_ = pyarrow("pyarrow.types")
        if is_.is_timestamp(column.type) or is_.is_date(column.type):
            # Through microseconds: floats of nanoseconds since 1970 are not exact.
            micros = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
            return [None if time is None else time / 1e6 for time in micros.to_pylist()]
        found: list[Any] = column.to_pylist()
        return found

    def _cells(self, column: Any, name: str, type_: str) -> list[Any]:
        """Return the cells of a column, None where missing."""
        if type_ != "number":
            cells: list[Any] = column.to_pylist()
            return cells
        pa = pyarrow()
        try:
            numbers = column.cast(pa.float64(), safe=False).to_numpy()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ValueError(
                f"{self.file.path}: column {name!r} is of type {column.type}, not of numbers"
            ) from error
        return [None if number != number else number for number in numbers.tolist()]

    def _parse(self, id_: Any, cells: list[Any]) -> Parsed:
        if type(id_) is not str and type(id_) is not int:
            if self.options.id_field is not None:
                raise UnusableError(f"no string or whole number {self._id!r} to be its id")
            id_ = None
        if self.schema.kind == "table":
            if math.inf in cells or -math.inf in cells:
                raise UnusableError("a number is infinite")
            return Parsed(self._check(cells), id_)
        (content,) = cells
        if content is None:
            raise UnusableError(f"column {self._columns[0]!r} is missing")
        if self._types == ("text",):
            if type(content) is not str:
                raise UnusableError(f"column {self._columns[0]!r} is not a string")
            return Parsed(count_words(content), id_, excerpt_of_text(content))
        if content and type(content[0]) is tuple:  # a map
            content = dict(content)
        counts = counts_of(content)
        return Parsed(counts, id_, excerpt_of_counts(counts))

    def find_columns(self, names: list[str]) -> None:
        """Note which columns are to be read; ValueError if one is not there."""
        if self.options.id_field is None and self._id not in names:
            self._id = None
        wanted = [*self._columns, *(name for name in (self._id, self._time) if name is not None)]
        for name in wanted:
            if name not in names:
                raise ValueError(
                    f"{self.file.path}: there is no column {name!r}; there are {', '.join(names)}"
                )
        self.wanted = list(dict.fromkeys(wanted))


def column_types(schema: Any) -> dict[str, str | None]:
    """Return the types of the columns as a schema of ours names them."""
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
    if is_.is_list(type_) or is_.is_large_list(type_):
        return "counts" if _type(type_.value_type) == "label" else "other"
    return None if is_.is_null(type_) else "other"
