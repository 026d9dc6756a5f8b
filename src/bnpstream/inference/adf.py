"""ADF-NRM, Algorithm 1: one pass over a stream."""

from collections.abc import Iterator

from bnpstream.inference.forgetting import Ticks
from bnpstream.inference.response import Response, Settings, respond
from bnpstream.inference.visits import Record, visit
from bnpstream.likelihoods import Batch
from bnpstream.mixture import KernelArguments, MixtureState, Model, SiteBuffer

__all__ = ["Record", "Response", "Settings", "init", "respond", "run"]

ENTRIES_PER_ROW = 64
"""Responsibilities per row that there is space for at first; unused space costs nothing."""


def init(model: Model, n_statistics: int) -> MixtureState:
    """Return the posterior of no rows."""
    return MixtureState(n_statistics, paired=model.likelihood.paired)


def run(
    model: Model,
    state: MixtureState,
    batch: Batch,
    settings: Settings,
    kernel: KernelArguments | None = None,
    ticks: Ticks | None = None,
) -> Iterator[Record]:
    """Absorb the rows of a batch in order, yielding a record now and then.

    Parameters
    ----------
    model, state, batch, settings, kernel
        As in `visit`; the contributions of the rows are not kept.
    ticks : Ticks, optional
        When earlier rows fade.
    """
    n = len(batch)
    old, new = SiteBuffer(n, 0), SiteBuffer(n, ENTRIES_PER_ROW * n + state.n_clusters + 1)
    visited = (model, state, batch, old, new, settings, kernel)
    if ticks is None:
        yield from visit(*visited, keep_sites=False)
        return
    records, row = visit(*visited, keep_sites=False, pauses=ticks.places), 0
    while row < n:
        retired = ticks.before(row, model, state, settings)
        record = next(records)
        yield record._replace(events=retired + record.events)
        row += len(record.rows.ids)
