"""The interface of a source of records, such as files or a message broker."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

from bnpstream.sources.records import Options, Records, Schema

JSON = Any
"""A JSON value that only the source that made it interprets."""


class LostError(OSError):
    """The rest of a source is lost; the records so far are sound."""


class Partition(NamedTuple):
    """A part of a source that can be read on its own."""

    name: str
    """Name by which `open_source` opens it on any machine."""
    start: JSON = None
    """The position before its first record; None: the beginning of the source."""
    first: int = 0
    """Number of its first record in that source."""
    n_records: int | None = None
    """None: all records from there on."""


class Source(ABC):
    """Records in a fixed order, read from any position on.

    A position says how far the source has been read. It is a JSON value that is stored and handed
    back unchanged. Records are numbered in order, from 0 at the beginning of the source.

    Attributes
    ----------
    schema : Schema
        Schema of the records.
    options : Options
        The user's options.
    replayable : bool
        Whether all records can be read again from the beginning, any number of times.
    begins_anew : bool
        Whether the beginning may differ each time, so that it must be saved at once.
    """

    schema: Schema
    options: Options
    replayable: ClassVar[bool] = False
    begins_anew: ClassVar[bool] = False

    @abstractmethod
    def __str__(self) -> str:
        """Return the name of the source for messages."""

    @abstractmethod
    def identity(self) -> dict[str, JSON]:
        """Return what identifies this source and must be the same when a run is resumed.

        "paths" are the names by which `open_source` opens it again.
        """

    def beginning(self) -> JSON:
        """Return the position before the first record."""
        return None

    @abstractmethod
    def check(self, position: JSON) -> None:
        """Raise ValueError, saying what to do, if reading cannot continue from a position."""

    @abstractmethod
    def batches(self, batch_rows: int = 1024, start: JSON = None) -> Iterator[tuple[Records, JSON]]:
        """Yield batches of records in order, each with the position after it.

        Parameters
        ----------
        batch_rows : int
            Most records in a batch, including rejects.
        start : JSON
            A position from an earlier reading; None stands for the beginning.
        """

    @abstractmethod
    def after(self, start: JSON, records: Records) -> JSON:
        """Return the position after records that came from `start` on.

        A batch may be split between any two records (`Records.between`), and several may be joined.
        """

    def order(self, records: Records) -> JSON:
        """Return how a batch was put together, if another reading may do so differently.

        It is saved before the batch is answered. None: the position determines it.
        """
        return None

    def repeat(self, batches: list[tuple[JSON, JSON]]) -> None:
        """Start the next reading with batches that have been answered before.

        Parameters
        ----------
        batches : list of (JSON, JSON)
            Result of `order` for each, and the position after it.
        """
        return

    def progress(self) -> float | None:
        """Return the fraction of the source that has been read, or None if unknown."""
        return None

    def lag(self, position: JSON) -> dict[str, int]:
        """Return how much follows a position, per partition; empty if unknown.

        Only followed sources have a lag: messages of a broker, bytes of a file.
        """
        return {}

    def committed(self, position: JSON) -> None:
        """Note that everything before a position is saved and will not be read again."""
        return

    def partitions(self) -> list[Partition] | None:
        """Return the parts that workers can read on their own, in order; None if there are none."""
        return None

    @abstractmethod
    def stop(self) -> None:
        """End `batches` soon, even while it waits for input; may be called from any thread."""

    def close(self) -> None:
        """Release everything open; nothing is read afterwards."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
