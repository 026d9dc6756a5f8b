"""Files in order as a source, read batch by batch from any position on."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from glob import has_magic
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from threading import Event
from typing import ClassVar

from bnpstream.sources.files.byte_reader import ByteReader, StoppedError
from bnpstream.sources.files.detection import guess_format
from bnpstream.sources.files.position import Position
from bnpstream.sources.protocol import JSON, Partition, Source
from bnpstream.sources.records import Lines, Options, Records, Schema

FORMATS = {
    "uci": "bnpstream.sources.formats.uci:DocwordReader",
    "lda-c": "bnpstream.sources.formats.lda_c:LdaCReader",
    "svmlight": "bnpstream.sources.formats.svmlight:SvmlightReader",
    "mtx": "bnpstream.sources.formats.matrix_market:MatrixMarketReader",
    "npy": "bnpstream.sources.formats.npy:NpyReader",
    "npz": "bnpstream.sources.formats.npz:NpzReader",
    "csv": "bnpstream.sources.formats.csv_table:CsvReader",
    "tsv": "bnpstream.sources.formats.csv_table:TsvReader",
    "parquet": "bnpstream.sources.formats.arrow:ParquetReader",
    "arrow": "bnpstream.sources.formats.arrow:ArrowReader",
    "jsonl": "bnpstream.sources.formats.json_lines:JsonLinesReader",
    "text": "bnpstream.sources.formats.text:TextReader",
}
"""Module of each format's reader; imported when needed."""


class Reader(ABC):
    """Reads the records of one file.

    Parameters
    ----------
    file : ByteReader
        Provides the bytes; formats that are not lines may use only its path.
    schema : Schema
        Schema of the records.
    options : Options
        The user's options.
    """

    format: ClassVar[str]

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        self.file, self.schema, self.options = file, schema, options

    @classmethod
    @abstractmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Determine the schema without taking records; ValueError says why if impossible."""

    @classmethod
    def partitions(cls, path: str) -> list[Partition]:
        """Return the parts of a file that workers can read on their own."""
        return [Partition(path)]

    @property
    def n_records(self) -> int | None:
        """Return the number of records that the file announces, or None."""
        return None

    @abstractmethod
    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after `start`, a place in this file, with positions after batches.

        A batch has at most `batch_rows` records, including rejects. If `file.waiting()` says that
        nothing more is there for now, the records so far are delivered.
        """


