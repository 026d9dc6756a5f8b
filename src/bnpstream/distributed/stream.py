"""`fit_stream`: one pass over a stream by many workers, with bounded staleness.

The driver hands out partitions to workers, and applies the results in order; see
`bnpstream.engine.parallel` for details. A long partition at the head of a stream is divided, so
that others only wait for its beginning. With a staleness of 0 everything is absorbed undivided,
one partition after the other, and the bits are those of `partial_fit`.
"""

from collections.abc import Generator
from typing import Any

from bnpstream.distributed.driver import Driver, Model
from bnpstream.distributed.results import Applied, Reached, StreamResult
from bnpstream.estimators.stream_estimator import StreamEstimator
from bnpstream.runs.journal import Journal
from bnpstream.sources import Options


def fit_stream(
    client: Any,
    partitions: Any,
    model: StreamEstimator,
    *,
    staleness: int = 1,
    settle_every: int | None = None,
    start: Reached | None = None,
    source_options: Options | None = None,
) -> StreamResult:
    """Absorb a stream by the workers of a Dask cluster, and `finish`.

    Parameters
    ----------
    client : distributed.Client
        Each worker handles one partition at a time: give it one thread.
    partitions
        The partitions of the stream, in order: a Dask bag, data frame or array; the path of a
        directory, a pattern of files, or a Parquet file, which is divided into its row groups; or
        any iterable of paths that `bnpstream.sources.open_source` reads, of
        `dask.delayed` blocks, or of blocks of rows. The workers read them.
    model : StreamingMixture or DocumentMixture
        Fitted or not; changed in place, as by `partial_fit`. Attributes that describe the rows of
        the last call, such as ``labels_``, are not available.
    staleness : int
        s: a partition may start from a posterior that lacks the s partitions before it, so that
        s + 1 are processed in parallel. 0 gives the bits of `partial_fit`, whatever the settings of
        the model; more than 0 needs a plain pass: no revisits, merges by shared rows, or
        half-life. A budget of clusters or memory is enforced after each partition.
    settle_every : int, optional
        Partitions after which the next one waits for all before it. A run that is stopped there
        and resumed ends with the same bits as an uninterrupted one.
    start : Reached, optional
        Where an earlier run of this model ended: partitions up to there are skipped.
    source_options : Options, optional
        Options of the source, for files.

    Returns
    -------
    result : StreamResult
        The model, rejects, and costs.
    """
    result = StreamResult(model, start or Reached())
    for applied in stream_partitions(
        client,
        partitions,
        model,
        staleness=staleness,
        settle_every=settle_every,
        start=start,
        source_options=source_options,
    ):
        result.reached, result.costs = applied.reached, applied.costs
        result.n_rows += applied.n_rows
        result.rejects += applied.rejects
        if applied.unread:
            result.unread.append(applied.name)
    if result.n_rows > 0:
        model.finish()
    return result


def stream_partitions(
    client: Any,
    partitions: Any,
    model: Model,
    *,
    staleness: int = 1,
    settle_every: int | None = None,
    start: Reached | None = None,
    source_options: Options | None = None,
    journal: Journal | None = None,
) -> Generator[Applied]:
    """Absorb a stream by the workers of a Dask cluster, yielding after each partition.

    At the head of a stream, with a staleness above 0, also inside long ones (`Reached.inside`).

    Parameters
    ----------
    client, partitions, model
        As in `fit_stream`; the stream is not finished.
    staleness, settle_every, start, source_options
        As in `fit_stream`.
    journal : Journal, optional
        Journal for the rows of files, as with a single process; changed in place.

    Yields
    ------
    applied : Applied
        In the order of partitions, each row once.
    """
    run = Driver(client, model, staleness, settle_every, start, source_options, journal)
    try:
        yield from run.over(partitions)
    finally:
        run.close()
