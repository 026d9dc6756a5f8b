"""Retiring clusters: forgotten ones, and those that make room for others."""

from collections.abc import Iterable

from bnpstream.mixture import Event, MixtureState, SiteBuffer


def retire(state: MixtureState, sites: Iterable[SiteBuffer], slot: int) -> Event:
    """Drop a cluster and what rows contributed to it; the last one takes its slot."""
    event = Event(
        "retire", int(state.ids[slot]), None, state.n_observations, float(state.masses[slot])
    )
    moved = state.drop(slot)
    for buffer in sites:
        buffer.relabel(slot, moved)
    return event
