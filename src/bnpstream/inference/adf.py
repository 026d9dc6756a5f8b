"""ADF-NRM, Algorithm 1: one pass over a stream."""

from collections.abc import Iterator

from bnpstream.inference.response import Response, Settings, respond
from bnpstream.inference.visits import Record, visit
from bnpstream.likelihoods import Batch
from bnpstream.mixture import KernelArguments, MixtureState, Model, SiteBuffer

__all__ = ["Record", "Response", "Settings", "init", "respond", "run"]


def init(model: Model, n_statistics: int) -> MixtureState:
    """Return the posterior of no rows."""
    return MixtureState(n_statistics, paired=model.likelihood.paired)


def run(
    model: Model,
    state: MixtureState,
    batch: Batch,
    settings: Settings,
    kernel: KernelArguments | None = None,
) -> Iterator[Record]:
    """Absorb every row of a batch in order, yielding a record now and then.

    Parameters
    ----------
    model, state, batch, settings, kernel
        As in `visit`; the rows' contributions are not kept.
    """
    n = len(batch)
    old, new = SiteBuffer(n), SiteBuffer(n + state.n_clusters)  # room for the first rows' sites
    return visit(model, state, batch, old, new, settings, kernel, keep_sites=False)
