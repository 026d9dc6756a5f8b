"""Redis Streams: entries after the last id that was read; answers as entries."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bnpstream.sources.brokers.address import Address
from bnpstream.sources.brokers.broker import Answer, Bounds, Broker, DownError, Message, Outlet
from bnpstream.sources.protocol import JSON, LostError

T = TypeVar("T")

FIRST = "0-0"
"""Precedes every id."""
ANSWER_SECONDS = 5.0
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null")
_WORDS = (b"id", b"text")
"""Fields that are never numbers."""


class _Link:
    """A connection, and the meaning of its errors."""

    def __init__(self, address: Address) -> None:
        host, _, port = address.hosts.partition(":")
        self.address = address
        self.client = redis.Redis(
            host=host,
            port=int(port or 6379),
            db=int(address.settings["db"]),
            username=address.user,
            password=address.password,
            socket_timeout=ANSWER_SECONDS,
            socket_connect_timeout=ANSWER_SECONDS,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )

    def ask(self, request: Callable[[], T]) -> T:
        """Return the result of a request."""
        try:
            return request()
        except redis.exceptions.AuthenticationError as error:
            raise LostError(f"{self.address}: {error}") from error
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
            raise DownError(str(error)) from error
        except redis.exceptions.ResponseError as error:
            raise LostError(f"{self.address}: {error}") from error


class Messages(Broker):
    """Entries of a stream, which is a single lane; an offset is an id."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._link = _Link(address)
        self._last: str = FIRST
        self._until: str | None = None

    def connect(self) -> None:
        """Check that the server is there; connections are opened as needed."""
        self._link.ask(self._link.client.ping)

    def _about(self) -> dict[str, Any]:
        """Return what the server knows about the stream; empty if the stream does not exist yet."""
        client, name = self._link.client, self.address.name
        found: Any = self._link.ask(
            lambda: client.xinfo_stream(name) if client.exists(name) else {}
        )
        return {str(key): value for key, value in found.items()}

    def bounds(self) -> list[Bounds]:
        """Return the id of the last entry ever added."""
        last = self._about().get("last-generated-id", FIRST)
        return [Bounds(FIRST, _text(last))]

    def lineage(self, start: str) -> JSON:
        """Return the number of entries added before the first one to read."""
        about = self._about()
        added = about.get("entries-added", 0)
        return added if start == "latest" else added - about.get("length", 0)

    def missing(self, lane: int, last: JSON, bounds: Bounds, lineage: JSON, n_read: int) -> str:
        """Return why reading cannot continue: entries after the last one read are gone."""
        if _order(last) > _order(bounds.last):
            return f"it ends at {bounds.last}, but {last} was read: it is a different stream"
        about = self._about()
        first = about.get("first-entry")
        unread = about.get("entries-added", 0) - (int(lineage) + n_read)
        is_cut = first is None or _order(_text(first[0])) > _order(last)
        gone = unread - about.get("length", 0)
        if is_cut and gone > 0:
            return f"{gone} entries after {last} were removed before they were read"
        return ""

    def unread(self, last: Sequence[JSON], lineage: JSON, n_read: int) -> list[int]:
        """Return the number of entries added and not read."""
        about = self._about()
        if "entries-added" not in about:  # before Redis 7
            return []
        return [max(0, min(about["entries-added"] - int(lineage) - n_read, about["length"]))]

    def seek(self, last: dict[int, JSON], until: dict[int, JSON] | None = None) -> None:
        """Continue after an id."""
        self._last, self._until = last[0], None if until is None else until[0]

    def read(self, n: int, seconds: float) -> list[Message] | None:
        """Return the next entries."""
        client, name = self._link.client, self.address.name
        if self._until is not None:
            if _order(self._last) >= _order(self._until):
                return None
            entries: Any = self._link.ask(
                lambda: client.xrange(name, f"({self._last}", self._until or "+", count=n)
            )
            if not entries:
                return None
        else:
            block = max(1, round(1000 * seconds))
            found: Any = self._link.ask(
                lambda: client.xread({name: self._last}, count=n, block=block)
            )
            entries = found[0][1] if found else []
        messages = [self._message(_text(id_), fields) for id_, fields in entries]
        if messages:
            self._last = messages[-1].offset
        return messages

    def _message(self, id_: str, fields: dict[bytes, bytes]) -> Message:
        """Return an entry: the value of its only field, or an object of all fields."""
        if len(fields) == 1:
            value = next(iter(fields.values()))
        else:
            value = b"{%b}" % b",".join(
                b"%b:%b" % (_quoted(name), _cell(name, field)) for name, field in fields.items()
            )
        if not self.has_details:
            return Message(0, id_, value)
        headers = {_text(name): _text(field) for name, field in fields.items()}
        return Message(0, id_, value, None, int(id_.partition("-")[0]) / 1000.0, headers)

    def spot(self, lane: int, offset: Any) -> dict[str, JSON]:
        """Return stream and id."""
        return {"stream": self.address.name, "id": offset}

    def is_after(self, offset: JSON, last: JSON) -> bool:
        """Return whether an id comes after another."""
        return _order(offset) > _order(last)

    def close(self) -> None:
        """Close the connections."""
        self._link.client.close()


class Answers(Outlet):
    """Answers as entries of a stream, with the fields "key" and "answer"."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._link = _Link(address)

    def connect(self) -> None:
        """Check that the server is there."""
        self._link.ask(self._link.client.ping)

    def send(self, answers: Sequence[Answer]) -> None:
        """Add answers in one round trip."""
        pipe = self._link.client.pipeline(transaction=False)
        for key, line in answers:
            pipe.xadd(self.address.name, {"key": key, "answer": line})
        self._link.ask(pipe.execute)

    def close(self) -> None:
        """Close the connections."""
        self._link.client.close()


def _order(id_: str) -> tuple[int, int]:
    first, _, second = id_.partition("-")
    return int(first), int(second or 0)


def _cell(name: bytes, value: bytes) -> bytes:
    """Return a field as JSON; what looks like a number becomes one."""
    is_number = name not in _WORDS and _NUMBER.fullmatch(value)
    return value if is_number else _quoted(value)


def _quoted(value: bytes) -> bytes:
    return orjson.dumps(value.decode(errors="backslashreplace"))


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode(errors="backslashreplace")
