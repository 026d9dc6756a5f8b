"""Giving things to the workers of a cluster so that none is lost with a worker."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask.base import is_dask_collection
from distributed import Client, Future
from scipy.sparse import issparse

from bnpstream.distributed.partitions import READ_ROWS, delayed_blocks, rows_of
from bnpstream.sources import open_source
from bnpstream.sources.stack import stacked


def large_tasks() -> Any:
    """Let tasks be large while inside: Dask warns of them, and advises to scatter."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})


def hand_over(client: Client, values: Iterable[Any]) -> list[Any]:
    """Give values to the cluster, a future each.

    They go as tasks of the graph. What is scattered instead is gone with the worker that holds it;
    the result of a task is made again.
    """
    with large_tasks():
        # In a partial, Dask does not look for futures among the items of a list.
        return [client.submit(partial(_given, value), pure=False) for value in values]


def _given(value: Any) -> Any:
    return value


def hold_blocks(client: Client, blocks: Any) -> list[Any]:
    """Return futures of blocks of rows, which are read or computed on the workers.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : iterable, or Dask bag, array or data frame
        Paths of files that the workers can open, delayed blocks, futures, or blocks of rows as an
        estimator takes them. One matrix is no list of blocks.
    """
    if isinstance(blocks, str | Path) or issparse(blocks) or _is_matrix(blocks):
        raise TypeError(
            f"blocks is one {type(blocks).__name__}: give a list of blocks of rows, such as [X], "
            "or of paths"
        )
    if hasattr(blocks, "to_delayed"):
        blocks = delayed_blocks(blocks)
    held = [_hold(client, block) for block in blocks]
    if not held:
        raise ValueError("blocks is empty: give at least one block of rows")
    return held


def _is_matrix(blocks: Any) -> bool:
    return isinstance(blocks, np.ndarray) and blocks.dtype != np.object_


def _hold(client: Client, block: Any) -> Any:
    """Return a future of one block."""
    if isinstance(block, Future):
        return client.submit(rows_of, block, pure=False)
    if isinstance(block, str | Path):
        return client.submit(read_rows, str(block), pure=False)
    if is_dask_collection(block):
        return client.submit(rows_of, client.compute(block), pure=False)
    return hand_over(client, [block])[0]


def read_rows(path: str) -> Any:
    """Return all rows of a file; one that has records which cannot be used is refused."""
    with open_source(path) as source:
        batches = [records for records, _ in source.batches(READ_ROWS)]
    for records in batches:
        for reject in records.rejects:
            raise ValueError(
                f"{reject.place}: {reject.reason}; every row counts here: "
                "correct or remove the record"
            )
    if not any(len(records) for records in batches):
        return np.empty((0, 0))
    return stacked([records.rows for records in batches if len(records) > 0])
