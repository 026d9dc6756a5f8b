"""Partitions of a stream, reading them on workers, and surviving the loss of workers."""

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.base import is_dask_collection
from distributed import Client, Future
from scipy.sparse import issparse, vstack

from bnpstream.engine.prefix import n_rows
from bnpstream.sources import Options, Partition, Records, Schema, open_source
from bnpstream.sources.files.source import files_of, reader_class
from bnpstream.sources.protocol import JSON
from bnpstream.sources.stack import stacked

READ_ROWS = 4096
"""Records read at a time, and records in the head of a partition."""
PARQUET = (".parquet", ".pq")


class Inside(NamedTuple):
    """A place inside a partition."""

    records: int
    """Number of the next record there."""
    position: JSON = None
    """In the source's own terms, if the partition comes from a source."""


class Read(NamedTuple):
    """Records of a partition."""

    batches: list[Records]
    n_records: int
    """Including rejects."""
    schema: Schema | None
    after: Inside | None = None
    """Where the partition continues; None: these were the last."""


def list_partitions(client: Any, partitions: Any, name: str = "partitions") -> Iterator[Any]:
    """Yield the partitions of a stream: files, blocks, or what Dask computes.

    Parameters
    ----------
    client : distributed.Client
        Its workers look for files.
    partitions
        As in `fit_stream`.
    name : str
        Name in errors.
    """
    if isinstance(partitions, str | Path):
        yield from client.submit(find_files, str(partitions), pure=False).result()
        return
    if hasattr(partitions, "to_delayed"):
        partitions = delayed_blocks(partitions)
    elif issparse(partitions) or getattr(partitions, "dtype", np.dtype("O")).kind != "O":
        raise TypeError(
            f"{name} is a single matrix: give a list of blocks of rows, such as [X], or paths"
        )
    elif not isinstance(partitions, Iterable):
        raise TypeError(
            f"{name} is of type {type(partitions).__name__}: give a Dask collection, a path, or a "
            "list of paths or blocks of rows"
        )
    for part in partitions.ravel() if isinstance(partitions, np.ndarray) else partitions:
        yield Partition(str(part)) if isinstance(part, str | Path) else part


def delayed_blocks(collection: Any) -> Any:
    """Return the blocks of rows of a Dask bag, array or data frame."""
    blocks = np.asarray(collection.to_delayed(), dtype=object)
    if blocks.ndim > 1 and blocks[0].size > 1:
        raise ValueError(
            f"the array is divided into blocks of columns, {blocks.shape}: rechunk it so that "
            "blocks have whole rows, array.rechunk({1: -1})"
        )
    return blocks


def find_files(path: str) -> list[Partition]:
    """Return the files of a directory or pattern; for one Parquet file, its row groups."""
    if Path(path).is_dir():
        inside = sorted(p for p in Path(path).iterdir() if p.is_file() and p.name[0] not in "._")
        return [Partition(str(found)) for found in inside]
    paths = files_of(path)
    if len(paths) > 1 or not paths[0].endswith(PARQUET):
        return [Partition(found) for found in paths]
    return reader_class("parquet").partitions(paths[0])


def name_of(partition: Any, number: int) -> str:
    """Return the name of a partition in rejects."""
    return partition.name if isinstance(partition, Partition) else f"partition {number}"


def needs_dask(partition: Any) -> bool:
    """Return whether Dask must compute a partition first."""
    return bool(is_dask_collection(partition))


def read(
    partition: Any,
    options: Options | None,
    schema: Schema | None,
    start: Inside | None = None,
    *,
    head: bool = False,
) -> Read:
    """Return the records of a partition; errors are raised.

    Parameters
    ----------
    partition
        Item of `list_partitions`, computed.
    options, schema
        Options and schema of files.
    start : Inside, optional
        Where to start in the partition.
    head : bool
        Return only the first `READ_ROWS`.
    """
    if isinstance(partition, Partition):
        return _read_source(partition, options, schema, start, head=head)
    records = partition if isinstance(partition, Records) else _numbered_rows(rows_of(partition))
    first, n = 0 if start is None else start.records, records.end()
    if first > n:
        raise ValueError(f"{first} of its records were absorbed, but now it has {n}: not the same")
    stop = min(n, first + READ_ROWS) if head else n
    kept = records if stop - first == n else renumbered(records.between(first, stop), first)
    return Read([kept], stop - first, schema, Inside(stop) if stop < n else None)


