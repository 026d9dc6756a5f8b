"""How far a stream on a cluster has come, and what became of it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bnpstream.distributed.driving import Costs
from bnpstream.distributed.partitions import Inside
from bnpstream.engine import Stream
from bnpstream.sources import Reject, Schema


class Reached(NamedTuple):
    """How far a stream has come: with the model, all that is needed to go on from there."""

    partitions: int = 0
    """Partitions behind it: in the posterior or in rejects, and nothing else, but for `inside`."""
    records: int = 0
    """Records behind it, rejected ones included."""
    schema: Schema | None = None
    """What the records of its files are."""
    inside: Inside | None = None
    """Where in the next partition it stands; None: at its beginning."""


class Applied(NamedTuple):
    """A partition that has just been applied, or, at the head of a stream, some of it."""

    partition: int
    name: str
    model: Any
    """With the posterior; an estimator is the same object every time, changed by the next step."""
    stream: Stream
    """The posterior."""
    reached: Reached
    n_rows: int
    """Rows of it that went into the posterior."""
    rejects: tuple[Reject, ...]
    """Records of it that could not be used; `record` counts from the start of the stream."""
    unread: bool
    """It could not be read: nothing of it is in the posterior."""
    costs: Costs
    """Of the run so far."""


@dataclass
class StreamResult:
    """What became of a stream.

    Parameters
    ----------
    model : StreamingMixture or DocumentMixture
        The fitted model.
    reached : Reached
        Partitions and records behind it.
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
    """The cluster failed; the posterior of the last partition applied is there.

    Attributes
    ----------
    reason : str
        What failed.
    model : StreamingMixture or DocumentMixture
        That posterior.
    reached : Reached
        What is in it: ``fit_stream(..., start=error.reached)`` goes on from there.
    """

    def __init__(self, reason: str, model: Any, reached: Reached) -> None:
        others = "no others" if reached.inside is None else "the beginning of the next"
        super().__init__(
            f"{reason}: the first {reached.partitions} partitions are in the model, and {others}: "
            "go on from there with start=error.reached"
        )
        self.reason, self.model, self.reached = reason, model, reached
