"""The interface of a message broker: gives messages in order from any position, takes answers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from bnpstream.sources.brokers.address import Address
from bnpstream.sources.protocol import JSON, LostError


class DownError(LostError):
    """A broker does not answer; it may do so later."""


class Message(NamedTuple):
    """A message and its place."""

    lane: int
    """Number of its ordered part (lane): a partition, or 0 if there is only one."""
    offset: Any
    """Its place in the lane; a JSON value that grows."""
    value: bytes | None
    key: str | None = None
    time: float | None = None
    """Time of the message, in seconds since 1970."""
    headers: Mapping[str, str] | None = None


class Bounds(NamedTuple):
    """The messages that a lane has now."""

    before: Any
    """Offset before its first message."""
    last: Any
    """Offset of its last message; `before` if it has none."""


class Broker(ABC):
    """Messages of a topic, a stream or a table, in ordered lanes.

    The position in a lane is the offset of the last message read there.

    Parameters
    ----------
    address : Address
        What to read, and from where.

    Attributes
    ----------
    has_details : bool
        Whether keys, times or headers of messages are needed.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.has_details = False

    @abstractmethod
    def connect(self) -> None:
        """Connect, or reconnect; DownError if the broker does not answer."""

    @abstractmethod
    def bounds(self) -> list[Bounds]:
        """Return the bounds of each lane; LostError if the topic does not exist."""

    @abstractmethod
    def seek(self, last: dict[int, JSON], until: dict[int, JSON] | None = None) -> None:
        """Continue after `last` in these lanes, and read no others.

        With `until`, lanes end there, whether or not such a message exists.
        """

    @abstractmethod
    def read(self, n: int, seconds: float) -> list[Message] | None:
        """Return up to n messages that are there or arrive within some seconds.

        None if all lanes have ended. DownError if the broker does not answer, LostError if it
        cannot give the next message.
        """

    @abstractmethod
    def spot(self, lane: int, offset: Any) -> dict[str, JSON]:
        """Return the place of a message, for people and as a key, with the offset last."""

    def where(self, spot: dict[str, JSON]) -> tuple[int, JSON]:
        """Return the lane and the offset of a place."""
        return spot.get("partition", 0), next(reversed(spot.values()))

    def is_after(self, offset: JSON, last: JSON) -> bool:
        """Return whether a message comes after another of its lane."""
        return bool(offset > last)

    def lineage(self, start: str) -> JSON:
        """Return a value of the first message to read by which later losses can be noticed."""
        return None

    def missing(self, lane: int, last: JSON, bounds: Bounds, lineage: JSON, n_read: int) -> str:
        """Return why reading cannot continue after `last` in a lane; "" if it can.

        Parameters
        ----------
        lane, last : int, JSON
            The position.
        bounds : Bounds
            Present bounds of the lane.
        lineage : JSON
            Result of `lineage` at the beginning.
        n_read : int
            Messages read since then, in all lanes.
        """
        if last < bounds.before:
            spot = self.spot(lane, last)
            return f"the next message after {_told(spot)} is gone: the first one left is later"
        if last > bounds.last:
            spot = self.spot(lane, last)
            return f"it ends before {_told(spot)}, which was read: it is a different one"
        return ""

    def unread(self, last: Sequence[JSON], lineage: JSON, n_read: int) -> list[int]:
        """Return the number of messages after `last` in each lane; parameters as in `missing`."""
        bounds = self.bounds()
        at = [*last, *(lane.before for lane in bounds[len(last) :])]
        return [max(0, lane.last - offset) for lane, offset in zip(bounds, at, strict=False)]

    def commit(self, last: Sequence[JSON]) -> None:
        """Publish the position that is safely stored, for others to see."""
        return

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""


def _told(spot: dict[str, JSON]) -> str:
    return ", ".join(f"{name} {value}" for name, value in spot.items())


class Answer(NamedTuple):
    """The answer to a record."""

    key: str
    """Identifies the record, whenever it is answered."""
    line: bytes
    """A JSON object."""


class Outlet(ABC):
    """Takes answers."""

    def __init__(self, address: Address) -> None:
        self.address = address

    @abstractmethod
    def connect(self) -> None:
        """Connect, or reconnect; DownError if the broker does not answer."""

    @abstractmethod
    def send(self, answers: Sequence[Answer]) -> None:
        """Give answers to the broker; it has them when this returns.

        After a DownError all of them are sent again.
        """

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""


class Driver(Protocol):
    """A module for one kind of broker."""

    Messages: type[Broker]
    Answers: type[Outlet]


_DRIVERS = {
    "kafka": ("kafka", "confluent_kafka"),
    "redis": ("redis_streams", "redis"),
    "nats": ("jetstream", "nats"),
    "postgresql": ("postgres", "psycopg"),
}
EXTRAS = {"postgresql": "postgres"}


def driver(address: Address) -> Driver:
    """Return the driver for an address; ImportError says what to install."""
    module, package = _DRIVERS[address.scheme]
    try:
        import_module(package)
    except ImportError as error:
        extra = EXTRAS.get(address.scheme, address.scheme)
        raise ImportError(
            f"{address}: the package {package} is missing: pip install 'bnpstream[{extra}]'"
        ) from error
    return import_module(f"bnpstream.sources.brokers.{module}")
