"""CSV and TSV: rows of a table, or a text in one of its columns.

Fields may be quoted with ``"``, and may then contain line ends. Blank lines are skipped. A cell
that is empty, NA, NaN or null, in any case, is missing. A column without a name in the header, such
as the index that pandas and R write, is left out.
"""

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.detection import guess_delimiter
from bnpstream.sources.files.lines import first_lines
from bnpstream.sources.files.position import Position
from bnpstream.sources.formats.csv_records import CsvLines, cut_fields
from bnpstream.sources.formats.fields import Fields
from bnpstream.sources.formats.record_reader import PEEKED_RECORDS, LineReader, Parsed
from bnpstream.sources.formats.schemas import differs, schema_of_columns
from bnpstream.sources.records import Options, Records, Schema, UnusableError

_MISSING = frozenset({"", "na", "nan", "null"})
_NO_DELIMITERS = '"\r\n'
MOST = 0.95
"""Least share of the first cells of a column that must be numbers, or booleans, to be its type."""
_TRUTH = {"true": True, "false": False}


class CsvReader(LineReader):
    """Reads CSV."""

    format: ClassVar[str] = "csv"
    default_delimiter: ClassVar[str | None] = None

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._delimiter = schema.fields["delimiter"]
        self._n_fields = int(schema.fields.get("n_fields", 0))
        self._fields = Fields(schema, options, has_typed_cells=True)
        self._read = [
            partial(_READERS[type_], name)
            for name, type_ in zip(self._fields.columns, self._fields.types, strict=True)
        ]
        self._all_numbers = set(self._fields.types) == {"number"}
        if self._n_fields:
            self._place(_numbered(self._n_fields))

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Determine the schema from the first records; if unclear, ValueError says what to do."""
        if options.counts_field is not None:
            raise ValueError("counts_field is for JSON lines: name a text_field or columns")
        if options.delimiter is not None and (
            len(options.delimiter) != 1 or options.delimiter in _NO_DELIMITERS
        ):
            raise ValueError(
                f"delimiter is {options.delimiter!r}: give one character that neither quotes "
                "nor ends a line"
            )
        delimiter = options.delimiter or cls.default_delimiter or _find_delimiter(file, options)
        records = _first_records(file, options, delimiter)
        n_fields = Counter(map(len, records)).most_common(1)[0][0]
        has_header = options.header
        if has_header is None:
            has_header = _is_header(records[0], records[1:], options)
        if has_header:
            names, extra = _header(records.pop(0), file.path), {"header": "yes"}
        else:
            names, extra = _numbered(n_fields), {"n_fields": str(n_fields)}
        records = [record for record in records if len(record) == len(names)]
        found = {
            name: _type_of([record[i] for record in records])
            for i, name in enumerate(names)
            if name
        }

        def differing(labels: list[str]) -> list[str]:
            at = {name: i for i, name in enumerate(names)}
            cells = {name: [_label_of(record[at[name]]) for record in records] for name in labels}
            return [name for name in labels if differs(cells[name])]

        schema = schema_of_columns(cls.format, found, options, file, differing)
        return replace(schema, fields=schema.fields | extra | {"delimiter": delimiter})

    def cut(self) -> CsvLines:
        """Return the records of the file."""
        take_header = self._take_header if "header" in self.schema.fields else None
        return CsvLines(self.file, self.options.max_line_bytes, self._delimiter, take_header)

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after a position, and the position after each batch."""
        if start.line > 0 and "header" in self.schema.fields:
            lines = CsvLines(self.file, self.options.max_line_bytes, self._delimiter)
            if not any(map(self._take_header, lines.look_ahead())):
                raise ValueError(f"{self.file.path}: no line is a valid header")
        return super().batches(batch_rows, start)

    def parse(self, line: bytes) -> Parsed:
        """Return the row, the id and the time of a record."""
        fields = cut_fields(line, self._delimiter)
        if len(fields) != self._n_fields:
            raise UnusableError(f"{len(fields)} fields, not {self._n_fields}")
        id_ = None if self._id_at is None else fields[self._id_at].strip() or None
        if id_ is None and self.options.id_field is not None:
            raise UnusableError(f"column {self.options.id_field!r}, its id, is empty")
        time = None if self._time_at is None else _number_or_text(fields[self._time_at])
        cells = [fields[at] for at in self._columns_at]
        row: list[Any] | None = None
        if self._all_numbers and b"_" not in line:
            row = _finite_numbers(cells)
        if row is None:
            row = [read(cell) for read, cell in zip(self._read, cells, strict=True)]
        return self._fields.parse(id_, time, row)

    def _take_header(self, record: bytes) -> bool:
        """Note the positions of columns; False if the record is invalid as a header."""
        try:
            names = cut_fields(record, self._delimiter)
        except UnusableError:
            return False
        self._place(_header(names, self.file.path))
        return True

    def _place(self, names: list[str]) -> None:
        """Note the positions of the columns in the schema."""
        self._fields.check_there(names, self.file.path)
        at = {name: i for i, name in enumerate(names)}
        self._n_fields = len(names)
        self._id_at = None if self._fields.id is None else at.get(self._fields.id)
        self._time_at = None if self._fields.time is None else at[self._fields.time]
        self._columns_at = [at[name] for name in self._fields.columns]


