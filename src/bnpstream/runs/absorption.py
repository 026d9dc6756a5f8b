"""Gives records to a model that may refuse some of them."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from bnpstream.likelihoods.errors import RowError
from bnpstream.sources import Records, Reject

T = TypeVar("T")


def sound_parts(
    records: Records, use: Callable[[Records], T], name: str = ""
) -> Iterator[tuple[Records, T | None, Reject | None]]:
    """Use records; if some are refused, halve the batch until the bad ones are alone.

    Parameters
    ----------
    records : Records
        Records, without those rejected before.
    use : callable
        Raises ValueError, and changes nothing, if it refuses a record.
    name : str
        Name of the source, for rows without a place.

    Yields
    ------
    part, found, refused : Records, T or None, Reject or None
        Records in order, as soon as they are used, with the result; or a refused record.
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
