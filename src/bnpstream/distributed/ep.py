"""EP on the workers of a cluster: each worker sweeps its shards, the driver adds up."""

from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from sklearn.base import clone

from bnpstream.distributed.partitions import hand_over, hold_blocks
from bnpstream.distributed.worker import keep_freed_memory
from bnpstream.engine import Absorption, Labels, Stream
from bnpstream.engine.parallel.shards import (
    DAMPING,
    SparseStream,
    Swept,
    combine,
    renamed,
    sweep_shard,
)
from bnpstream.engine.prefix import n_rows
from bnpstream.estimators import StreamingMixture
from bnpstream.estimators.stream_estimator import OpenStream
from bnpstream.inference.merge import merge_all
from bnpstream.inference.visits import Absorbed, Responsibilities
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods import Batch
from bnpstream.likelihoods.frames import as_rows
from bnpstream.mixture import SiteBuffer
from bnpstream.mixture.window import Window

EPOCHS_ON_WORKERS = 5
"""Sweeps after which the driver takes a copy of the sites: what a lost worker held is recomputed
from there, and the scheduler keeps only the posteriors needed for this."""


def fit_ep(
    client: Client, shards: Any, model: StreamingMixture, *, damping: float = DAMPING
) -> StreamingMixture:
    """Fit a model by parallel EP: as ``model.fit``, with sweeps over shards in parallel.

    The first pass, ADF, goes through the shards in order, as on one machine, and learns unset
    parameters. Then each shard is swept against the posterior after the last sweep; the new
    posterior is the sum of what all shards contribute. The result depends on the shards, not on the
    number of workers, nor on whether one is lost. A single shard gives the result of
    ``model.fit``, bit for bit.

    Parameters
    ----------
    client : distributed.Client
        The cluster, see `connect`.
    shards : iterable, or Dask bag, array or data frame
        Blocks of rows, in order: paths of files that the workers can read, delayed blocks, futures,
        or rows as for ``model.fit``, which travel through the scheduler.
    model : StreamingMixture
        Its `n_passes`, two or more, and its `tol` limit the sweeps; fitted in place.
    damping : float
        Share of its old site that a row keeps in a sweep, in [0, 1), because shards that move at
        the same time overshoot less. Without effect for a single shard.

    Returns
    -------
    model : StreamingMixture
        Fitted.
    """
    _check(model, damping)
    rows = hold_blocks(client, shards)
    first: StreamingMixture = clone(model).set_params(keep_sites=True, n_passes=1)
    start = hand_over(client, [Start(first.open_stream(), [], [])])[0]
    for block in rows:
        start = client.submit(absorb, start, block, pure=False)
    opened, absorbed, sizes = client.submit(absorb, start, pure=False).result()
    del start
    stream = opened.stream
    passes = replace(stream.settings, keep_sites=model.keep_sites, n_passes=model.n_passes)
    stream.configure(passes)
    posterior = hand_over(client, [SparseStream.of(stream)])[0]
    batches = client.map(encode, rows, posterior=posterior, pure=False)
    del rows, posterior
    ends = np.cumsum([0, *sizes])
    run = _Sweeps(client, batches, ends, stream, damping if len(sizes) > 1 else 0.0)
    run.sweep_and_merge()
    model.take_stream(opened, run.labels(Absorbed.joined(absorbed)))
    return model


def _check(model: StreamingMixture, damping: float) -> None:
    if not isinstance(model, StreamingMixture):
        raise TypeError(f"fit_ep needs a StreamingMixture, got {model!r}")
    model.check_parameters()
    if model.n_passes < 2:
        raise ValueError(
            f"fit_ep needs n_passes >= 2, the first of which is ADF, got {model.n_passes}: give "
            "StreamingMixture(n_passes=20)"
        )
    unknown = {"half_life": None, "max_clusters": None, "max_memory": None}
    for name, value in (unknown | {"split_threshold": None, "staleness": 0}).items():
        if getattr(model, name) != value:
            raise ValueError(
                f"fit_ep does not support {name}, got {getattr(model, name)!r}: "
                "leave it out, or use fit"
            )
    if not 0.0 <= damping < 1.0:
        raise ValueError(f"damping must be in [0, 1), got {damping!r}")


class Start(NamedTuple):
    """The first pass, as far as it has come."""

    opened: OpenStream
    absorbed: list[Absorbed]
    """Results for rows when they were absorbed; rows of a prefix come late."""
    sizes: list[int]
    """Number of rows in each shard."""


def absorb(start: Start, rows: Any = None) -> Start:
    """Return the first pass after one more shard; without rows, at its end."""
    opened, sizes = deepcopy(start.opened), start.sizes
    if rows is None:
        found = opened.stream.finish()
    else:
        found = opened.absorb(rows)
        sizes = [*sizes, n_rows(rows)]
    absorbed = start.absorbed if found is None else [*start.absorbed, found.absorbed]
    return Start(opened, absorbed, sizes)


