"""Parquet and Arrow: rows of a table, or a column with texts or with lists of words.

Needs pyarrow. Arrow's stream format may come packed, or by a pipe. Parquet and Arrow's file format
have their index at the end and need a plain file.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BufferedReader, RawIOBase
from itertools import accumulate
from typing import Any, ClassVar

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position, too_short
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.fields import Fields
from bnpstream.sources.formats.record_reader import Gatherer
from bnpstream.sources.formats.schemas import schema_of_columns
from bnpstream.sources.protocol import Partition
from bnpstream.sources.records import Options, Records, Schema, UnusableError

__all__ = ["ArrowReader", "ParquetReader"]

_FILE_MAGIC = b"ARROW1"


class ColumnReader(Reader):
    """Reads record batches."""

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._fields = Fields(schema, options)
        self.wanted: list[str] = []

    @abstractmethod
    def chunks(self, start: int, batch_rows: int) -> Iterator[Any]:
        """Yield record batches with all columns that are wanted, from a row on."""

    def find_columns(self, names: list[str]) -> None:
        """Note which columns are to be read; ValueError if one is not there."""
        fields = self._fields
        fields.check_there(names, self.file.path)
        if fields.id not in names:
            fields.id = None
        wanted = [*fields.columns, fields.id, fields.time]
        self.wanted = list(dict.fromkeys(name for name in wanted if name is not None))

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after a position, and the position after each batch."""
        batch, in_file = Gatherer(self.file.path, self.schema, start.records), start.in_file
        for chunk in self.chunks(start.in_file, batch_rows):
            at = 0
            while at < chunk.num_rows:
                piece = chunk.slice(at, batch_rows - in_file % batch_rows)
                self._add(piece, in_file + 1, batch)
                at, in_file = at + piece.num_rows, in_file + piece.num_rows
                is_last = at == chunk.num_rows and not self.file.waiting()
                if in_file % batch_rows == 0 or is_last:
                    yield batch.take(), Position(batch.next_number, start.file, in_file, in_file)
        if batch:
            yield batch.take(), Position(batch.next_number, start.file, in_file, in_file)

    def _add(self, piece: Any, number: int, batch: Gatherer) -> None:
        """Add rows to a batch; the first one has a number in the file."""
        fields, nothing = self._fields, [None] * piece.num_rows
        ids = nothing if fields.id is None else piece.column(fields.id).to_pylist()
        times = nothing if fields.time is None else _times(piece.column(fields.time))
        columns = [
            self._cells(piece.column(name), name, type_)
            for name, type_ in zip(fields.columns, fields.types, strict=True)
        ]
        for line, (id_, time, *cells) in enumerate(zip(ids, times, *columns, strict=True), number):
            try:
                if math.inf in cells or -math.inf in cells:
                    raise UnusableError("a number is infinite")
                if fields.types == ("counts",) and cells[0] is None:
                    raise UnusableError(f"column {fields.columns[0]!r} is missing")
                batch.add(fields.parse(id_, time, cells))
            except UnusableError as error:
                shown = dict(zip(fields.columns, cells, strict=True))
                batch.reject(line, str(error), str(shown))

    def _cells(self, column: Any, name: str, type_: str) -> list[Any]:
        """Return the cells of a column, None where missing."""
        if type_ != "number":
            cells: list[Any] = column.to_pylist()
            is_map = type_ == "counts" and _pyarrow("pyarrow.types").is_map(column.type)
            return [cell and dict(cell) for cell in cells] if is_map else cells
        pa = _pyarrow()
        try:
            numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ValueError(
                f"{self.file.path}: column {name!r} is of type {column.type}, not of numbers"
            ) from error
        return [None if number != number else number for number in numbers.tolist()]


