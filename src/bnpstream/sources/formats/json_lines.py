"""JSON lines: one object a line, with a text, with counts of words, or with cells of a table.

Words come from the text of a field ("text" by default), or from a field ("counts" or "words" by
default) that maps words to counts or is a list of words. Other records are rows of a table: each
field with numbers, truth values or strings is a column. Blank lines are no records.
"""

from collections import Counter
from contextlib import suppress
from typing import Any, ClassVar

import orjson

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.formats.document_rows import (
    counts_of,
    excerpt_of_counts,
    excerpt_of_text,
)
from bnpstream.sources.formats.field_schemas import schema_of_columns
from bnpstream.sources.formats.line_reader import LineReader
from bnpstream.sources.formats.lines import PEEKED_RECORDS, decode, first_lines
from bnpstream.sources.formats.record_batch import Parsed
from bnpstream.sources.formats.table_rows import CellTypes
from bnpstream.sources.formats.times import time_of
from bnpstream.sources.formats.tokenizer import count_words
from bnpstream.sources.records import Options, Schema, UnusableError

__all__ = ["JsonLinesReader"]

_TYPES = {
    int: "number",
    float: "number",
    bool: "truth",
    str: "label",
    dict: "counts",
    list: "counts",
}


class JsonLinesReader(LineReader):
    """Reads JSON lines."""

    format: ClassVar[str] = "jsonl"

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._id, self._time = schema.fields.get("id"), schema.fields.get("time")
        self._text, self._counts = schema.fields.get("text"), schema.fields.get("counts")
        self._names = schema.names or ()
        self._types = CellTypes(self._names, schema.types or ())

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the first records are; ValueError says what to do if that is unclear."""
        return schema_of_columns(cls.format, _column_types(_first_records(file)), options, file)

    def parse(self, line: bytes) -> Parsed:
        """Return the record of a line."""
        record = _load(line)
        id_ = None
        if self._id is not None:
            id_ = record.get(self._id)
            if type(id_) is not str and type(id_) is not int:
                if self.options.id_field is not None:
                    raise UnusableError(f"no string or whole number {self._id!r} to be its id")
                id_ = None
        time = None if self._time is None else time_of(record.get(self._time), self._time)
        if self._text is not None:
            text = record.get(self._text)
            if type(text) is not str:
                what = "has no field" if text is None else "has something else than a string as"
                raise UnusableError(f"{what} {self._text!r}")
            return Parsed(count_words(text), id_, excerpt_of_text(text), time)
        if self._counts is not None:
            if self._counts not in record:
                raise UnusableError(f"has no field {self._counts!r}")
            counts = counts_of(record[self._counts])
            return Parsed(counts, id_, excerpt_of_counts(counts), time)
        if record.keys().isdisjoint(self._names):
            raise UnusableError(f"has none of the columns, such as {self._names[0]!r}")
        cells = self._types.check([record.get(name) for name in self._names])
        return Parsed(cells, id_, time=time)


def _load(line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        decode(line)  # a better reason, if that is one
        raise UnusableError(f"not JSON: {error.msg}, at character {error.pos + 1}") from error
    if type(record) is not dict:
        raise UnusableError("not a JSON object")
    return record


def _first_records(file: ByteReader) -> list[dict[str, Any]]:
    """Return the first records, without those that would be rejected; a feed is waited for one."""
    lines = first_lines(file)[:PEEKED_RECORDS]
    while not (records := _sound(lines)):
        if file.ended or len(lines) >= PEEKED_RECORDS:
            hint = "if they are text, give --format text"
            if lines[0].startswith(b"["):
                hint = "`jq -c '.[]'` makes lines of an array"
            raise ValueError(
                f"{file.path}: the first {len(lines)} lines are no JSON objects: {hint}"
            )
        lines = first_lines(file, at_least=len(lines) + 1)[:PEEKED_RECORDS]
    return records


def _sound(lines: list[bytes]) -> list[dict[str, Any]]:
    records = []
    for line in lines:
        with suppress(UnusableError):
            records.append(_load(line))
    return records


def _column_types(records: list[dict[str, Any]]) -> dict[str, str | None]:
    """Return the columns in order of appearance, and the commonest type of each."""
    seen: dict[str, Counter[str]] = {}
    for record in records:
        for name, value in record.items():
            types = seen.setdefault(name, Counter())
            if type(value) in _TYPES:
                types[_TYPES[type(value)]] += 1
    return {name: types.most_common(1)[0][0] if types else None for name, types in seen.items()}
