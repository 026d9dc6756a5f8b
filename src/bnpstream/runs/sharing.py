"""How a run is shared out to workers: what its posterior depends on, beside model and source."""

from dataclasses import dataclass

from bnpstream._options import option

STALENESS = 1
ROUNDS = 8
"""Partitions of every worker that is kept busy, from one place where a run can be saved to the
next: there workers wait for the slowest of them."""
PART_ROWS = 8192
"""Records of a partition where the source is one file, which is read by the driver."""


@dataclass(frozen=True)
class Partitions:
    """How many partitions of a run are behind it: in the posterior or in rejects."""

    done: int = 0
    total: int | None = None
    """All of them, if that is known before the end."""

    def __post_init__(self) -> None:
        if self.done < 0:
            raise ValueError(f"there cannot be {self.done} partitions")


@dataclass(frozen=True)
class Sharing:
    """How a run is shared out.

    It is kept with the run, and stays the same to its end.
    """

    staleness: int
    """Partitions before it that the posterior a partition starts from may lack."""
    settle_every: int
    """Partitions after which the next one waits for all before it: the run can be saved there."""
    part_rows: int
    """Records of a partition where the source is one file."""


@dataclass(frozen=True)
class SharingOptions:
    """What a user says about the sharing out of a run."""

    staleness: int | None = option(
        "Preceding blocks (--jobs) or partitions (--dask) that a worker may start without.",
        "1",
        least=0,
    )

    def completed(self) -> Sharing:
        """Return all that has to be known.

        Examples
        --------
        >>> SharingOptions().completed()
        Sharing(staleness=1, settle_every=16, part_rows=8192)
        >>> SharingOptions(staleness=0).completed().settle_every
        1
        """
        staleness = STALENESS if self.staleness is None else self.staleness
        # Where nothing is stale, the run can be saved anywhere.
        settle_every = ROUNDS * (staleness + 1) if staleness > 0 else 1
        return Sharing(staleness, settle_every, PART_ROWS)
