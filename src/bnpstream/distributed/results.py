"""What a stream on a cluster gives: how far it has come, each partition, and errors."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bnpstream.distributed.book import Costs
from bnpstream.distributed.partitions import Inside
from bnpstream.engine import Stream
from bnpstream.sources import Reject, Schema


class Reached(NamedTuple):
    """How far a stream has come: with the model, all that is needed to continue from there."""

    partitions: int = 0
    """Partitions done, in the posterior or as rejects; `inside` may add a part of the next."""
    records: int = 0
    """Records done, including rejects."""
    schema: Schema | None = None
    """Schema of the records in its files."""
    inside: Inside | None = None
    """Position in the next partition; None: at its beginning."""


class Applied(NamedTuple):
    """A partition that has just been applied, or, at the head of a stream, a part of one."""

    partition: int
    name: str
    model: Any
    """With the posterior; an estimator is always the same object, changed by the next step."""
    stream: Stream
    """The posterior."""
    reached: Reached
    n_rows: int
    """Number of its rows added to the posterior."""
    rejects: tuple[Reject, ...]
    """Its invalid records; `record` counts from the start of the stream."""
    unread: bool
    """It could not be read; none of it is in the posterior."""
    costs: Costs
    """Costs of the run so far."""


@dataclass
class StreamResult:
    """Result of a stream.

    Parameters
    ----------
    model : StreamingMixture or DocumentMixture
        The fitted model.
    reached : Reached
        Partitions and records done.
    n_rows : int
        Rows absorbed.
    rejects : list of Reject
        Records and partitions that could not be used, in order.
    unread : list of str
        Names of the partitions that could not be read, or not to their end: see `rejects`.
    costs : Costs
        Bytes and seconds.
    """

    model: Any
    reached: Reached = field(default_factory=Reached)
    n_rows: int = 0
    rejects: list[Reject] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    costs: Costs = field(default_factory=Costs)


class StreamError(RuntimeError):
    """The cluster failed; the posterior of the last applied partition is available.

    Attributes
    ----------
    reason : str
        What failed.
    model : StreamingMixture or DocumentMixture
        That posterior.
    reached : Reached
        What it contains: ``fit_stream(..., start=error.reached)`` continues from there.
    """

    def __init__(self, reason: str, model: Any, reached: Reached) -> None:
        others = "no others" if reached.inside is None else "the beginning of the next"
        super().__init__(
            f"{reason}: the first {reached.partitions} partitions are in the model, and {others}: "
            "continue from there with start=error.reached"
        )
        self.reason, self.model, self.reached = reason, model, reached
