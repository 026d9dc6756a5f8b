"""Independent work on the workers of a cluster.

Each function does the same as its namesake on one machine, with the same results to the last bit.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray

from bnpstream import search
from bnpstream.distributed.partitions import hand_over, hold_blocks
from bnpstream.estimators import GibbsMixture
from bnpstream.kernels.arrays import Floats
from bnpstream.search import GridResult, Point
from bnpstream.search.parallel import Mapper


def workers(client: Client) -> Mapper:
    """Return a mapper that works on a cluster; arguments shared by the items travel once."""

    def mapper(
        function: Callable[..., Any], items: Sequence[Any], *shared: Any
    ) -> Generator[Any, None, None]:
        held = hand_over(client, shared)
        tasks = client.map(_call, items, function=function, shared=held, pure=False)
        try:
            for task in tasks:
                yield task.result()
        finally:  # a consumer that stops wants no more results
            client.cancel(tasks)

    return mapper


def _call(item: Any, function: Callable[..., Any], shared: list[Any]) -> Any:
    return function(item, *shared)


def grid_search(
    client: Client, estimator: Any, X: Any, param_grid: Any = None, **options: Any
) -> GridResult:
    """Try parameters on the first rows of a stream, each on a worker: `search.grid_search`.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    estimator, X, param_grid, **options
        As in `search.grid_search`.
    """
    return search.grid_search(estimator, X, param_grid, mapper=workers(client), **options)


def replicate(
    client: Client, estimator: Any, X: Any, held_out: Any, seeds: Iterable[int]
) -> list[Point]:
    """Fit the same model several times, each time on a worker: `search.replicate`.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    estimator, X, held_out, seeds
        As in `search.replicate`.
    """
    return search.replicate(estimator, X, held_out, seeds, mapper=workers(client))


def fit_chains(client: Client, model: GibbsMixture, X: Any) -> GibbsMixture:
    """Fit a sampler like ``model.fit``, with each chain on a worker.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    model : GibbsMixture
        Fitted in place.
    X : array-like or sparse of shape (n_rows, n_columns)
        Rows.
    """
    return model.fit_by(X, workers(client))


def predict(client: Client, model: Any, blocks: Any) -> NDArray[np.intp]:
    """Return ``model.predict`` for the rows of all blocks, which the workers read.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    model : StreamingMixture
        Fitted.
    blocks : iterable, or Dask bag, array or data frame
        Blocks of rows, in order, as in `fit_ep`.
    """
    return _over_blocks(client, "predict", model, blocks)


def predict_proba(client: Client, model: Any, blocks: Any) -> Floats:
    """Return ``model.predict_proba`` for the rows of all blocks; parameters as in `predict`."""
    return _over_blocks(client, "predict_proba", model, blocks)


def score_samples(client: Client, model: Any, blocks: Any) -> Floats:
    """Return ``model.score_samples`` for the rows of all blocks; parameters as in `predict`."""
    return _over_blocks(client, "score_samples", model, blocks)


def _over_blocks(client: Client, method: str, model: Any, blocks: Any) -> NDArray[Any]:
    held = hold_blocks(client, blocks)
    fitted = hand_over(client, [model])[0]
    found = client.map(_ask, held, method=method, model=fitted, pure=False)
    return np.concatenate(client.gather(found))


def _ask(rows: Any, method: str, model: Any) -> NDArray[Any]:
    answer: NDArray[Any] = getattr(model, method)(rows)
    return answer
