"""Records with fields: turns an id, a time, a text, counts, a vector or cells into a row."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from types import NoneType
from typing import Any

from bnpstream.sources.formats.record_reader import Parsed
from bnpstream.sources.formats.rows import (
    CellTypes,
    counts_of,
    excerpt_of_counts,
    excerpt_of_text,
)
from bnpstream.sources.formats.vectors import vector_of
from bnpstream.sources.records import Options, Schema, UnusableError


class Fields:
    """Knows the meaning of each field of a record.

    Parameters
    ----------
    schema : Schema
        Schema of the records.
    options : Options
        Says whether an id is required.
    has_typed_cells : bool
        Whether cells, if not missing, always have the types in the schema.

    Attributes
    ----------
    id, time : str or None
        Names of the fields with id and time.
    columns : tuple of str
        Names of the fields that make a row.
    types : tuple of str
        Type of each: "number", "truth", "label", "text", "counts" or "vector".
    """

    def __init__(self, schema: Schema, options: Options, *, has_typed_cells: bool = False) -> None:
        self.id, self.time = schema.fields.get("id"), schema.fields.get("time")
        self._needs_id = options.id_field is not None
        self.columns, self.types = schema.names or (), schema.types or ()
        roles = [role for role in ("vector", "text", "counts") if role in schema.fields]
        self._role = roles[0] if roles else None
        if roles:
            # A text beside a vector is for people to read.
            self.columns = tuple(schema.fields[role] for role in roles)
            self.types = tuple(roles)
        self._length, self._is_table = schema.n_features or 0, schema.kind == "table"
        self._check = None if has_typed_cells else CellTypes(self.columns, self.types).check

    @property
    def text_and_id(self) -> tuple[str, str | None, set[type]] | None:
        """Return the fields of a text and its id, and the types that the id may have.

        None if records are something else, or have a time.
        """
        if self._role != "text" or self.time is not None:
            return None
        return self.columns[0], self.id, {str, int} | (set() if self._needs_id else {NoneType})

    def values_of(self, record: dict[str, Any]) -> list[Any]:
        """Return the values of the row's fields, None if missing; UnusableError if all are."""
        if record.keys().isdisjoint(self.columns):
            lacks = "none of the columns, such as" if self._is_table else "no field"
            raise UnusableError(f"has {lacks} {self.columns[0]!r}")
        return [record.get(name) for name in self.columns]

    def parse(self, id_: Any, time: Any, values: list[Any]) -> Parsed:
        """Return the record with these values, None if missing.

        Raises
        ------
        UnusableError
            If the record must be rejected.
        """
        if type(id_) is not str and type(id_) is not int:
            if self._needs_id:
                raise UnusableError(f"the id {self.id!r} is not a string or a whole number")
            id_ = None
        seconds = None if self.time is None else time_of(time, self.time)
        if self._role == "text":
            (text,) = values
            if type(text) is not str:
                what = "is missing" if text is None else "is not a string"
                raise UnusableError(f"column {self.columns[0]!r} {what}")
            return Parsed(text, id_, None, seconds)
        if self._role == "counts":
            counts = counts_of(values[0])
            return Parsed(counts, id_, excerpt_of_counts(counts), seconds)
        if self._role == "vector":
            vector = vector_of(values[0], self.columns[0], self._length)
            texts = [text if type(text) is str else "" for text in values[1:]]
            return Parsed(vector, id_, excerpt_of_text(texts[0]) if texts else None, seconds)
        return Parsed(self._check(values) if self._check else values, id_, None, seconds)

    def check_there(self, names: Sequence[str], path: str) -> None:
        """Raise ValueError if a file with these columns lacks a required one."""
        columns = self.columns[:1] if self._role == "vector" else self.columns
        needed = [*columns, *([] if self.time is None else [self.time])]
        if self._needs_id and self.id is not None:
            needed.append(self.id)
        for name in needed:
            if name not in names:
                raise ValueError(f"{path}: has no column {name!r}; it has {', '.join(names)}")


def time_of(value: Any, name: str) -> float:
    """Return the time in a field, in seconds; UnusableError if there is none.

    A time without a zone is UTC.

    Examples
    --------
    >>> time_of(1.5, "at"), time_of("1970-01-02T00:00:00+01:00", "at")
    (1.5, 82800.0)
    """
    if type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if type(value) is str:
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            pass
        else:
            return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    if value is None or value == "":
        raise UnusableError(f"has no time {name!r}")
    shown = str(value)[:40]
    raise UnusableError(f"its time {name!r} is {shown!r}, neither seconds nor ISO 8601")
