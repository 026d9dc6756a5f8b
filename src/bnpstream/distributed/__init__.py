"""The same work on the workers of a Dask cluster (needs the extra ``bnpstream[dask]``)."""

try:
    import distributed  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "bnpstream.distributed works through Dask, which is missing: pip install 'bnpstream[dask]'",
        name="distributed",
    ) from error

from bnpstream.distributed.book import Costs
from bnpstream.distributed.clients import connect
from bnpstream.distributed.ep import fit_ep
from bnpstream.distributed.maps import (
    fit_chains,
    grid_search,
    predict,
    predict_proba,
    replicate,
    score_samples,
)
from bnpstream.distributed.results import Applied, Reached, StreamError, StreamResult
from bnpstream.distributed.stream import fit_stream, stream_partitions

__all__ = [
    "Applied",
    "Costs",
    "Reached",
    "StreamError",
    "StreamResult",
    "connect",
    "fit_chains",
    "fit_ep",
    "fit_stream",
    "grid_search",
    "predict",
    "predict_proba",
    "replicate",
    "score_samples",
    "stream_partitions",
]