class TsvReader(CsvReader):
    """Reads CSV with tabs as delimiters."""

    format: ClassVar[str] = "tsv"
    default_delimiter: ClassVar[str | None] = "\t"


def _find_delimiter(file: ByteReader, options: Options) -> str:
    max_bytes = options.max_line_bytes
    lines = first_lines(file, at_least=2, at_most=PEEKED_RECORDS, max_bytes=max_bytes)
    return guess_delimiter([line.decode(errors="replace") for line in lines])[0]


def _first_records(file: ByteReader, options: Options, delimiter: str) -> list[list[str]]:
    """Return the fields of the first records, without those that would be rejected."""
    lines = CsvLines(file, options.max_line_bytes, delimiter).look_ahead(at_least=2)
    records = []
    for record in islice(lines, PEEKED_RECORDS):
        with suppress(UnusableError):
            records.append(cut_fields(record, delimiter))
    if not records:
        raise ValueError(f"{file.path}: the first lines are not CSV in UTF-8")
    return records


def _numbered(n_fields: int) -> list[str]:
    return [f"column{i + 1}" for i in range(n_fields)]


def _header(record: list[str], path: str) -> list[str]:
    names = [name.strip() for name in record]
    twice = [name for name, n in Counter(names).items() if n > 1 and name]
    if twice:
        raise ValueError(
            f"{path}: the header has {twice[0]!r} twice: rename one of them, or give --no-header "
            "if the first line is not a header"
        )
    return names


def _is_header(first: list[str], rest: list[list[str]], options: Options) -> bool:
    """Return whether the first record is a header.

    It is if it has the columns that the user names; if it has no numbers, but a column of numbers
    or booleans follows; or if all cells are labels, and the first ones are distinct and do not
    recur.
    """
    names = [name.strip() for name in first]
    named = (options.id_field, options.text_field, options.time_field)
    wanted = {*named, *(options.columns or ())} - {None}
    if wanted and wanted <= set(names):
        return True
    if any(_type_of([name]) in ("number", "truth") for name in names):
        return False
    columns = list(zip(*(record for record in rest if len(record) == len(names)), strict=True))
    if any(_type_of(column) in ("number", "truth") for column in columns):
        return True
    is_distinct = len(set(names)) == len(names) and "" not in names
    return is_distinct and not any(map(operator.contains, columns, names))


def _type_of(cells: Sequence[str]) -> str | None:
    """Return the type of a column with these cells, None if all are missing.

    A few cells that do not fit are bad cells, not another type.
    """
    there = [cell for cell in cells if not _is_missing(cell)]
    if not there:
        return None
    enough = MOST * len(there)
    if sum(map(_is_number, there)) >= enough:
        return "number"
    truths = sum(cell.strip().lower() in _TRUTH for cell in there)
    return "truth" if truths >= enough else "label"


def _is_missing(cell: str) -> bool:
    bare = cell.strip()
    return len(bare) < 5 and bare.lower() in _MISSING


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _finite_numbers(cells: list[str]) -> list[float] | None:
    """Return cells as numbers if all of them are, and none is missing."""
    try:
        numbers = list(map(float, cells))
    except ValueError:
        return None
    total = sum(numbers)
    return numbers if total - total == 0.0 else None  # none is NaN or infinite


def _read_number(name: str, cell: str) -> float | None:
    if _is_missing(cell):
        return None
    if not _is_number(cell) or not math.isfinite(float(cell)):
        raise UnusableError(f"column {name!r} has {cell[:40]!r}, not a finite number")
    return float(cell)


def _read_truth(name: str, cell: str) -> bool | None:
    if _is_missing(cell):
        return None
    truth = _TRUTH.get(cell.strip().lower())
    if truth is None:
        raise UnusableError(f"column {name!r} has {cell[:40]!r}, not true or false")
    return truth


def _label_of(cell: str) -> str | None:
    return None if _is_missing(cell) else cell


def _number_or_text(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


_READERS: dict[str, Callable[[str, str], Any]] = {
    "number": _read_number,
    "truth": _read_truth,
    "label": lambda name, cell: _label_of(cell),
    "text": lambda name, cell: cell,
}
