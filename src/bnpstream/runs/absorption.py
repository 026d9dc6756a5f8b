"""Giving records to a model that may refuse some of them."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from bnpstream.likelihoods.errors import RowError
from bnpstream.sources import Records, Reject

T = TypeVar("T")


def sound_parts(
    records: Records, use: Callable[[Records], T], name: str = ""
) -> Iterator[tuple[Records, T | None, Reject | None]]:
    """Use records; where some are refused, halve until the bad ones are alone.

    Parameters
    ----------
    records : Records
        Those that were rejected before are left out.
    use : callable
        Raises ValueError, and does nothing, if a record is refused.
    name : str
        What rows that are of no source are from.

    Yields
    ------
    part, found, refused : Records, T or None, Reject or None
        Records in order, as soon as they are used, and what came of it; or one that is refused.
    """
    if len(records) == 0:
        return
    try:
        found = use(records)
    except ValueError as error:
        if len(records) == 1:
            reason = error.reason if isinstance(error, RowError) else str(error)
            yield records, None, records.refused(reason, name)
            return
    else:
        yield records, found, None
        return
    middle = len(records) // 2
    for half in (slice(None, middle), slice(middle, None)):
        yield from sound_parts(records.part(half), use, name)
