"""Parquet and Arrow: rows of a table, or a column with texts or with lists of words.

Needs pyarrow. Arrow's stream format may come packed, or by a pipe. Parquet and Arrow's file format
have their index at the end and need a plain file.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from typing import Any, ClassVar

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.formats.arrow_columns import ColumnReader, column_types, pyarrow
from bnpstream.sources.formats.field_schemas import schema_of_columns
from bnpstream.sources.records import Options, Schema

__all__ = ["ArrowReader", "ParquetReader"]

_FILE_MAGIC = b"ARROW1"


class ParquetReader(ColumnReader):
    """Reads Parquet files."""

    format: ClassVar[str] = "parquet"

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the columns are."""
        with _open_parquet(file) as parquet:
            return schema_of_columns(cls.format, column_types(parquet.schema_arrow), options, file)

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
            _check_length(self.file.path, metadata.num_rows, start)
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
        pa = pyarrow()
        with _errors_named(file):
            if _is_file_format(file):
                with pa.memory_map(file.path) as mapped:
                    found = pa.ipc.open_file(mapped).schema
            else:
                found = pa.ipc.read_schema(pa.py_buffer(file.peek()))
        return schema_of_columns(cls.format, column_types(found), options, file)

    def chunks(self, start: int, batch_rows: int) -> Iterator[Any]:
        """Yield record batches, from a row on."""
        before = 0
        with _errors_named(self.file):
            for chunk in self._stored_chunks():
                after = before + chunk.num_rows
                if after > start:
                    yield chunk.select(self.wanted).slice(max(0, start - before))
                before = after
        _check_length(self.file.path, before, start)

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


@contextmanager
def _errors_named(file: ByteReader) -> Iterator[None]:
    """Say in which file an error of pyarrow was."""
    try:
        yield
    except pyarrow().ArrowInvalid as error:
        raise ValueError(f"{file.path}: it is damaged or not in this format: {error}") from error


@contextmanager
def _open_parquet(file: ByteReader) -> Iterator[Any]:
    parquet = pyarrow("pyarrow.parquet")
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


def _check_length(path: str, n_rows: int, start: int) -> None:
    if n_rows < start:
        raise ValueError(
            f"{path}: it has {n_rows} rows, but {start} were read before: it is not the same file; "
            "start afresh"
        )