class FileSource(Source):
    """Files in order, as one sequence of records.

    Parameters
    ----------
    paths : sequence of str
        Files; "-" is standard input.
    options : Options
        The user's options.
    schema : Schema, optional
        Schema of the records, if known from an earlier run.
    follow : bool
        Wait for more at the end of the last file.

    Attributes
    ----------
    schema : Schema
        Schema of the records.
    """

    replayable: ClassVar[bool] = True

    def __init__(
        self,
        paths: Sequence[str],
        options: Options,
        schema: Schema | None = None,
        *,
        follow: bool = False,
    ) -> None:
        self.paths, self.options, self.follow = list(paths), options, follow
        self._opened: tuple[int, Reader] | None = None
        self._current: Reader | None = None
        self._at = 0
        self._stopped = Event()
        self._begun: list[tuple[int, int]] = []
        """Where another file starts, or a file was replaced: number of a record, its file."""
        self.schema = self._find_schema() if schema is None else schema

    def _find_schema(self) -> Schema:
        """Determine the schema from the first file that is not empty; keep its reader."""
        for at in range(len(self.paths)):
            file = self._open(at)
            if file.peek(1):
                break
            file.close()
        else:
            what = "the file is empty" if len(self.paths) == 1 else "all files are empty"
            raise ValueError(f"{self._call(0)}: nothing to read: {what}")
        try:
            name = self.options.format or guess_format(file, self.options.max_line_bytes)
            reader = reader_class(name)
            schema = reader.find_schema(file, self.options)
            if self.options.time_field is not None and "time" not in schema.fields:
                raise ValueError(
                    f"time_field is {self.options.time_field!r}, but records of the format {name} "
                    "have no fields: give JSON lines, CSV, Parquet or Arrow, or count rows"
                )
            if self.options.vector_field is not None and "vector" not in schema.fields:
                raise ValueError(
                    f"vector_field is {self.options.vector_field!r}, but records of the format "
                    f"{name} have no arrays: give JSON lines, Parquet or Arrow, or leave it out"
                )
            is_text = schema.kind != "table" and (name == "text" or "text" in schema.fields)
            if self.options.ngrams > 1 and not is_text:
                raise ValueError(
                    f"ngrams is {self.options.ngrams}, but these records have no texts to cut into "
                    "words: leave it out, or name the text_field"
                )
            self._opened = at, reader(file, schema, self.options)
        except BaseException:
            file.close()
            raise
        return schema

    def _call(self, at: int) -> str:
        return "standard input" if self.paths[at] == "-" else self.paths[at]

    def _open(self, at: int) -> ByteReader:
        return ByteReader(self.paths[at], follow=self.follow and at == len(self.paths) - 1)

    def _reader(self, at: int) -> Reader:
        """Return the reader of a file, which may be open already."""
        if self._opened is not None and self._opened[0] <= at:
            (found, reader), self._opened = self._opened, None
            if found == at:
                return reader
            reader.file.close()
        return reader_class(self.schema.format)(self._open(at), self.schema, self.options)

    def close(self) -> None:
        """Close files that were opened for detection but not read."""
        if self._opened is not None:
            self._opened[1].file.close()
            self._opened = None

    def __str__(self) -> str:
        return ", ".join(self.paths)

    def beginning(self) -> JSON:
        """Return the position before the first record."""
        return Position()._asdict()

    def check(self, position: JSON) -> None:
        """Raise ValueError if a position is in a missing file."""
        file = Position.of(position).file
        if file > len(self.paths):
            raise ValueError(
                f"the position is in file {file + 1}, but there are only {len(self.paths)}: "
                "give the files of the earlier run, and new ones after them"
            )

    def batches(self, batch_rows: int = 1024, start: JSON = None) -> Iterator[tuple[Records, JSON]]:
        """Yield batches of records in order, each with the position after it."""
        if batch_rows < 1:
            raise ValueError(f"batch_rows is {batch_rows}: a batch needs at least 1 row")
        self.check(start)
        self._stopped = Event()
        return self._batches(batch_rows, Position.of(start), self._stopped)

    def _batches(
        self, batch_rows: int, position: Position, stopped: Event
    ) -> Iterator[tuple[Records, JSON]]:
        self._begun = []
        first_line = 2 if self.schema.fields.get("header") else 1
        while position.file < len(self.paths):
            reader, path = self._reader(position.file), self.paths[position.file]
            reader.file.stopped = stopped
            with closing(reader.file):
                self._at, self._current = position.file, reader
                try:
                    for records, after in reader.batches(batch_rows, position):
                        position, before = after, after.records - after.in_file
                        if self._begun[-1:] != [(before, position.file)]:
                            self._begun.append((before, position.file))
                        # Lines are numbered as if every record of the file were one line.
                        lines = [n - before + first_line for n in records.numbers]
                        places = Lines(path, lines)
                        yield replace(records, places=places), position._asdict()
                        if stopped.is_set():
                            return
                except StoppedError:
                    return
            position = Position(position.records, position.file + 1)

    def after(self, start: JSON, records: Records) -> JSON:
        """Return the position after records that came from `start` on."""
        began = Position.of(start)
        end = records.end(began.records)
        if end == began.records:
            return start
        first, file = self._begun[bisect_right(self._begun, end - 1, key=itemgetter(0)) - 1]
        return Position(end, file, end - first)._asdict()

    def stop(self) -> None:
        """End `batches` soon, even while it waits for input."""
        self._stopped.set()

    @property
    def n_records(self) -> int | None:
        """Return the number of records that the source announces, if it is one file that does."""
        reader = self._current if self._opened is None else self._opened[1]
        return reader.n_records if reader is not None and len(self.paths) == 1 else None

    def progress(self) -> float | None:
        """Return the fraction of all bytes that has been read, or None if unknown."""
        if self.follow or "-" in self.paths or self._current is None:
            return None
        try:
            sizes = [Path(path).stat().st_size for path in self.paths]
        except FileNotFoundError:  # removed in the meantime
            return None
        behind = sum(sizes[: self._at]) + self._current.file.consumed
        return min(1.0, behind / sum(sizes)) if any(sizes) else None

    def lag(self, position: JSON) -> dict[str, int]:
        """Return the number of unread bytes of a growing file."""
        if not self.follow or self._current is None or self.paths[self._at] == "-":
            return {}
        try:
            size = Path(self.paths[self._at]).stat().st_size
        except FileNotFoundError:  # being replaced
            return {}
        return {Path(self.paths[self._at]).name: max(0, size - self._current.file.consumed)}

    def identity(self) -> dict[str, JSON]:
        """Return the names of the files and their format, which identify the source."""
        names = [path if path == "-" else str(Path(path).resolve()) for path in self.paths]
        return {"paths": names, "format": self.schema.format}

    def partitions(self) -> list[Partition] | None:
        """Return the files, or the row groups of Parquet files; None if there is only one part."""
        if self.follow or "-" in self.paths:
            return None
        parts: list[Partition] = []
        for path in self.paths:
            name = str(Path(path).absolute())  # workers may be in another directory
            try:
                parts += reader_class(self.schema.format).partitions(name)
            except (OSError, ValueError):  # the worker that reads it reports the error
                parts.append(Partition(name))
        return parts if len(parts) > 1 else None


def reader_class(name: str) -> type[Reader]:
    """Return the reader class of a format."""
    if name not in FORMATS:
        raise ValueError(f"unknown format {name!r}; give one of {', '.join(FORMATS)}")
    module, _, attribute = FORMATS[name].partition(":")
    found: type[Reader] = getattr(import_module(module), attribute)
    return found


def open_files(
    patterns: Sequence[str], options: Options, schema: Schema | None = None, *, follow: bool = False
) -> FileSource:
    """Open files, patterns of files, or standard input; see ``sources.open_source``."""
    found = [path for pattern in patterns for path in files_of(pattern)]
    if not found:
        raise ValueError('no source: name a file, a pattern, or "-" for standard input')
    return FileSource(found, options, schema, follow=follow)


def files_of(pattern: str) -> list[str]:
    """Return the files that match a name or a pattern, sorted."""
    path = Path(pattern)
    if path.is_dir():
        raise IsADirectoryError(f"{pattern}: it is a directory: name its files, such as {path}/*")
    if pattern == "-" or path.exists():
        return [pattern]
    if not has_magic(pattern):
        raise FileNotFoundError(f"{pattern}: no such file")
    matches = Path(path.anchor).glob(str(path.relative_to(path.anchor)))
    # As in a shell, files whose names start with a dot are hidden.
    found = sorted(str(match) for match in matches if match.is_file() and match.name[0] != ".")
    if not found:
        raise FileNotFoundError(f"{pattern}: no file matches this pattern")
    return found
