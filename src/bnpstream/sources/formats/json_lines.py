"""JSON lines: one object per line, with a text, word counts, a vector, or cells of a table.

Words come from a field with a text ("text" by default), or from a field ("counts" or "words" by
default) that maps words to counts or lists words. Vectors are arrays of numbers in a field that the
user names. Other records are rows of a table: each field with numbers, booleans or strings is a
column. Blank lines are skipped.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar

import orjson

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.lines import first_lines
from bnpstream.sources.formats.fields import Fields
from bnpstream.sources.formats.record_reader import (
    PEEKED_RECORDS,
    Gatherer,
    LineParser,
    LineReader,
    Parsed,
    decode,
)
from bnpstream.sources.formats.schemas import Input, differs, schema_of_columns
from bnpstream.sources.formats.vectors import commonest_length
from bnpstream.sources.json_text import load_json
from bnpstream.sources.records import Options, Schema, UnusableError

_TYPES = {
    int: "number",
    float: "number",
    bool: "truth",
    str: "label",
    dict: "counts",
    list: "counts",
}


class JsonParser(LineParser):
    """Turns JSON objects into records."""

    @cached_property
    def _fields(self) -> Fields:
        return Fields(self.schema, self.options)

    def add(self, lines: Sequence[bytes], number: int, batch: Gatherer) -> int:
        """Add the records of lines: texts with ids many at a time, all others one by one."""
        names = self._fields.text_and_id
        if names is None or max(map(len, lines)) > self.options.max_line_bytes:
            return super().add(lines, number, batch)
        text_name, id_name, id_types = names
        n_before, loads = batch.next_number, orjson.loads
        texts: list[str] = []
        ids: list[str | int | None] = []
        for i, line in enumerate(lines):
            if not line:
                continue
            try:
                record = loads(line)
                text, id_ = record[text_name], record.get(id_name)
                is_usual = type(text) is str and type(id_) in id_types
                is_usual = is_usual and _has_each_key_once(line, record)
            except (ValueError, LookupError, TypeError, AttributeError):
                is_usual = False
            if is_usual:
                texts.append(text)
                ids.append(id_)
            else:
                batch.extend(texts, ids)
                texts, ids = [], []
                super().add([line], number + i, batch)
        batch.extend(texts, ids)
        return batch.next_number - n_before

    def parse(self, line: bytes) -> Parsed:
        """Return the record of a line."""
        record, fields = _load(line), self._fields
        values = fields.values_of(record)
        id_ = None if fields.id is None else record.get(fields.id)
        return fields.parse(id_, None if fields.time is None else record.get(fields.time), values)


class JsonLinesReader(LineReader, JsonParser):
    """Reads JSON lines."""

    format: ClassVar[str] = "jsonl"

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Determine the schema from the first records; if unclear, ValueError says what to do."""
        records = _first_records(file, options.max_line_bytes)
        return schema_of_objects(records, options, file)


def schema_of_objects(records: list[dict[str, Any]], options: Options, input: Input) -> Schema:
    """Determine the schema of JSON objects from the first of them."""

    def vector_length(name: str) -> int | None:
        found: list[Any] = [record.get(name) for record in records]
        return commonest_length(len(x) for x in found if _type_of(x) == "vector")

    def differing(labels: list[str]) -> list[str]:
        columns = {name: [record.get(name) for record in records] for name in labels}
        return [name for name in labels if differs(x for x in columns[name] if type(x) is str)]

    types = _column_types(records)
    return schema_of_columns("jsonl", types, options, input, differing, vector_length)


def _load(line: bytes) -> dict[str, Any]:
    try:
        record = load_json(line)
    except orjson.JSONDecodeError as error:
        decode(line)  # a better reason, if it applies
        raise UnusableError(f"not JSON: {error.msg}, at character {error.pos + 1}") from error
    if type(record) is not dict:
        raise UnusableError("not a JSON object")
    if not _has_each_key_once(line, record):
        try:
            json.loads(line, object_pairs_hook=_once)
        except RecursionError as error:
            raise UnusableError("its values are nested too deeply") from error
    return record


def _has_each_key_once(line: bytes, record: dict[str, Any]) -> bool:
    """Return whether no key of a record occurs twice; False if that takes a closer look.

    A colon that ends a key stands behind a quotation mark; others are in texts or deeper keys.
    """
    if line.count(b":") == len(record):
        return True
    n_keys = len(record) + sum(len(value) for value in record.values() if type(value) is dict)
    return sum(x.rstrip().endswith(b'"') for x in line.split(b":")[:-1]) == n_keys


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; UnusableError if a key occurs twice, as one value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise UnusableError(f"{twice[:40]!r} occurs twice")
    return found


def _first_records(file: ByteReader, max_bytes: int) -> list[dict[str, Any]]:
    """Return the first records, without those that would be rejected; wait for one in a feed."""
    at_least = 1
    while True:
        lines = first_lines(file, at_least=at_least, max_bytes=max_bytes)[:PEEKED_RECORDS]
        if records := sound_objects(lines):
            return records
        if file.ended or len(lines) < at_least or len(lines) == PEEKED_RECORDS:
            break
        at_least = len(lines) + 1 if file.is_live else PEEKED_RECORDS
    hint = "if they are text, give --format text"
    if not lines:
        hint = f"none has at most {max_bytes} bytes"
    elif lines[0].startswith(b"["):
        hint = "convert an array with `jq -c '.[]'`"
    which = (
        f"{len(lines)} lines are not JSON objects" if len(lines) != 1 else "line is no JSON object"
    )
    raise ValueError(f"{file.path}: the first {which}: {hint}")


def sound_objects(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the JSON objects among lines, without those that would be rejected."""
    records = []
    for line in lines:
        with suppress(UnusableError):
            records.append(_load(line))
    return records


def _type_of(value: Any) -> str | None:
    if type(value) is list and value and type(value[0]) in (int, float):
        return "vector"
    return _TYPES.get(type(value))


def _column_types(records: list[dict[str, Any]]) -> dict[str, str | None]:
    """Return the columns in order of appearance, each with its most frequent type."""
    seen: dict[str, Counter[str]] = {}
    for record in records:
        for name, value in record.items():
            types = seen.setdefault(name, Counter())
            if (type_ := _type_of(value)) is not None:
                types[type_] += 1
    return {name: types.most_common(1)[0][0] if types else None for name, types in seen.items()}
