"""The KOS corpus: ADF, EP and Gibbs with DP and NIG, and what this package adds."""

from dataclasses import dataclass

from tank2015 import kos_claims, kos_exhibits
from tank2015.kos_runs import PRIORS, extend, sample, smooth, stream, tune
from tank2015.parts import KOS_SIZE
from tank2015.showing import Claim, Show
from tank2015.steps import Results, Step, each

TITLE = (
    "Table 1, Figure 3, and Figures 1 and 2 of the supplement: 3 430 blog posts, a fifth held out, "
    "alpha .1, DP with a = 100, NIG with a = 10 and tau = 100. The paper's split is not published; "
    "the table uses a random split, and a second table shows how much the split matters."
)


@dataclass(frozen=True)
class Settings:
    """How much of everything."""

    n_rows: int
    n_orders: int
    n_long_orders: int
    """Of ten passes with a learnt base measure, which find many clusters."""
    n_chains: int
    n_splits: int
    n_epochs: int
    n_sweeps: int
    alphas: tuple[float, ...]


FULL = Settings(KOS_SIZE, 20, 5, 5, 10, 50, 215, (0.02, 0.05, 0.1, 0.2, 0.5))
SMALL = Settings(400, 2, 1, 1, 2, 4, 8, (0.05, 0.1))


def steps(settings: Settings) -> list[Step]:
    """Return the table's split in all orders first, then one order of every other split."""
    priors, n_rows = list(PRIORS), settings.n_rows
    orders, others = list(range(settings.n_orders)), list(range(1, settings.n_splits))
    epochs = {"n_epochs": settings.n_epochs, "n_rows": n_rows}
    sweeps = {"n_sweeps": settings.n_sweeps, "n_rows": n_rows}
    short = ["window", "learnt", "learnt, window"]
    long = list(range(settings.n_long_orders))
    return [
        *each(tune, prior=priors, n_rows=n_rows),
        *each(stream, prior=priors, split=0, order=orders, **epochs),
        *each(sample, prior=priors, split=0, chain=list(range(settings.n_chains)), **sweeps),
        *each(extend, method=short, prior=priors, split=0, order=orders, n_rows=n_rows),
        *each(extend, method="learnt, EP", prior=priors, split=0, order=long, n_rows=n_rows),
        *each(smooth, alpha=list(settings.alphas), order=orders[:5], n_rows=n_rows),
        *each(stream, prior=priors, split=others, order=0, **epochs),
        *each(sample, prior=priors, split=others, chain=0, **sweeps),
        *each(extend, method="learnt", prior=priors, split=others, order=0, n_rows=n_rows),
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Make the table, the curves and the comparison of splits."""
    kos_exhibits.draw(found, show)
    kos_exhibits.tabulate(found, show)
    return kos_claims.claims(found)
