"""Threads that share a range of rows; compiled loops release the interpreter's lock."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise


@cache
def _threads(n: int) -> ThreadPoolExecutor:
    """Return n threads, which are kept, because starting them costs more than a block of rows."""
    return ThreadPoolExecutor(n, thread_name_prefix="bnpstream")


def in_threads(work: Callable[[int, int], None], n: int, n_jobs: int) -> None:
    """Call work(start, stop) for parts of range(n), one in this thread and the others in their own.

    Parameters
    ----------
    work : callable
        Parts must not depend on each other.
    n : int
        Length of the range.
    n_jobs : int
        Number of parts.

    Examples
    --------
    >>> squares = [0] * 5
    >>> def square(start, stop):
    ...     squares[start:stop] = [i * i for i in range(start, stop)]
    >>> in_threads(square, 5, n_jobs=2)
    >>> squares
    [0, 1, 4, 9, 16]
    """
    jobs = max(1, min(n_jobs, n))
    ends = [n * part // jobs for part in range(jobs + 1)]
    others = [_threads(jobs).submit(work, *part) for part in pairwise(ends[1:])]
    try:
        work(ends[0], ends[1])
    finally:
        for job in others:
            job.result()