def encode(rows: Any, posterior: SparseStream) -> Batch:
    """Return rows encoded by the model as learnt."""
    return posterior.encoder.view(posterior.encoder.prepared(as_rows(rows)))


def sweep(
    batch: Batch, sites: Responsibilities, posterior: SparseStream, damping: float
) -> tuple[Responsibilities, Swept]:
    """Sweep a shard on a worker; keeping freed memory makes this a quarter faster."""
    keep_freed_memory()
    return sweep_shard(batch, sites, posterior, damping)


def rename_sites(
    outcome: tuple[Responsibilities, Swept], first: int, names: Integers
) -> Responsibilities:
    """Return the sites of a shard after a sweep, with the ids that all shards share."""
    sites = outcome[0]
    return sites._replace(ids=renamed(sites.ids, first, names))


def swept_of(outcome: tuple[Responsibilities, Swept]) -> Swept:
    """Return the part of an outcome that the driver needs."""
    return outcome[1]


def assigned(batch: Batch, posterior: SparseStream) -> tuple[NDArray[np.intp], Integers, Floats]:
    """Return position and id of the most likely cluster of each row, and its responsibility."""
    return posterior.posterior().assigned(batch)


class _Sweeps:
    """The sweeps over all shards: the driver has the posterior, the workers have rows and sites."""

    sites: list[Any]
    """Futures of the sites, one per shard."""

    def __init__(
        self,
        client: Client,
        batches: list[Any],
        ends: Integers,
        stream: Stream,
        damping: float,
    ) -> None:
        self.client, self.batches, self.ends = client, batches, ends
        self.stream, self.damping = stream, damping
        self._spread(stream.window.sites)

    def sweep_and_merge(self) -> None:
        """Sweep as `window.finish` does, and merge if the model says so."""
        stream, settings = self.stream, self.stream.settings
        schedule = settings.schedule(all_rows=True)
        assert schedule is not None
        last = settings.last_merges(schedule) if stream.likelihood.merges_when_done else None
        stream.epochs = []
        for plan in [schedule] if last is None else [schedule, last]:
            if plan is last:
                self._merge(plan.merge_threshold)
            for _ in range(plan.n_revisits):
                if self._sweep().settled(plan.tolerance):
                    break
            self._merge(plan.merge_threshold)
        stream.window = Window(keep_rows=False)
        if settings.keep_sites:
            stream.window.sites = self._gathered()

    def _sweep(self) -> Any:
        """Sweep all shards once."""
        client, stream = self.client, self.stream
        posterior = hand_over(client, [SparseStream.of(stream)])[0]
        shared: Any = {"posterior": posterior, "damping": self.damping}
        outcomes = client.map(sweep, self.batches, self.sites, **shared, pure=False)
        sweeps = client.gather(client.map(swept_of, outcomes, pure=False))
        first = stream.state.next_id
        combined = combine(stream, sweeps)
        stream.resume(combined.state, stream.window, stream.lineage + combined.epoch.events)
        stream.epochs.append(combined.epoch)
        names = combined.names
        self.sites = client.map(rename_sites, outcomes, [first] * len(names), names, pure=False)
        if len(stream.epochs) % EPOCHS_ON_WORKERS == 0:
            self.sites = hand_over(client, client.gather(self.sites))
        return combined.epoch

    def _merge(self, threshold: float | None) -> None:
        """Merge clusters by the model's own odds, which needs all sites."""
        if threshold is None:
            return
        sites, stream = self._gathered(), self.stream
        stream.lineage += merge_all(stream.model, stream.state, sites, threshold)
        self._spread(sites)

    def _gathered(self) -> SiteBuffer:
        """Return the sites of all rows."""
        parts = self.client.gather(self.sites)
        return Responsibilities.joined(parts).sites(self.stream.state)

    def _spread(self, sites: SiteBuffer) -> None:
        """Give each shard its sites."""
        ends = zip(self.ends[:-1].tolist(), self.ends[1:].tolist(), strict=True)
        parts = [Responsibilities.of(self.stream.state, sites, *part) for part in ends]
        self.sites = hand_over(self.client, parts)

    def labels(self, absorbed: Absorbed) -> Labels:
        """Return the labels that `fit` gives: evidence on arrival, and clusters as of now."""
        posterior = hand_over(self.client, [SparseStream.of(self.stream)])[0]
        found = self.client.map(assigned, self.batches, posterior=posterior, pure=False)
        parts = zip(*self.client.gather(found), strict=True)
        positions, ids, shares = (np.concatenate(part) for part in parts)
        rows = absorbed.rows
        self.stream.last = Absorption(absorbed, np.arange(rows.ids.size), 0, rows.ids.size)
        return Labels(positions, ids, shares, rows.log_evidence, rows.novelty)
