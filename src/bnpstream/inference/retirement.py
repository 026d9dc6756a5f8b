"""Retires clusters that are forgotten, or that make space for others."""

from collections.abc import Iterable

from bnpstream.mixture import Event, MixtureState, SiteBuffer


def retire(state: MixtureState, sites: Iterable[SiteBuffer], slot: int) -> Event:
    """Remove a cluster and what rows contributed to it; the last cluster takes its slot."""
    event = Event(
        "retire", int(state.ids[slot]), None, state.n_observations, float(state.masses[slot])
    )
    moved = state.drop(slot)
    for buffer in sites:
        buffer.relabel(slot, moved)
    return event
