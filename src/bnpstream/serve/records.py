"""Rows from the records of a request, made as the run's own source makes them."""

from dataclasses import replace
from typing import Any

import orjson

from bnpstream.sources import Options, Records, Schema
from bnpstream.sources.formats.fields import Fields
from bnpstream.sources.formats.record_reader import Gatherer, Parsed
from bnpstream.sources.records import UnusableError

ROLES = ("text", "counts", "vector")


class JsonRecords:
    """Makes rows from JSON values.

    Parameters
    ----------
    schema : Schema
        The schema of the run, whatever its format.

    Attributes
    ----------
    schema : Schema
        Its JSON form: if the run's format has no fields, documents have a "text", word counts
        are in "counts" and numbers without names in "vector".
    """

    def __init__(self, schema: Schema) -> None:
        fields = {role: schema.fields[role] for role in ("id", *ROLES) if role in schema.fields}
        if not any(role in fields for role in ROLES):
            if schema.kind == "documents":
                fields["text"] = "text"
            elif schema.kind == "counts":
                fields["counts"] = "counts"
            elif schema.names is None:
                fields["vector"] = "vector"
        fields.setdefault("id", "id")
        self.schema = replace(schema, format="jsonl", fields=fields)
        self._fields = Fields(self.schema, Options())

    def records(self, values: list[Any]) -> Records:
        """Return rows, and a reject for each value that cannot be used."""
        batch = Gatherer("request", self.schema, 0)
        for i, value in enumerate(values):
            try:
                batch.add(self._parsed(value))
            except UnusableError as error:
                batch.reject(i + 1, str(error), orjson.dumps(value))
        return batch.take()

    def _parsed(self, value: Any) -> Parsed:
        fields = self._fields
        if type(value) is str and fields.types == ("text",):
            value = {fields.columns[0]: value}
        if type(value) is not dict:
            raise UnusableError("not a JSON object")
        values = fields.values_of(value)
        id_ = None if fields.id in fields.columns else value.get(fields.id)
        return fields.parse(id_, None, values)

    def example(self) -> dict[str, Any]:
        """Return an example record."""
        names, types = self._fields.columns, self._fields.types
        shapes = {
            "text": "some words",
            "counts": {"word": 1},
            "vector": [0.5] * (self.schema.n_features or 0),
            "number": 0.5,
            "truth": True,
            "label": "a",
        }
        return {name: shapes[kind] for name, kind in zip(names, types, strict=True)}
