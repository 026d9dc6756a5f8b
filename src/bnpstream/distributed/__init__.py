"""The same work on the workers of a Dask cluster (needs the extra ``bnpstream[dask]``)."""

try:
    import distributed  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "bnpstream.distributed works through Dask, which is missing: pip install 'bnpstream[dask]'",
        name="distributed",
    ) from error

from bnpstream.distributed.clients import connect
from bnpstream.distributed.mapping import (
    fit_chains,
    grid_search,
    predict,
    predict_proba,
    replicate,
    score_samples,
)
from bnpstream.distributed.parallel_ep import fit_ep

__all__ = [
    "connect",
    "fit_chains",
    "fit_ep",
    "grid_search",
    "predict",
    "predict_proba",
    "replicate",
    "score_samples",
]
