"""Births, merges, deaths and retirements of clusters."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from bnpstream.kernels.arrays import BIRTH, Events

Kind = Literal["birth", "merge", "death", "retire"]
KINDS: tuple[Kind, ...] = ("birth", "merge", "death", "retire")
"""In the order in which they are written down as numbers."""


class Event(NamedTuple):
    """Something that happened to a cluster."""

    kind: Kind
    """"death": a revisit left it too light. "retire": it was forgotten, or made room for others."""
    id: int
    """The cluster born, merged away, dropped or retired."""
    into: int | None
    """The survivor of a merge."""
    n_observations: int
    """Rows seen when it happened."""
    mass: float
    """Mass of the cluster `id` then (after its first row, for a birth)."""


def read_events(events: Events) -> list[Event]:
    """Return what a compiled loop logged."""
    return [
        Event(
            "birth" if events.kinds[i] == BIRTH else "death",
            int(events.ids[i]),
            None,
            int(events.times[i]),
            float(events.masses[i]),
        )
        for i in range(int(events.filled[0]))
    ]


def survivor(id: int, events: Iterable[Event]) -> int | None:
    """Return the id that cluster `id` lives on as, or None if it died or was retired.

    Examples
    --------
    >>> from bnpstream.mixture.lineage import Event, survivor
    >>> log = [Event("merge", 3, 1, 500, 7.0), Event("merge", 1, 0, 900, 20.0)]
    >>> survivor(3, log), survivor(2, log)
    (0, 2)
    """
    for event in events:
        if event.id == id and event.kind == "merge":
            assert event.into is not None
            id = event.into
        elif event.id == id and event.kind in ("death", "retire"):
            return None
    return id
