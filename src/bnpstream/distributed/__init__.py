"""The same stream on the workers of a Dask cluster."""

from bnpstream.distributed.driving import Costs
from bnpstream.distributed.streaming import (
    Applied,
    Reached,
    StreamError,
    StreamResult,
    fit_stream,
    stream_partitions,
)

__all__ = [
    "Applied",
    "Costs",
    "Reached",
    "StreamError",
    "StreamResult",
    "fit_stream",
    "stream_partitions",
]
