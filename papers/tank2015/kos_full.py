"""KOS at length: pairs of DP and NIG over splits and orders, and chains that have more time."""

from dataclasses import dataclass

from tank2015 import kos_chains, kos_pairs
from tank2015.parts import KOS_SIZE
from tank2015.showing import Claim, Show
from tank2015.steps import Results, Step

TITLE = (
    "Table 1 with both priors on the same rows of several splits in several orders, at the "
    "threshold of the other runs and at a lower one; and how far Gibbs chains mix with annealed "
    "starts and with moves that split and merge clusters."
)
PARTS = (kos_pairs, kos_chains)


@dataclass(frozen=True)
class Settings:
    """How much of everything."""

    n_rows: int
    n_splits: int
    n_orders: int
    n_epochs: int
    sampled: tuple[str, ...]
    """Priors of the chains."""
    n_chains: int
    n_sweeps: int
    n_annealed: int
    n_kept: int
    n_moves: int


FULL = Settings(
    n_rows=KOS_SIZE,
    n_splits=10,
    n_orders=10,
    n_epochs=5,
    sampled=("dp", "nig"),
    n_chains=4,
    n_sweeps=215,
    n_annealed=250,
    n_kept=50,
    n_moves=3,
)
SMALL = Settings(
    n_rows=300,
    n_splits=2,
    n_orders=2,
    n_epochs=2,
    sampled=("dp",),
    n_chains=2,
    n_sweeps=6,
    n_annealed=6,
    n_kept=4,
    n_moves=1,
)


def steps(settings: Settings) -> list[Step]:
    """Return the steps of both parts."""
    return [step for part in PARTS for step in part.steps(settings)]


def report(found: Results, show: Show) -> list[Claim]:
    """Show both parts; return their claims."""
    return [claim for part in PARTS for claim in part.report(found, show)]
