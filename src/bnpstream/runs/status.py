"""The status of a job."""

from typing import NamedTuple

from bnpstream.runs.sharing import Partitions


class Status(NamedTuple):
    """The status of a job."""

    rows: int
    records: int
    rejects: int
    clusters: int
    evidence_per_row: float
    """Moving mean."""
    seconds: float
    """Since this process started."""
    rows_per_second: float
    """Of this process."""
    fraction: float | None
    """Fraction of the source that has been read, if its length is known."""
    stage: str
    """"prefix", "reading", "stopping" or "finishing"."""
    partitions: Partitions | None = None
    """Of a run that is divided between workers."""
