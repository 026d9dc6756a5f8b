"""The history of clusters: births, merges, splits, deaths and retirements."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from msgspec import convert

from bnpstream.kernels.arrays import BIRTH, Events

Kind = Literal["birth", "merge", "death", "retire", "split"]
KINDS: tuple[Kind, ...] = ("birth", "merge", "death", "retire", "split")
"""Kinds, in the order of their numbers in files."""
Level = Literal["cluster", "topic"]
LEVELS: tuple[Level, ...] = ("cluster", "topic")


class Event(NamedTuple):
    """Something that happened to a cluster, or to a topic."""

    kind: Kind
    """"death": a revisit left it too light. "retire": forgotten, or removed to make space."""
    id: int
    """The cluster born, merged away, split, dropped or retired."""
    into: int | None
    """The survivor of a merge; for a split the main heir, which may be `id` itself."""
    n_observations: int
    """Rows seen when it happened."""
    mass: float
    """Mass of the cluster `id` then (after its first row, for a birth)."""
    others: tuple[int, ...] = ()
    """Further heirs of a split."""
    level: Level = "cluster"

    @property
    def parents(self) -> tuple[int, ...]:
        """Return the clusters that existed before and took part."""
        if self.kind == "birth":
            return ()
        joined = self.into if self.kind == "merge" else None
        return (self.id,) if joined is None else (self.id, joined)

    @property
    def children(self) -> tuple[int, ...]:
        """Return the clusters that came out of it."""
        if self.kind == "birth":
            return (self.id,)
        return () if self.into is None else (self.into, *self.others)

    def record(self) -> dict[str, Any]:
        """Return the event as JSON, without default values."""
        found = self._asdict()
        if not self.others:
            del found["others"]
        if self.level == "cluster":
            del found["level"]
        return found

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Event":
        """Return the event that `record` described; ValueError or TypeError if it is none."""
        return convert([*cls(**record)], cls)


def read_events(events: Events) -> list[Event]:
    """Return the events that a compiled loop logged."""
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

    After a split that is the main heir.

    Examples
    --------
    >>> from bnpstream.mixture.lineage import Event, survivor
    >>> log = [Event("merge", 3, 1, 500, 7.0), Event("merge", 1, 0, 900, 20.0)]
    >>> survivor(3, log), survivor(2, log)
    (0, 2)
    """
    found = survivors(id, (event._replace(others=()) for event in events))
    return found[0] if found else None


def survivors(id: int, events: Iterable[Event], level: Level = "cluster") -> list[int]:
    """Return all ids that cluster `id` lives on as, the main heir first; none if it is gone.

    Examples
    --------
    >>> from bnpstream.mixture.lineage import Event, survivors
    >>> log = [Event("split", 3, 3, 500, 70.0, others=(8,)), Event("merge", 8, 5, 900, 20.0)]
    >>> survivors(3, log), survivors(8, log)
    ([3, 5], [5])
    """
    living = [id]
    for event in events:
        if event.level == level and event.kind != "birth" and event.id in living:
            at = living.index(event.id)
            heirs = [] if event.into is None else [event.into, *event.others]
            living[at : at + 1] = heirs
            living = list(dict.fromkeys(living))
    return living
