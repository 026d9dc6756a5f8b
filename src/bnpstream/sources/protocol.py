"""What a source of records has to give, be it files or a message broker."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

from bnpstream.sources.records import Options, Records, Schema

__all__ = ["JSON", "LostError", "Partition", "Source"]

JSON = Any
"""A value that JSON has: only the source that made it looks inside."""


class LostError(OSError):
    """The rest of a source cannot be had; what came of it so far is sound."""


class Partition(NamedTuple):
    """A part of a source that can be read where the others are not."""

    name: str
    """What `open_source` opens it by, on any machine."""
    start: JSON = None
    """The position before its first record; None: it begins where the source does."""
    first: int = 0
    """Number that its first record has there."""
    n_records: int | None = None
    """None: all from there on."""


class Source(ABC):
    """Records in an order that is the same every time, read from any position on.

    A position says how far the source has been read. It is a JSON value that is stored and handed
    back as it is. Records are numbered in their order, from 0 at the beginning of the source.

    Attributes
    ----------
    schema : Schema
        What the records are.
    options : Options
        What the user said.
    replayable : bool
        Whether all records can be had again from the beginning, as often as one likes.
    begins_anew : bool
        Whether the beginning may be another one every time, and is to be kept at once.
    """

    schema: Schema
    options: Options
    replayable: ClassVar[bool] = False
    begins_anew: ClassVar[bool] = False

    @abstractmethod
    def __str__(self) -> str:
        """Return what to call it in messages."""

    @abstractmethod
    def identity(self) -> dict[str, JSON]:
        """Return what tells this source from others, as it must be when a run goes on.

        "paths" are the names that `open_source` opens it by again.
        """

    def beginning(self) -> JSON:
        """Return the position before the first record."""
        return None

    @abstractmethod
    def check(self, position: JSON) -> None:
        """Raise ValueError if reading cannot go on from a position; it says what to do."""

    @abstractmethod
    def batches(self, batch_rows: int = 1024, start: JSON = None) -> Iterator[tuple[Records, JSON]]:
        """Yield batches of records in order, and the position after each.

        Parameters
        ----------
        batch_rows : int
            Records of a batch at most, rejected ones included.
        start : JSON
            A position that an earlier reading has seen; None stands for the beginning.
        """

    @abstractmethod
    def after(self, start: JSON, records: Records) -> JSON:
        """Return the position after records that came from `start` on.

        A batch may be cut between any two records (`Records.between`), and several may be joined.
        """

    def order(self, records: Records) -> JSON:
        """Return how a batch was put together, where another reading may do it another way.

        It is on disk before anybody is told what became of the batch. None: a position says it all.
        """
        return None

    def repeat(self, batches: list[tuple[JSON, JSON]]) -> None:
        """Begin the next reading with batches that were told of before.

        Parameters
        ----------
        batches : list of (JSON, JSON)
            What `order` said of each, and the position after it.
        """
        return

    def progress(self) -> float | None:
        """Return which part of the source has been read, or None if that is not known."""
        return None

    def lag(self, position: JSON) -> dict[str, int]:
        """Return how much is there after a position, by partition; empty if that is not known.

        Only sources that are followed tell: brokers count messages, files bytes.
        """
        return {}

    def committed(self, position: JSON) -> None:
        """Take note that nobody will ask again for what is before a position: it is on disk."""
        return

    def partitions(self) -> list[Partition] | None:
        """Return what workers may read by themselves, in order; None if it cannot be cut."""
        return None

    @abstractmethod
    def stop(self) -> None:
        """End `batches` soon, also where it waits for input; any thread may call this."""

    def close(self) -> None:
        """Let go of what is open; nothing is read afterwards."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
