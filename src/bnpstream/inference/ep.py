"""EP-NRM, Algorithm 2: sweeps over rows that can be revisited."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bnpstream.inference.response import Settings
from bnpstream.inference.visits import visit
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch
from bnpstream.mixture import Event, KernelArguments, MixtureState, Model, SiteBuffer
from bnpstream.mixture.sites import totals


class Epoch(NamedTuple):
    """Result of a sweep."""

    n_rows: int
    change: float
    """Mean over rows of half the summed change of their responsibilities: 0 at a fixed point."""
    log_predictive: float
    """Sum of the log predictives of each row given the others."""
    n_clusters: int
    drift: float
    """Largest difference between the totals and the sum of the sites before they are rebuilt; nan
    if some rows no longer have a site."""
    events: list[Event]

    def settled(self, tolerance: float) -> bool:
        """Return whether the change is within the tolerance, and no cluster was born or died."""
        return self.change <= tolerance and not self.events


def sweep(
    model: Model,
    state: MixtureState,
    batch: Batch,
    sites: SiteBuffer,
    settings: Settings,
    kernel: KernelArguments | None = None,
) -> Epoch:
    """Revisit every row once, replacing its site.

    Parameters
    ----------
    model, state, batch, settings, kernel
        As in `visit`.
    sites : SiteBuffer
        One site per row of the batch; changed in place.
    """
    new = SiteBuffer(len(batch))
    try:
        records = list(visit(model, state, batch, sites, new, settings, kernel))
    finally:  # after an interrupt, rows not reached keep their sites
        if new.n_visited < len(batch):
            new.extend(sites.part(new.n_visited))
        sites.replace(new)
    drift = np.nan
    # If there is nothing but the sites, the totals are their sum: this ends subtraction drift.
    if state.n_observations == len(batch):
        rebuilt = totals(sites, batch, state.n_clusters)
        drift = _largest_difference(state, *rebuilt)
        state.rebuild(*rebuilt)
    return Epoch(
        len(batch),
        sum(float(record.rows.change.sum()) for record in records) / len(batch),
        sum(float(record.rows.log_evidence.sum()) for record in records),
        state.n_clusters,
        drift,
        [event for record in records for event in record.events],
    )


Sweep = Callable[[Model, MixtureState, Batch, SiteBuffer, Settings, KernelArguments | None], Epoch]


def _largest_difference(
    state: MixtureState, statistics: Any, masses: Floats, log_vacancy: Floats
) -> float:
    """Return the largest difference between the totals of any cluster and these."""
    others = (masses - state.masses, log_vacancy - state.log_vacancy)
    differences = [float(np.abs(difference).max(initial=0.0)) for difference in others]
    return max(state.distance(statistics), *differences)


def run(
    model: Model,
    state: MixtureState,
    batch: Batch,
    sites: SiteBuffer,
    settings: Settings,
    kernel: KernelArguments | None = None,
    *,
    n_sweeps: int,
    tolerance: float = 0.0,
    sweep: Sweep = sweep,
) -> Iterator[Epoch]:
    """Sweep until responsibilities change by no more than `tolerance` on average.

    Parameters
    ----------
    model, state, batch, sites, settings, kernel
        As in `sweep`.
    n_sweeps : int
        Most sweeps.
    tolerance : float
        Stop after a sweep whose `change` is not larger and in which no cluster was born or died.
    sweep : callable
        Does one sweep; by default row by row.
    """
    for _ in range(n_sweeps):
        epoch = sweep(model, state, batch, sites, settings, kernel)
        yield epoch
        if epoch.settled(tolerance):
            return
