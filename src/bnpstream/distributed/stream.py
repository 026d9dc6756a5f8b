"""`fit_stream`: one pass over a stream by many workers, with bounded staleness.

Partition p starts from the posterior after partition p - 1 - s, s being the staleness, and what
partitions changed is applied in their order. So the result depends on the partitions and on s, and
neither on how many workers there are nor on which of them is faster.

The head of a stream is absorbed with no staleness: until the first rows have decided on what is
learnt from them. A long partition is cut there, so that others wait for its beginning only. With
s = 0 everything is absorbed so, uncut, and the bits are those of `partial_fit`.
"""

from collections.abc import Generator
from typing import Any

from bnpstream.distributed.driver import Applied, Reached, Run, StreamResult
from bnpstream.distributed.messages import Model, opened
from bnpstream.distributed.worker import is_plain
from bnpstream.engine import require_whole
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
        Workers are used one partition at a time each: give them one thread.
    partitions
        What the stream is cut into, in order: a Dask bag, data frame or array; a path, of a
        directory, of files by a pattern, or of a Parquet file, whose row groups they are then; or
        anything that gives one after the other paths that `bnpstream.sources.open_source` reads,
        `dask.delayed` blocks, or blocks of rows. They are read by the workers.
    model : StreamingMixture or DocumentMixture
        Fitted or not; changed in place, as by `partial_fit`. What describes the rows of the last
        call, such as ``labels_``, is not there.
    staleness : int
        s: a partition may start from a posterior that lacks the s partitions before it, so that
        s + 1 are worked on at a time. 0 gives the bits of `partial_fit`, whatever the settings of
        the model; more than 0 needs a plain pass: no rows that are revisited, merges by shared
        rows, or half-life. A budget of clusters or memory is kept after every partition.
    settle_every : int, optional
        Partitions after which the next one waits for all before it. A run that was stopped there
        and is started again ends with the same bits as one that was not.
    start : Reached, optional
        Where an earlier run of this model came to: partitions up to there are left out.
    source_options : Options, optional
        What is known about files.

    Returns
    -------
    result : StreamResult
        The model, what was rejected, and what it cost.
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
    """Absorb a stream by the workers of a Dask cluster, yielding after every partition.

    At the head of a stream, with a staleness above 0, also inside long ones (`Reached.inside`).

    Parameters
    ----------
    client, partitions, model, staleness, settle_every, start, source_options
        As in `fit_stream`; the stream is not finished.
    journal : Journal, optional
        Where the rows of files are noted, as one process would; changed in place.

    Yields
    ------
    applied : Applied
        In the order of partitions, every row once.
    """
    require_whole("staleness", staleness, 0)
    if settle_every is not None:
        require_whole("settle_every", settle_every, 1)
    check_supported(model, staleness)
    start = start or Reached()
    run = Run(client, model, start, staleness, settle_every, source_options, journal)
    try:
        yield from run.over(partitions)
    finally:
        run.close()


def check_supported(model: Model, staleness: int) -> None:
    """Raise ValueError if a model cannot start from older posteriors."""
    stream = opened(model).stream
    if staleness == 0 or is_plain(stream):
        return
    settings = {
        name: value
        for name in ("revisit", "keep_sites", "merge_threshold", "half_life")
        if (value := getattr(stream.settings, name)) not in (None, 0, "auto")
    }
    what = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    raise ValueError(
        f"staleness={staleness} needs a StreamingMixture that passes over its rows once, and this "
        f"is a {type(model).__name__} with {what or 'a vocabulary that grows'}: "
        "give staleness=0, which goes with everything"
    )
