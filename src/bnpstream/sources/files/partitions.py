"""What files are cut into for workers that read them by themselves."""

from contextlib import suppress
from itertools import accumulate

from bnpstream.sources.files.position import Position
from bnpstream.sources.formats.arrow_columns import pyarrow
from bnpstream.sources.protocol import Partition

__all__ = ["file_partitions", "row_groups"]


def file_partitions(path: str, format: str) -> list[Partition]:
    """Return the row groups of a Parquet file; a file of another format is not cut."""
    if format == "parquet":
        with suppress(OSError, ValueError):  # whoever reads it says what is wrong with it
            return row_groups(path)
    return [Partition(path)]


def row_groups(path: str) -> list[Partition]:
    """Return the row groups of a Parquet file."""
    with pyarrow("pyarrow.parquet").ParquetFile(path) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    return [
        Partition(path, Position(first, 0, first, first)._asdict(), first, size)
        for first, size in zip(accumulate(sizes, initial=0), sizes, strict=False)
    ]
