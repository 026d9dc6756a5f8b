"""JSON lines: one object a line, with a text, with counts of words, or with cells of a table.

Words come from the text of a field ("text" by default), or from a field ("counts" or "words" by
default) that maps words to counts or is a list of words. Other records are rows of a table: each
field with numbers, truth values or strings is a column. Blank lines are no records.
"""

from collections import Counter
from typing import Any, ClassVar

import orjson

from bnpstream.streams.documents import (
    DocumentRows,
    counts_of,
    document_schema,
    excerpt_of_counts,
    excerpt_of_text,
)
from bnpstream.streams.lines import LineReader, Parsed, decode, first_lines
from bnpstream.streams.reading import ByteReader
from bnpstream.streams.records import Options, Schema, UnusableError
from bnpstream.streams.tables import TableRows, table_schema
from bnpstream.streams.tokens import count_words

__all__ = ["JsonLinesReader"]

_NAMES = {str: "string", int: "whole number", dict: "object", list: "list"}
_TYPES = {int: "number", float: "number", bool: "truth", str: "label"}


class JsonLinesReader(LineReader):
    """Reads JSON lines."""

    format: ClassVar[str] = "jsonl"

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._id = schema.fields.get("id")
        self._text, self._counts = schema.fields.get("text"), schema.fields.get("counts")
        if schema.kind == "table":
            self._names = schema.names or ()
            self._table = TableRows(self._names, schema.types or ())
        else:
            self._documents = DocumentRows(schema)

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the first records are; ValueError says what to do if that is unclear."""
        if options.text_field is not None and options.counts_field is not None:
            raise ValueError("text_field and counts_field are both given: give one of them")
        records = _first_records(file)
        found = {
            "id": _find(records, file, options.id_field, ("id",), (str, int)),
            "text": _find(records, file, options.text_field, ("text",), (str,)),
            "counts": _find(records, file, options.counts_field, ("counts", "words"), (dict, list)),
        }
        # What the user named comes first; then a text is more than its words.
        if options.counts_field is not None or found["text"] is not None:
            del found["text" if options.counts_field is not None else "counts"]
        is_table = (
            options.text_field is None
            and options.counts_field is None
            and (options.columns is not None or not (found.get("text") or found.get("counts")))
        )
        fields = {
            role: field
            for role, field in found.items()
            if field is not None and (role == "id" or not is_table)
        }
        if is_table:
            return table_schema(cls.format, _column_types(records), fields, options, file.path)
        return document_schema(cls.format, fields, options)

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
        if self._text is not None:
            text = record.get(self._text)
            if type(text) is not str:
                what = "has no field" if text is None else "has something else than a string as"
                raise UnusableError(f"{what} {self._text!r}")
            return Parsed(count_words(text), id_, excerpt_of_text(text))
        if self._counts is not None:
            if self._counts not in record:
                raise UnusableError(f"has no field {self._counts!r}")
            counts = counts_of(record[self._counts])
            return Parsed(counts, id_, excerpt_of_counts(counts))
        if record.keys().isdisjoint(self._names):
            raise UnusableError(f"has none of the columns, such as {self._names[0]!r}")
        return Parsed(self._table.check([record.get(name) for name in self._names]), id_)

    def gather(self, rows: list[Any]) -> Any:
        """Return records as the schema wants them."""
        return self._table(rows) if self.schema.kind == "table" else self._documents(rows)


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
    """Return the first records, without those that would be rejected."""
    lines = first_lines(file)
    records = []
    for line in lines:
        try:
            records.append(_load(line))
        except UnusableError as error:
            reason = error
    if not records:
        hint = "; `jq -c '.[]'` makes lines of an array" if lines[0].startswith(b"[") else ""
        raise ValueError(
            f"{file.path}: the first {len(lines)} lines are no JSON objects ({reason}){hint}"
        )
    return records


def _find(
    records: list[dict[str, Any]],
    file: ByteReader,
    named: str | None,
    defaults: tuple[str, ...],
    types: tuple[type, ...],
) -> str | None:
    """Return which field has one of some types in any of the first records."""
    for field in defaults if named is None else (named,):
        if any(type(record.get(field)) in types for record in records):
            return field
    # The first record of a feed may be a bad one; of a file, a thousand are unlikely to be.
    if named is not None and not file.is_live:
        there = ", ".join(records[0])
        raise ValueError(
            f"{file.path}: no {' or '.join(_NAMES[type_] for type_ in types)} called {named!r} in "
            f"the first {len(records)} records; the first one has {there or 'nothing'}"
        )
    return named


def _column_types(records: list[dict[str, Any]]) -> dict[str, str | None]:
    """Return the columns in order of appearance, and the commonest type of each."""
    seen: dict[str, Counter[str]] = {}
    for record in records:
        for name, value in record.items():
            types = seen.setdefault(name, Counter())
            if type(value) in _TYPES:
                types[_TYPES[type(value)]] += 1
    return {name: types.most_common(1)[0][0] if types else None for name, types in seen.items()}
