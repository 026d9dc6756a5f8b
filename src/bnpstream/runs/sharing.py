"""How a run is divided between workers: all that its posterior depends on in this respect."""

from dataclasses import dataclass

from bnpstream._options import option

STALENESS = 1
ROUNDS = 8
"""Partitions per busy worker between two places where a run can be saved; at such a place
workers wait for the slowest."""
PART_ROWS = 8192
"""Records per partition if the source is one file, which the driver reads."""


@dataclass(frozen=True)
class Partitions:
    """Number of partitions done, in the posterior or as rejects."""

    done: int = 0
    total: int | None = None
    """Number of all partitions, if known."""

    def __post_init__(self) -> None:
        if self.done < 0:
            raise ValueError(f"the number of partitions cannot be {self.done}")


@dataclass(frozen=True)
class Sharing:
    """How a run is divided.

    It is saved with the run and stays the same to its end.
    """

    staleness: int
    """Preceding partitions that may be missing from the posterior a partition starts from."""
    settle_every: int
    """Partitions after which the next one waits for all before it, so that the run can be saved."""
    part_rows: int
    """Records per partition if the source is one file."""


@dataclass(frozen=True)
class SharingOptions:
    """Options about dividing a run."""

    staleness: int | None = option(
        "Number of preceding blocks (--jobs) or partitions (--dask) that a worker need not wait "
        "for.",
        "1",
        least=0,
    )

    def completed(self) -> Sharing:
        """Return it with all defaults filled in.

        Examples
        --------
        >>> SharingOptions().completed()
        Sharing(staleness=1, settle_every=16, part_rows=8192)
        >>> SharingOptions(staleness=0).completed().settle_every
        1
        """
        staleness = STALENESS if self.staleness is None else self.staleness
        # If nothing is stale, the run can be saved anywhere.
        settle_every = ROUNDS * (staleness + 1) if staleness > 0 else 1
        return Sharing(staleness, settle_every, PART_ROWS)