def _numbered_rows(rows: Any) -> Records:
    numbers: list[Any] = list(range(n_rows(rows)))
    return Records(rows, numbers, numbers)


def rows_of(block: Any) -> Any:
    """Return rows in the form that estimators take, and that can be sliced by number.

    A partition of a bag is a list of rows.
    """
    if issparse(block):
        sparse: Any = block
        return sparse.tocsr()
    if hasattr(block, "reset_index"):  # slices could refer to an index of numbers
        return block.reset_index(drop=True)
    if hasattr(block, "shape"):
        return block
    rows = list(block)
    if rows and all(issparse(row) for row in rows):
        return vstack(rows, format="csr")
    return rows if rows and _is_document(rows[0]) else np.asarray(rows)


def _is_document(row: Any) -> bool:
    """Return whether a row consists of words, or of word counts."""
    return isinstance(row, dict) or (len(row) > 0 and isinstance(row[0], str))


def _read_source(
    part: Partition,
    options: Options | None,
    schema: Schema | None,
    start: Inside | None,
    *,
    head: bool,
) -> Read:
    first, begin = start or Inside(part.first, part.start)
    stop = sys.maxsize if part.n_records is None else part.first + part.n_records
    batches, end, after = [], first, None
    with open_source(part.name, options, schema) as source:
        for records, position in source.batches(READ_ROWS, begin):
            end = records.end(end)
            batches.append(renumbered(records if end <= stop else records.between(0, stop), first))
            if end >= stop:
                end = stop
                break
            if head and end - first >= READ_ROWS:
                after = Inside(end, position)
                break
        schema = source.schema
    return Read(batches, end - first, schema, after)


def renumbered(records: Records, first: int) -> Records:
    """Return records numbered from a given one."""
    if first == 0:
        return records
    ids = zip(records.ids, records.numbers, strict=True)
    return Records(
        records.rows,
        [number - first for number in records.numbers],
        # Records without an id have their number as id.
        [number - first if id == number else id for id, number in ids],
        records.excerpts,
        [reject._replace(record=reject.record - first) for reject in records.rejects],
        records.times,
        records.places,
    )


def large_tasks() -> Any:
    """Allow large tasks inside: Dask warns about them, and suggests to scatter."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})


def hand_over(client: Client, values: Iterable[Any]) -> list[Any]:
    """Send values to the cluster, one future each.

    They travel as tasks of the graph. Scattered values would be lost with the worker that holds
    them, but the result of a task is recomputed.
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
    blocks
        The rows, divided as for `fit_stream`; or futures.
    """
    held = [_hold(client, block) for block in list_partitions(client, blocks, "blocks")]
    if not held:
        raise ValueError("blocks is empty: give at least one block of rows")
    return held


def _hold(client: Client, block: Any) -> Any:
    """Return a future of one block."""
    if isinstance(block, Partition):
        return client.submit(read_rows, block, pure=False)
    if needs_dask(block):
        block = client.compute(block)
    if isinstance(block, Future):
        return client.submit(rows_of, block, pure=False)
    return hand_over(client, [block])[0]


def read_rows(partition: Partition) -> Any:
    """Return all rows of files; ValueError names an invalid record."""
    batches = read(partition, None, None).batches
    for reject in (reject for records in batches for reject in records.rejects):
        raise ValueError(
            f"{reject.place}: {reject.reason}; every row counts here: correct or remove the record"
        )
    rows = [records.rows for records in batches if len(records) > 0]
    return stacked(rows) if rows else np.empty((0, 0))
