"""Keeps a posterior within a budget: the least costly clusters go, by the model's own odds.

If the budget is used up before a row, some of the lightest clusters go. Merging i into j costs
the negative log odds of one cluster against two,

    - (log m(i+j) - log m(i) - log m(j) + prior),

and retiring i costs the log odds that a second copy of its rows would be assigned to i instead of
opening a cluster, which are the odds of merging i with itself. A small cluster near another is
merged; an outlier far from everything is retired. The decision depends only on the posterior, so
neither calls nor engines matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bnpstream.inference.merge import join_into
from bnpstream.inference.odds import Odds, pool_of
from bnpstream.inference.retirement import retire
from bnpstream.kernels.arrays import NO_LIMIT
from bnpstream.kernels.statistics.table import SLOT
from bnpstream.mixture import Event, MixtureState, Model, SiteBuffer

SHARE_FREED = 16
"""One in this many clusters goes at a time, so that the search is worth it."""
LOOKED_AT = 2
"""Lightest clusters examined for each one that goes."""
ENTRY_BYTES, SPARE, FIXED_BYTES = 12, 1.25, 12_000
"""A value and its key in a hashed table, which grows to 1.25 times what its rows need; and the size
of the other arrays before the first row."""
LEAST_ENTRIES = 4 * SLOT


@dataclass(frozen=True)
class Budget:
    """Limits of a posterior.

    Parameters
    ----------
    max_clusters : int, optional
        Most clusters, at least two.
    max_memory : int, optional
        Most bytes of `MixtureState.nbytes`.
    """

    max_clusters: int | None = None
    max_memory: int | None = None

    def most_clusters(self, state: MixtureState) -> int:
        """Return the number of clusters at which some must go."""
        most = NO_LIMIT if self.max_clusters is None else self.max_clusters
        if self.max_memory is None or state.is_hashed:
            return most
        return min(most, state.capacity_within(self.max_memory) - 2)

    def most_entries(self, state: MixtureState) -> int:
        """Return the number of hashed entries at which clusters must go (see `n_entries`)."""
        if self.max_memory is None or not state.is_hashed:
            return NO_LIMIT
        return int((self.max_memory - FIXED_BYTES) / (ENTRY_BYTES * SPARE))

    def is_used_up(self, state: MixtureState) -> bool:
        """Return whether clusters must go before another row."""
        if state.n_clusters >= self.most_clusters(state):
            return True
        most = self.most_entries(state)
        return most < NO_LIMIT and state.n_entries > most

    def check(self, state: MixtureState) -> None:
        """Raise ValueError if the budget does not even allow two clusters."""
        too_little = self.most_clusters(state) < 2 or self.most_entries(state) < LEAST_ENTRIES
        if self.max_memory is not None and too_little:
            raise ValueError(
                f"max_memory is {self.max_memory:,} bytes, but with {state.n_statistics:,} "
                f"statistics per row an empty posterior already takes {state.nbytes:,} bytes: "
                "allow more, or use fewer columns"
            )


NO_BUDGET = Budget()


def keep_within(
    budget: Budget, model: Model, state: MixtureState, sites: Sequence[SiteBuffer]
) -> list[Event]:
    """Make space for new clusters if the budget is used up.

    Parameters
    ----------
    budget : Budget
        Limits of the posterior.
    model, state
        The posterior; changed in place.
    sites : sequence of SiteBuffer
        What rows contributed; they follow the clusters.

    Returns
    -------
    events : list of Event
        Merges and retirements, in order.
    """
    events: list[Event] = []
    if budget == NO_BUDGET:
        return events
    while state.n_clusters > 1 and budget.is_used_up(state):  # a single one stays
        events += _make_room(model, state, sites)
        state.compact()
    return events


def _make_room(model: Model, state: MixtureState, sites: Sequence[SiteBuffer]) -> list[Event]:
    """Remove one cluster in sixteen, at least one: the least costly of the lightest."""
    n_freed = max(1, state.n_clusters // SHARE_FREED)
    n_looked_at = min(LOOKED_AT * n_freed, state.n_clusters)
    odds = Odds(model, state, pool_of(model, state))
    light = np.lexsort([state.ids, state.masses])[:n_looked_at]
    found = []
    joined = odds.table(light, np.arange(state.n_clusters))
    for i, row in zip(light.tolist(), joined, strict=True):
        retiring, row[i] = float(row[i]), -np.inf
        best = int(np.argmax(row))
        merging = -float(row[best])
        into = int(state.ids[best]) if merging <= retiring else None
        found.append((min(retiring, merging), int(state.ids[i]), into))
    events: list[Event] = []
    gone: set[int] = set()
    grown: set[int | None] = set()
    for _, id, into in sorted(found, key=lambda choice: choice[:2]):
        if len(events) == n_freed:
            break
        # A cluster may absorb several; one that has, or whose partner is gone, stays this time.
        if id not in grown and into not in gone:
            gone.add(id)
            if into is None:
                slot = int(np.flatnonzero(state.ids == id)[0])
                events.append(retire(state, sites, slot))
            else:
                grown.add(into)
                events.append(join_into(state, sites, into, id))
    return events
