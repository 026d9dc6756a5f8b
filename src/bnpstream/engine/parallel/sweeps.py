"""Sweeps of EP over blocks of rows in parallel, by threads that share memory."""

from functools import partial
from typing import TYPE_CHECKING, Any

from bnpstream.engine.parallel.rounds import to_the_end
from bnpstream.engine.parallel.shards import DAMPING, SparseStream, combine, renamed, sweep_shard
from bnpstream.inference import ep
from bnpstream.inference.response import Settings
from bnpstream.inference.visits import Responsibilities
from bnpstream.likelihoods import Batch
from bnpstream.mixture import MixtureState, Model, SiteBuffer
from bnpstream.mixture.threads import in_threads

if TYPE_CHECKING:
    from bnpstream.engine.stream import Stream


def sweep_shards(
    stream: "Stream",
    model: Model,
    state: MixtureState,
    batch: Batch,
    sites: SiteBuffer,
    settings: Settings,
    kernel: Any = None,
) -> ep.Epoch:
    """Revisit every row once: each block against the posterior before the sweep.

    The result depends on the rows per block, not on the threads. A single block is swept row by
    row. An interrupt is raised after the sweep.

    Parameters
    ----------
    stream : Stream
        Its settings give the rows per block, and the number of threads.
    model, state, batch, sites, settings, kernel
        As in `ep.sweep`; posterior and sites are those of the stream.
    """
    if len(batch) <= stream.settings.block_rows:
        return ep.sweep(model, state, batch, sites, settings, kernel)
    epoch, interrupt = to_the_end(partial(_sweep, stream, state, batch, sites))
    if interrupt is not None:
        stream.keep([epoch])
        raise interrupt
    return epoch


def _sweep(stream: "Stream", state: MixtureState, batch: Batch, sites: SiteBuffer) -> ep.Epoch:
    size, first = stream.settings.block_rows, state.next_id
    starts = range(0, len(batch), size)
    posterior = SparseStream.of(stream)
    found: list[Any] = [None] * len(starts)

    def sweep(start: int, stop: int) -> None:
        for shard in range(start, stop):
            rows = starts[shard], min(starts[shard] + size, len(batch))
            old = Responsibilities.of(state, sites, *rows)
            found[shard] = sweep_shard(batch.part(*rows), old, posterior, DAMPING)

    in_threads(sweep, len(starts), stream.settings.learn_threads)
    combined = combine(stream, [swept for _, swept in found])
    state.become(combined.state)
    new = [
        own._replace(ids=renamed(own.ids, first, names))
        for (own, _), names in zip(found, combined.names, strict=True)
    ]
    sites.replace(Responsibilities.joined(new).sites(state))
    return combined.epoch
