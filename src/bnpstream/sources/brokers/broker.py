"""What a message broker has to do: give messages in order from any position, and take answers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from bnpstream.sources.brokers.address import Address
from bnpstream.sources.protocol import JSON, LostError

__all__ = ["Answer", "Bounds", "Broker", "DownError", "Message", "Outlet", "driver"]


class DownError(LostError):
    """A broker does not answer: it may do so later."""


class Message(NamedTuple):
    """A message, and where it is."""

    lane: int
    """Which of the ordered parts of what is read: a partition; 0 where there is one."""
    offset: Any
    """Where in its lane; a JSON value that grows."""
    value: bytes | None
    key: str | None = None
    time: float | None = None
    """When it came, in seconds since 1970."""
    headers: Mapping[str, str] | None = None


class Bounds(NamedTuple):
    """What a lane has now."""

    before: Any
    """The offset before its first message."""
    last: Any
    """That of its last message; `before` if it has none."""


class Broker(ABC):
    """Messages of a topic, a stream or a table, in lanes that have an order.

    Where reading stands in a lane is the offset of the last message read there.

    Parameters
    ----------
    address : Address
        What is read, and where.

    Attributes
    ----------
    has_details : bool
        Whether somebody wants keys, times and headers of messages.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.has_details = False

    @abstractmethod
    def connect(self) -> None:
        """Reach the broker, again if it was lost; DownError if it does not answer."""

    @abstractmethod
    def bounds(self) -> list[Bounds]:
        """Return what every lane has now; LostError if what is read is not there."""

    @abstractmethod
    def seek(self, last: dict[int, JSON], until: dict[int, JSON] | None = None) -> None:
        """Read next what comes after `last` in these lanes, and in no other.

        With `until`, lanes end there, whether there is such a message or not.
        """

    @abstractmethod
    def read(self, n: int, seconds: float) -> list[Message] | None:
        """Return up to n messages that are there, or come before some seconds are over.

        None where all lanes have ended. DownError if the broker does not answer, LostError if it
        cannot give what comes next.
        """

    @abstractmethod
    def spot(self, lane: int, offset: Any) -> dict[str, JSON]:
        """Return where a message is, for people and as a key: its offset comes last."""

    def where(self, spot: dict[str, JSON]) -> tuple[int, JSON]:
        """Return the lane and the offset of a spot."""
        return spot.get("partition", 0), next(reversed(spot.values()))

    def is_after(self, offset: JSON, last: JSON) -> bool:
        """Return whether a message comes after another of its lane."""
        return bool(offset > last)

    def lineage(self, start: str) -> JSON:
        """Return what tells at the earliest or the latest message whether more is gone later."""
        return None

    def missing(self, lane: int, last: JSON, bounds: Bounds, lineage: JSON, n_read: int) -> str:
        """Return why reading cannot go on after `last` in a lane; "" if it can.

        Parameters
        ----------
        lane, last : int, JSON
            Where reading stood.
        bounds : Bounds
            What the lane has now.
        lineage : JSON
            What `lineage` said at the beginning.
        n_read : int
            Messages read since then, of all lanes.
        """
        if last < bounds.before:
            spot = self.spot(lane, last)
            return f"the next message after {_told(spot)} is gone: the first one left is later"
        if last > bounds.last:
            spot = self.spot(lane, last)
            return f"it ends before {_told(spot)}, which was read: it is a different one"
        return ""

    def unread(self, last: Sequence[JSON], lineage: JSON, n_read: int) -> list[int]:
        """Return how many messages every lane has after `last`; the rest as in `missing`."""
        bounds = self.bounds()
        at = [*last, *(lane.before for lane in bounds[len(last) :])]
        return [max(0, lane.last - offset) for lane, offset in zip(bounds, at, strict=False)]

    def commit(self, last: Sequence[JSON]) -> None:
        """Take note of how far reading is vouched for: others may look at it."""
        return

    @abstractmethod
    def close(self) -> None:
        """Let go of the broker."""


def _told(spot: dict[str, JSON]) -> str:
    return ", ".join(f"{name} {value}" for name, value in spot.items())


class Answer(NamedTuple):
    """What is said of a record."""

    key: str
    """The same whenever the record is answered, and of no other record."""
    line: bytes
    """A JSON object."""


class Outlet(ABC):
    """Takes answers."""

    def __init__(self, address: Address) -> None:
        self.address = address

    @abstractmethod
    def connect(self) -> None:
        """Reach the broker, again if it was lost; DownError if it does not answer."""

    @abstractmethod
    def send(self, answers: Sequence[Answer]) -> None:
        """Give answers to the broker; they are there when this returns.

        After a DownError all of them are sent again.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the broker."""


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
    """Return the module for an address; ImportError says what to install."""
    module, package = _DRIVERS[address.scheme]
    try:
        import_module(package)
    except ImportError as error:
        extra = EXTRAS.get(address.scheme, address.scheme)
        raise ImportError(
            f"{address}: the package {package} is missing: pip install 'bnpstream[{extra}]'"
        ) from error
    found: Any = import_module(f"bnpstream.sources.brokers.{module}")
    return found  # type: ignore[no-any-return]
