"""Absorbing records of which a model may refuse some."""

from collections.abc import Iterator

from bnpstream.runs.model_options import Mixture
from bnpstream.sources import Records


def absorb_sound(model: Mixture, records: Records) -> Iterator[tuple[Records, ValueError | None]]:
    """Absorb rows; where the model refuses some, halve until the bad ones are alone.

    Any split of rows gives the same bits, so that the good ones do not notice.

    Yields
    ------
    part, refused : Records, ValueError or None
        Records in order, as soon as they are absorbed, or one that is refused, and why.
    """
    if len(records) == 0:
        return
    refused: ValueError | None = None
    try:
        model.partial_fit(records.rows, timestamps=records.times or None)
    except ValueError as error:
        refused = error
    if refused is None or len(records) == 1:
        yield records, refused
        return
    middle = len(records) // 2
    for half in (slice(None, middle), slice(middle, None)):
        yield from absorb_sound(model, records.part(half))