class ParquetReader(ColumnReader):
    """Reads Parquet files."""

    format: ClassVar[str] = "parquet"

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the columns are."""
        with _open_parquet(file) as parquet:
            return schema_of_columns(cls.format, _types(parquet.schema_arrow), options, file)

    @classmethod
    def partitions(cls, path: str) -> list[Partition]:
        """Return the row groups of a file."""
        with _pyarrow("pyarrow.parquet").ParquetFile(path) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        return [
            Partition(path, Position(first, 0, first, first)._asdict(), first, size)
            for first, size in zip(accumulate(sizes, initial=0), sizes, strict=False)
        ]

    @property
    def n_records(self) -> int | None:
        """Return how many rows the file announces."""
        with _open_parquet(self.file) as parquet:
            return int(parquet.metadata.num_rows)

    def chunks(self, start: int, batch_rows: int) -> Iterator[Any]:
        """Yield record batches, from a row on; row groups before it are not read."""
        with _open_parquet(self.file) as parquet:
            self.find_columns(parquet.schema_arrow.names)
            metadata = parquet.metadata
            groups = list(range(metadata.num_row_groups))
            before = 0
            while groups and before + metadata.row_group(groups[0]).num_rows <= start:
                before += metadata.row_group(groups.pop(0)).num_rows
            if metadata.num_rows < start:
                raise too_short(self.file.path, metadata.num_rows, "rows", start)
            for chunk in parquet.iter_batches(
                batch_size=batch_rows, row_groups=groups, columns=self.wanted
            ):
                after = before + chunk.num_rows
                if after > start:
                    self.file.consumed = (self.file.size or 0) * after // metadata.num_rows
                    yield chunk.slice(max(0, start - before))
                before = after


class ArrowReader(ColumnReader):
    """Reads Arrow's file and stream formats."""

    format: ClassVar[str] = "arrow"

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the columns are."""
        pa = _pyarrow()
        with _errors_named(file):
            if _is_file_format(file):
                with pa.memory_map(file.path) as mapped:
                    found = pa.ipc.open_file(mapped).schema
            else:
                found = pa.ipc.read_schema(pa.py_buffer(file.peek()))
        return schema_of_columns(cls.format, _types(found), options, file)

    def chunks(self, start: int, batch_rows: int) -> Iterator[Any]:
        """Yield record batches, from a row on."""
        before = 0
        with _errors_named(self.file):
            for chunk in self._stored_chunks():
                after = before + chunk.num_rows
                if after > start:
                    yield chunk.select(self.wanted).slice(max(0, start - before))
                before = after
        if before < start:
            raise too_short(self.file.path, before, "rows", start)

    def _stored_chunks(self) -> Iterator[Any]:
        pa = _pyarrow()
        if _is_file_format(self.file):
            with pa.memory_map(self.file.path) as mapped, pa.ipc.open_file(mapped) as opened:
                self.find_columns(opened.schema.names)
                for i in range(opened.num_record_batches):
                    size = self.file.size or 0
                    self.file.consumed = size * (i + 1) // opened.num_record_batches
                    yield opened.get_batch(i)
        else:
            stream = BufferedReader(_Raw(self.file))
            with pa.ipc.open_stream(pa.PythonFile(stream, mode="r")) as opened:
                self.find_columns(opened.schema.names)
                yield from opened


class _Raw(RawIOBase):
    """Bytes of a file as pyarrow wants to have them."""

    def __init__(self, file: ByteReader) -> None:
        self._file, self._left = file, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        found = self._left or memoryview(self._file.read())
        n = min(len(found), len(buffer))
        buffer[:n], self._left = found[:n], found[n:]
        return n


def _pyarrow(module: str = "pyarrow") -> Any:
    """Import a module of pyarrow; ImportError says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        message = "Parquet and Arrow need pyarrow: pip install 'bnpstream[arrow]'"
        raise ImportError(message) from error


@contextmanager
def _errors_named(file: ByteReader) -> Iterator[None]:
    """Say in which file an error of pyarrow was."""
    try:
        yield
    except _pyarrow().ArrowInvalid as error:
        raise ValueError(f"{file.path}: it is damaged or not in this format: {error}") from error


@contextmanager
def _open_parquet(file: ByteReader) -> Iterator[Any]:
    parquet = _pyarrow("pyarrow.parquet")
    _check_plain(file, "Parquet")
    with _errors_named(file), parquet.ParquetFile(file.path) as opened:
        yield opened


def _is_file_format(file: ByteReader) -> bool:
    is_file = file.peek(len(_FILE_MAGIC)) == _FILE_MAGIC
    if is_file:
        _check_plain(file, "the file format of Arrow")
    return is_file


def _check_plain(file: ByteReader, what: str) -> None:
    if not file.is_plain or file.follow:
        raise ValueError(
            f"{file.path}: {what} needs a plain file, as its index is at the end: unpack it, or "
            "use the stream format of Arrow, which can come packed, by a pipe or bit by bit"
        )


def _times(column: Any) -> list[Any]:
    """Return what a column of times has; dates and timestamps as seconds."""
    pa, is_ = _pyarrow(), _pyarrow("pyarrow.types")
    if is_.is_timestamp(column.type) or is_.is_date(column.type):
        # Through microseconds: floats of nanoseconds since 1970 are not exact.
        micros = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return [None if time is None else time / 1e6 for time in micros.to_pylist()]
    found: list[Any] = column.to_pylist()
    return found


def _types(schema: Any) -> dict[str, str | None]:
    """Return the types of the columns as a schema of ours names them."""
    return {field.name: _type(field.type) for field in schema}


def _type(type_: Any) -> str | None:
    is_ = _pyarrow("pyarrow.types")
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
