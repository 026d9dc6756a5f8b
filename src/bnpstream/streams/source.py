"""Sources: files in order, read batch by batch from any position on."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing
from glob import glob, has_magic
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from bnpstream.streams.guessing import guess_format
from bnpstream.streams.reading import ByteReader
from bnpstream.streams.records import Options, Position, Records, Schema

__all__ = ["FORMATS", "Reader", "Source", "open_source"]

FORMATS = {
    "uci": "bnpstream.streams.uci:DocwordReader",
    "lda-c": "bnpstream.streams.lda_c:LdaCReader",
    "svmlight": "bnpstream.streams.svmlight:SvmlightReader",
    "mtx": "bnpstream.streams.matrix_market:MatrixMarketReader",
    "npz": "bnpstream.streams.npz:NpzReader",
    "csv": "bnpstream.streams.csv_table:CsvReader",
    "tsv": "bnpstream.streams.csv_table:TsvReader",
    "parquet": "bnpstream.streams.arrow:ParquetReader",
    "arrow": "bnpstream.streams.arrow:ArrowReader",
    "jsonl": "bnpstream.streams.json_lines:JsonLinesReader",
    "text": "bnpstream.streams.text:TextReader",
}
"""Where the reader of every format lives; imported when it is needed."""


class Reader(ABC):
    """Reads the records of one file.

    Parameters
    ----------
    file : ByteReader
        The bytes; formats that are no sequence of lines may use its path alone.
    schema : Schema
        What the records are.
    options : Options
        What the user said.
    """

    format: ClassVar[str]

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        self.file, self.schema, self.options = file, schema, options

    @classmethod
    @abstractmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the records are, without taking any; ValueError says what to do if unknown."""

    @property
    def n_records(self) -> int | None:
        """Return how many records the file announces, or None."""
        return None

    @abstractmethod
    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after `start`, which is inside this file, and the position after each.

        A batch has at most `batch_rows` records, rejected ones included. Where `file.waiting()`
        says that nothing more is there for now, what is there is delivered.
        """


class Source:
    """Files in order, as one sequence of records.

    Parameters
    ----------
    paths : sequence of str
        Files; "-" is standard input.
    options : Options
        What the user said.
    schema : Schema, optional
        What the records are, if that is known from an earlier run.
    follow : bool
        Wait for more at the end of the last file.

    Attributes
    ----------
    schema : Schema
        What the records are.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: Options,
        schema: Schema | None = None,
        *,
        follow: bool = False,
    ) -> None:
        self.paths, self.options, self.follow = list(paths), options, follow
        self._readers: dict[int, Reader] = {}
        self._at = 0
        self.schema = self._find_schema() if schema is None else schema

    def _find_schema(self) -> Schema:
        file = self._open(0)
        name = self.options.format or guess_format(file)
        if name not in FORMATS:
            raise ValueError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
        schema = _reader_class(name).find_schema(file, self.options)
        self._readers[0] = _reader_class(name)(file, schema, self.options)
        return schema

    def _open(self, at: int) -> ByteReader:
        return ByteReader(self.paths[at], follow=self.follow and at == len(self.paths) - 1)

    def _reader(self, at: int) -> Reader:
        """Return the reader of a file; the first one may be there already."""
        found = self._readers.pop(at, None)
        if found is not None:
            return found
        return _reader_class(self.schema.format)(self._open(at), self.schema, self.options)

    def batches(
        self, batch_rows: int = 1024, start: Position | None = None
    ) -> Iterator[tuple[Records, Position]]:
        """Yield batches of records in order, and the position after each.

        Parameters
        ----------
        batch_rows : int
            Records of a batch at most, rejected ones included.
        start : Position, optional
            Where to begin: a position that an earlier run has seen.
        """
        if batch_rows < 1:
            raise ValueError(f"batch_rows is {batch_rows}: a batch needs at least 1 row")
        position = start or Position()
        while position.file < len(self.paths):
            self._at = position.file
            reader = self._reader(position.file)
            self._current = reader
            with closing(reader.file):
                for records, position in reader.batches(batch_rows, position):
                    yield records, position
            position = Position(position.records, position.file + 1)

    @property
    def n_records(self) -> int | None:
        """Return how many records the source announces, if it is one file that does."""
        reader = self._readers.get(0) or getattr(self, "_current", None)
        return reader.n_records if reader is not None and len(self.paths) == 1 else None

    def progress(self) -> float | None:
        """Return which part of all bytes has been read, or None if that is not known."""
        reader: Reader | None = getattr(self, "_current", None)
        if self.follow or "-" in self.paths or reader is None:
            return None
        sizes = [Path(path).stat().st_size for path in self.paths]
        total = sum(sizes)
        return (sum(sizes[: self._at]) + reader.file.consumed) / total if total else None

    def identity(self) -> dict[str, Any]:
        """Return what tells this source from others: names of the files and their format."""
        names = [path if path == "-" else str(Path(path).resolve()) for path in self.paths]
        return {"paths": names, "format": self.schema.format}


def _reader_class(name: str) -> type[Reader]:
    module, _, attribute = FORMATS[name].partition(":")
    found: type[Reader] = getattr(import_module(module), attribute)
    return found


def open_source(
    paths: str | Sequence[str],
    options: Options | None = None,
    schema: Schema | None = None,
    *,
    follow: bool = False,
) -> Source:
    """Open files, patterns of files such as ``logs/*.jsonl.gz``, or standard input.

    Parameters
    ----------
    paths : str or sequence of str
        Files and patterns; "-" is standard input. The files of a pattern are sorted by name.
    options : Options, optional
        What is known about them.
    schema : Schema, optional
        What the records are, if that is known from an earlier run.
    follow : bool
        Wait for more at the end of the last file.
    """
    wanted = [paths] if isinstance(paths, str) else list(paths)
    found: list[str] = []
    for path in wanted:
        if path == "-" or not has_magic(path) or Path(path).exists():
            if path != "-" and not Path(path).exists():
                raise FileNotFoundError(f"{path}: there is no such file")
            found.append(path)
            continue
        matches = sorted(glob(path, recursive=True))
        if not matches:
            raise FileNotFoundError(f"{path}: no file matches this pattern")
        found += [match for match in matches if Path(match).is_file()]
    if not found:
        raise ValueError('no source: name a file, a pattern, or "-" for standard input')
    return Source(found, options or Options(), schema, follow=follow)
