"""Power-law clusters at length: strengths by evidence, and corpora of other words and lengths."""

from dataclasses import dataclass

from tank2015 import powerlaw_sizes, powerlaw_tuned
from tank2015.showing import Claim, Show
from tank2015.steps import Results, Step

TITLE = (
    "Figure 2 with every prior at its own strength and threshold, chosen by the one-step-ahead "
    "evidence of the stream in an order that is not used again; and how much depends on the number "
    "of words and the length of a document, which the paper does not give."
)
PARTS = (powerlaw_tuned, powerlaw_sizes)


@dataclass(frozen=True)
class Settings:
    """How much of everything."""

    scale: float
    n_orders: int
    n_marks: int
    exponents: tuple[float, ...]
    """Strengths to choose from, as powers of ten."""
    epsilons: tuple[float, ...]
    words: tuple[int, ...]
    lengths: tuple[int, ...]
    n_repeats: int
    """Orders of every corpus of other words and lengths."""
    n_sweeps: int
    """Sweeps that begin at the truth."""


FULL = Settings(
    scale=1.0,
    n_orders=6,
    n_marks=3,
    exponents=(1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.25, 3.5),
    epsilons=(0.05, 0.1, 0.25, 0.5, 0.75),
    words=(50, 200),
    lengths=(25, 50, 100),
    n_repeats=3,
    n_sweeps=30,
)
SMALL = Settings(0.03, 2, 2, (2.0, 3.0), (0.5, 0.75), (50, 100), (20, 50), 2, 3)


def steps(settings: Settings) -> list[Step]:
    """Return the steps of both parts."""
    return [step for part in PARTS for step in part.steps(settings)]


def report(found: Results, show: Show) -> list[Claim]:
    """Show both parts; return their claims."""
    return [claim for part in PARTS for claim in part.report(found, show)]
