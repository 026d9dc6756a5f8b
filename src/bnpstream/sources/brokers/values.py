"""Messages as records: JSON, text or raw bytes; ids and times from keys, headers and timestamps."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from bnpstream.sources.brokers.broker import Broker, Message
from bnpstream.sources.formats.fields import time_of
from bnpstream.sources.formats.json_lines import JsonParser, schema_of_objects, sound_objects
from bnpstream.sources.formats.record_reader import Gatherer, LineParser, Parsed
from bnpstream.sources.formats.schemas import document_schema
from bnpstream.sources.formats.text import TextParser
from bnpstream.sources.records import Options, Place, Records, Schema, UnusableError

KEY, TIMESTAMP, HEADER = "@key", "@timestamp", "@header."


class RawParser(LineParser):
    """Turns any bytes into a document: each byte becomes a character."""

    def parse(self, line: bytes) -> Parsed:
        """Return the document of a message."""
        return Parsed(line.decode("latin-1"))


FORMATS: dict[str, type[LineParser]] = {"jsonl": JsonParser, "text": TextParser, "raw": RawParser}
"""Formats of messages."""


class _Input(NamedTuple):
    path: str
    is_live: bool


def schema_of_messages(
    messages: Sequence[Message], options: Options, name: str, *, is_live: bool
) -> Schema:
    """Return the schema of messages from the first ones; if unclear, ValueError says what to do."""
    for told in (options.id_field, options.time_field):
        if told is not None and told.startswith("@"):
            _check_named(told)
    values = [message.value for message in messages if message.value]
    objects = sound_objects(values)
    format = options.format or ("jsonl" if 2 * len(objects) > len(values) else "text")
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}: for messages, give one of {', '.join(FORMATS)}")
    inner = _without_details(options)
    if format == "jsonl":
        if not objects:
            raise ValueError(
                f"{name}: the first {len(messages)} messages are not JSON objects: if they are "
                "text, give --format text"
            )
        schema = schema_of_objects(objects, inner, _Input(name, is_live))
    elif inner.time_field is not None or inner.vector_field is not None:
        told = inner.time_field or inner.vector_field
        raise ValueError(f"{name}: messages of the format {format} have no field {told!r}")
    else:
        schema = document_schema(format, {}, inner)
    details = {"id": options.id_field, "time": options.time_field}
    named = {role: told for role, told in details.items() if told and told.startswith("@")}
    return replace(schema, fields=schema.fields | named)


def _check_named(told: str) -> None:
    if told not in (KEY, TIMESTAMP) and not (told.startswith(HEADER) and told != HEADER):
        raise ValueError(f"{told}: a message has only {KEY}, {TIMESTAMP} and {HEADER}NAME")


def _without_details(options: Options) -> Options:
    """Return the options about values, without those about keys, headers and times."""
    own = [None if _detail(field) else field for field in (options.id_field, options.time_field)]
    return replace(options, id_field=own[0], time_field=own[1])


class _Gathered(Gatherer):
    """Gathers messages; their numbers take the place of line numbers."""

    places: Sequence[Place] = ()

    def place(self, line: int) -> Place:
        return self.places[line]


class Values:
    """Turns messages into records.

    Parameters
    ----------
    broker : Broker
        The source of the messages.
    schema : Schema
        Schema of the records.
    options : Options
        The user's options.
    next_number : int
        Number of the next record.
    """

    def __init__(
        self, broker: Broker, schema: Schema, options: Options, next_number: int = 0
    ) -> None:
        self._source, self._spot = broker.address.server, broker.spot
        fields = schema.fields
        self._id, self._time = (_detail(fields.get(role)) for role in ("id", "time"))
        inside = {role: name for role, name in fields.items() if not name.startswith("@")}
        inner = replace(schema, fields=inside)
        self._parser = FORMATS[schema.format](inner, _without_details(options))
        self._batch = _Gathered(self._source, inner, next_number)

    @property
    def has_details(self) -> bool:
        """Return whether keys, headers or times are used."""
        return self._id is not None or self._time is not None

    def records(self, messages: Sequence[Message]) -> Records:
        """Return the records of the next messages; each becomes a row or a reject."""
        batch, first = self._batch, self._batch.next_number
        source, spot = self._source, self._spot
        places = [Place(source, None, spot(one.lane, one.offset)) for one in messages]
        batch.places = places
        values = [one.value or b"" for one in messages]
        details = [_NOTHING] * len(messages)
        if self.has_details or not all(values) or any(map(bytes.isspace, values)):
            details = list(map(self._details, messages))
        at = 0
        for fault, run in groupby(details, key=itemgetter(0)):
            n = len(list(run))
            if fault:
                for i in range(at, at + n):
                    batch.reject(i, fault, values[i])
            else:
                self._parser.add(values[at : at + n], at, batch)
            at += n
        records = batch.take()
        sound = [number - first for number in records.numbers]
        changes: dict[str, Any] = {"places": [places[i] for i in sound]}
        if self._id is not None:
            changes["ids"] = [details[i].id for i in sound]
        if self._time is not None:
            changes["times"] = [details[i].time for i in sound]
        return replace(records, **changes)

    def _details(self, message: Message) -> "_Details":
        """Return id and time of a message, or why it cannot be used."""
        if not message.value or message.value.isspace():
            return _Details("it has no value" if message.value is None else "it is empty")
        id_ = time = None
        if self._id is not None:
            told = _told(message, self._id)
            if told is None:
                return _Details(f"it has no {self._id} to be its id")
            id_ = str(told)
        if self._time is not None:
            try:
                time = time_of(_number_or_text(_told(message, self._time)), self._time)
            except UnusableError as error:
                return _Details(str(error))
        return _Details("", id_, time)


class _Details(NamedTuple):
    fault: str
    """Why the message is rejected; "" if it is not."""
    id: str | None = None
    time: float | None = None


_NOTHING = _Details("")


def _detail(name: str | None) -> str | None:
    return name if name is not None and name.startswith("@") else None


def _told(message: Message, name: str) -> str | float | None:
    """Return the key, the time or a header of a message; None if missing."""
    if name == KEY:
        return message.key
    if name == TIMESTAMP:
        return message.time
    return (message.headers or {}).get(name.removeprefix(HEADER))


def _number_or_text(value: str | float | None) -> str | float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return value
