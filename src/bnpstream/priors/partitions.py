"""Set partitions, for exact sums over all of them."""

from collections.abc import Iterator


def set_partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Yield every partition of n things as labels in order of appearance.

    Examples
    --------
    >>> from bnpstream.priors.partitions import set_partitions
    >>> list(set_partitions(3))
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
    """
    if n == 0:
        yield ()
        return
    for labels in set_partitions(n - 1):
        for label in range(max(labels, default=-1) + 2):
            yield (*labels, label)
