"""Parquet and Arrow: rows of a table, or a column with texts, lists of words or vectors.

Needs pyarrow. Arrow's stream format may be compressed or piped. Parquet and Arrow's file format
have their index at the end and need a plain file.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader, RawIOBase
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position, too_short
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.arrow_cells import (
    cells_of,
    checked,
    column_types,
    differing_columns,
    errors_named,
    pyarrow,
    times_of,
    usable,
    vector_length,
)
from bnpstream.sources.formats.fields import Fields
from bnpstream.sources.formats.record_reader import Gatherer
from bnpstream.sources.formats.schemas import schema_of_columns
from bnpstream.sources.protocol import Partition
from bnpstream.sources.records import Options, Records, Schema, UnusableError

_FILE_MAGIC = b"ARROW1"
_READ_ROWS = 1024
"""Rows of a row group unpacked at a time; fixed, so that damage always shows at the same row."""


class ColumnReader(Reader):
    """Reads record batches."""

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._fields = Fields(schema, options)
        self.wanted: list[str] = []

    @abstractmethod
    def chunks(self, start: int) -> Iterator[Any]:
        """Yield checked record batches with all wanted columns, from a row on."""

    def find_columns(self, names: list[str]) -> None:
        """Note which columns to read; ValueError if one is missing."""
        fields = self._fields
        fields.check_there(names, self.file.path)
        if fields.id not in names:
            fields.id = None
        wanted = [*fields.columns, fields.id, fields.time]
        self.wanted = list(dict.fromkeys(name for name in wanted if name in names))
        for name in self.wanted:
            if names.count(name) > 1:
                raise ValueError(f"{self.file.path}: has several columns {name!r}")

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after a position, and the position after each batch.

        If the file is damaged, the rows before the damage come first, then the error.
        """
        batch, in_file = Gatherer(self.file.path, self.schema, start.records), start.in_file
        chunks, damage = self.chunks(start.in_file), None
        while damage is None:
            try:
                chunk = next(chunks, None)
            except ValueError as error:
                chunk, damage = None, error
            if chunk is None:
                break
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
        if damage is not None:
            raise damage

    def _add(self, piece: Any, number: int, batch: Gatherer) -> None:
        """Add rows to a batch, given the number of the first one in the file."""
        fields, nothing = self._fields, [None] * piece.num_rows
        id_name = fields.id or ""
        ids = self._cells(piece, id_name, "label") if fields.id is not None else nothing
        times = nothing if fields.time is None else times_of(piece.column(fields.time))
        columns = [
            self._cells(piece, name, type_) if name in self.wanted else nothing
            for name, type_ in zip(fields.columns, fields.types, strict=True)
        ]
        for line, (id_, time, *cells) in enumerate(zip(ids, times, *columns, strict=True), number):
            try:
                if "number" in fields.types and (math.inf in cells or -math.inf in cells):
                    raise UnusableError("a number is infinite")
                if fields.types == ("counts",) and cells[0] is None:
                    raise UnusableError(f"column {fields.columns[0]!r} is missing")
                values = [usable(*cell) for cell in zip(cells, fields.columns, strict=True)]
                batch.add(fields.parse(usable(id_, id_name), time, values))
            except UnusableError as error:
                plain = [cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in cells]
                shown = dict(zip(fields.columns, plain, strict=True))
                batch.reject(line, str(error), str(shown))

    def _cells(self, piece: Any, name: str, type_: str) -> list[Any]:
        try:
            return cells_of(piece.column(name), type_)
        except TypeError as error:
            raise ValueError(f"{self.file.path}: column {name!r} {error}") from error


