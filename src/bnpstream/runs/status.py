"""Where the feeding of a source stands."""

from typing import NamedTuple

from bnpstream.runs.sharing import Partitions


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
