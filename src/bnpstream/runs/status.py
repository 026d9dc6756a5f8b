"""How a source is fed, where that stands, and what is answered."""

from dataclasses import dataclass
from typing import NamedTuple

from bnpstream.runs.mixture import Mixture
from bnpstream.runs.sharing import Partitions
from bnpstream.sources import Records


@dataclass(frozen=True)
class Pace:
    """How a source is fed.

    Parameters
    ----------
    batch_rows : int
        Records of a batch.
    checkpoint_rows : int or None
        Rows between checkpoints.
    checkpoint_seconds : float
        Time between checkpoints; longer where they take long.
    max_rejects : int or None
        Records that may be unusable; None for any number.
    """

    batch_rows: int = 1024
    checkpoint_rows: int | None = None
    checkpoint_seconds: float = 10.0
    max_rejects: int | None = None


class Status(NamedTuple):
    """Where a job stands."""

    rows: int
    records: int
    rejects: int
    clusters: int
    evidence_per_row: float
    """Moving mean."""
    seconds: float
    """Since this process began."""
    rows_per_second: float
    """Of this process."""
    fraction: float | None
    """Of the source that has been read, if its length is known."""
    stage: str
    """"prefix", "reading", "stopping" or "finishing"."""
    partitions: Partitions | None = None
    """Of a run that is shared out to workers."""


class Answer(NamedTuple):
    """What becomes of the rows of a batch as they arrive."""

    records: Records
    model: Mixture
    provisional: bool