class ParquetReader(ColumnReader):
    """Reads Parquet files."""

    format: ClassVar[str] = "parquet"

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return the schema of the columns."""
        with _open_parquet(file) as parquet:
            first = partial(_first_rows, parquet)
            return _schema_of(cls.format, parquet.schema_arrow, first, options, file)

    @classmethod
    def partitions(cls, path: str) -> list[Partition]:
        """Return the row groups of a file."""
        with errors_named(path), pyarrow("pyarrow.parquet").ParquetFile(path) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        return [
            Partition(path, Position(first, 0, first, first)._asdict(), first, size)
            for first, size in zip(accumulate(sizes, initial=0), sizes, strict=False)
        ]

    @property
    def n_records(self) -> int | None:
        """Return the number of rows that the file announces."""
        with _open_parquet(self.file) as parquet:
            return int(parquet.metadata.num_rows)

    def chunks(self, start: int) -> Iterator[Any]:
        """Yield record batches from a row on; earlier row groups are not read."""
        with _open_parquet(self.file) as parquet:
            self.find_columns(parquet.schema_arrow.names)
            metadata = parquet.metadata
            groups = list(range(metadata.num_row_groups))
            before = 0
            while groups and before + metadata.row_group(groups[0]).num_rows <= start:
                before += metadata.row_group(groups.pop(0)).num_rows
            if metadata.num_rows < start:
                raise too_short(self.file.path, metadata.num_rows, "rows", start)
            for group in groups:
                end = before + metadata.row_group(group).num_rows
                for chunk in parquet.iter_batches(
                    batch_size=_READ_ROWS, row_groups=[group], columns=self.wanted
                ):
                    after = before + chunk.num_rows
                    if after > start:
                        share = after / max(after, metadata.num_rows)
                        self.file.consumed = int((self.file.size or 0) * share)
                        yield checked(chunk).slice(max(0, start - before))
                    before = after
                if before != end:
                    raise ValueError(
                        f"{self.file.path}: damaged: row {before} is the last of row group "
                        f"{group + 1}, but row {end} should be"
                    )


class ArrowReader(ColumnReader):
    """Reads Arrow's file and stream formats."""

    format: ClassVar[str] = "arrow"

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return the schema of the columns."""
        pa = pyarrow()
        first: Callable[[list[str]], Iterator[Any]]
        with errors_named(file.path):
            if _is_file_format(file):
                with pa.memory_map(file.path) as mapped:
                    opened = pa.ipc.open_file(mapped)
                    first = partial(_stored_batches, opened)
                    return _schema_of(cls.format, opened.schema, first, options, file)
            head = pa.py_buffer(file.peek())
            first = partial(_first_batches, head)
            return _schema_of(cls.format, pa.ipc.read_schema(head), first, options, file)

    def chunks(self, start: int) -> Iterator[Any]:
        """Yield record batches, from a row on."""
        before = 0
        with errors_named(self.file.path):
            for chunk in self._stored_chunks():
                after = before + chunk.num_rows
                if after > start:
                    yield checked(chunk.select(self.wanted)).slice(max(0, start - before))
                before = after
        if before < start:
            raise too_short(self.file.path, before, "rows", start)

    def _stored_chunks(self) -> Iterator[Any]:
        pa = pyarrow()
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


def _schema_of(
    format: str,
    schema: Any,
    first: Callable[[list[str]], Iterator[Any]],
    options: Options,
    file: ByteReader,
) -> Schema:
    """Return the schema; the first rows show what strings are, and the lengths of vectors."""
    length, differing = partial(vector_length, schema, first), partial(differing_columns, first)
    return schema_of_columns(format, column_types(schema), options, file, differing, length)


def _first_rows(parquet: Any, names: list[str]) -> Iterator[Any]:
    yield from parquet.iter_batches(batch_size=_READ_ROWS, columns=names)


def _stored_batches(opened: Any, names: list[str]) -> Iterator[Any]:
    for i in range(opened.num_record_batches):
        yield opened.get_batch(i).select(names)


def _first_batches(head: Any, names: list[str]) -> Iterator[Any]:
    """Yield columns of the whole record batches at the beginning of a stream."""
    pa = pyarrow()
    with suppress(pa.ArrowException, OSError):
        for chunk in pa.ipc.open_stream(head):
            yield chunk.select(names)


class _Raw(RawIOBase):
    """Bytes of a file in the form that pyarrow expects."""

    def __init__(self, file: ByteReader) -> None:
        self._file, self._left = file, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        found = self._left or memoryview(self._file.read())
        n = min(len(found), len(buffer))
        buffer[:n], self._left = found[:n], found[n:]
        return n


@contextmanager
def _open_parquet(file: ByteReader) -> Iterator[Any]:
    parquet = pyarrow("pyarrow.parquet")
    _check_plain(file, "Parquet")
    with errors_named(file.path), parquet.ParquetFile(file.path) as opened:
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
            "use the stream format of Arrow, which may be compressed, piped or still growing"
        )
