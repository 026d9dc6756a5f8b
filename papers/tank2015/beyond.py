"""Beyond the paper: other priors, and what its choices cost."""

from dataclasses import dataclass

from tank2015 import (
    beyond_auxiliary,
    beyond_merges,
    beyond_printed,
    beyond_priors,
    beyond_thresholds,
    beyond_updates,
)
from tank2015.showing import Claim, Show
from tank2015.steps import Results, Step

TITLE = (
    "Beyond the paper: more priors than its two on the power-law and KOS streams, and every choice "
    "of its algorithm compared with the alternative. Log predictives are in nats per held-out "
    "document. Differences are between runs over the same documents in the same order."
)
PARTS = (
    beyond_priors,
    beyond_thresholds,
    beyond_merges,
    beyond_auxiliary,
    beyond_printed,
    beyond_updates,
)


@dataclass(frozen=True)
class Settings:
    """How much of everything."""

    scale: float
    """Share of both streams."""
    n_orders: int
    n_repeats: int
    """Orders for what takes longer."""
    n_marks: int
    epsilons: tuple[float, ...]
    merge_odds: tuple[float, ...]
    """Log odds that a merge must exceed, from conservative to even."""
    merge_scale: float
    """Share of the power law that is streamed with merges: they take their time."""
    n_partition: int
    """Rows of the longest partition that U is looked at with."""
    n_few: int
    """Sets of a few rows whose posterior is enumerated."""
    few_rows: int
    update_rows: int
    """Rows of the sets that q(theta) is updated exactly on."""


FULL = Settings(
    scale=1.0,
    n_orders=5,
    n_repeats=3,
    n_marks=7,
    epsilons=(0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.6, 0.75, 0.9),
    merge_odds=(20.0, 5.0, 0.0),
    merge_scale=0.15,
    n_partition=1000,
    n_few=40,
    few_rows=6,
    update_rows=200,
)
SMALL = Settings(
    scale=0.08,
    n_orders=2,
    n_repeats=2,
    n_marks=3,
    epsilons=(0.01, 0.5, 0.9),
    merge_odds=(20.0, 0.0),
    merge_scale=0.05,
    n_partition=100,
    n_few=5,
    few_rows=4,
    update_rows=25,
)


def steps(settings: Settings) -> list[Step]:
    """Return the steps of all parts."""
    return [step for part in PARTS for step in part.steps(settings)]


def report(found: Results, show: Show) -> list[Claim]:
    """Show all parts; return their claims."""
    return [claim for part in PARTS for claim in part.report(found, show)]
