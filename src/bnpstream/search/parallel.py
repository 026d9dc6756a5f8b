"""Run one function over many arguments in parallel."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from sklearn.utils.parallel import Parallel, delayed

Mapper = Callable[..., Generator[Any, None, None]]
"""``mapper(function, items, *shared)`` yields function(item, *shared) for each item, in order."""


def threads(n_jobs: int | None) -> Mapper:
    """Return a mapper that works in threads; compiled loops release the interpreter's lock.

    Parameters
    ----------
    n_jobs : int or None
        Items in parallel: -1 for all cores, None for one. ``joblib.parallel_config`` chooses
        processes.

    Examples
    --------
    >>> list(threads(2)(pow, [1, 2, 3], 2))
    [1, 4, 9]
    """

    def mapper(
        function: Callable[..., Any], items: Sequence[Any], *shared: Any
    ) -> Generator[Any, None, None]:
        jobs = (delayed(function)(item, *shared) for item in items)
        found: Generator[Any, None, None] = Parallel(
            n_jobs=n_jobs, prefer="threads", return_as="generator"
        )(jobs)
        return found

    return mapper
