"""Which features tell clusters apart: how clusters are described to people."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats

EXPECTED, OFTEN = 5.0, 5e-4
"""A word counts for lift if its cluster is expected to have at least so many of it, and if it is at
least so probable: rare words have the largest lifts and say the least."""
TOP_BLOCK = 64
"""Values in a block when the largest are looked for."""


class Feature(NamedTuple):
    """A word or column that tells a cluster from others."""

    name: str
    value: float
    """A word's probability in the cluster; a column's mean."""
    lift: float
    """A word's probability over that in the whole stream; for a column, by how many standard
    deviations of the cluster means its mean is above the stream's."""


class Described(NamedTuple):
    """What tells one cluster from the others."""

    likely: list[Feature]
    """Words with the largest value, largest first; columns in their order."""
    lifted: list[Feature]
    """Features with the largest lift among those that matter, largest first."""


class Portrayed(Protocol):
    """Clusters that are described: their means are read one at a time, as they are long."""

    @property
    def weights(self) -> Floats:
        """Return every cluster's share of the stream."""

    def mean(self, k: int) -> Floats:
        """Return the mean parameters of a cluster."""

    def statistic(self, k: int, column: int) -> float:
        """Return one of the summed statistics of a cluster; -1 is the last."""


class Features:
    """Describes clusters by how far their columns are from the stream's.

    Parameters
    ----------
    names : list of str
        What the entries of a mean are called.
    clusters : Portrayed
        Clusters.
    """

    def __init__(self, names: list[str], clusters: Portrayed) -> None:
        self._names, self._clusters = names, clusters
        self._overall = self._averaged(self._means())

    def _means(self) -> Iterator[Floats]:
        return (self._clusters.mean(k) for k in range(len(self._clusters.weights)))

    def _averaged(self, parts: Iterable[Floats]) -> Floats:
        """Return the mean over the stream of something that every cluster has."""
        weighted = (w * part for w, part in zip(self._clusters.weights, parts, strict=True))
        total: Floats = sum(weighted, np.zeros(1))
        return total

    @cached_property
    def _spread(self) -> Floats:
        """Return the standard deviation of the cluster means, 1 where they are all the same."""
        variance = self._averaged((mean - self._overall) ** 2 for mean in self._means())
        return np.where(variance > 0, np.sqrt(variance), 1.0)

    def of(self, k: int, n: int) -> Described:
        """Return the first n columns, and the n that are farthest from the stream's."""
        mean = self._clusters.mean(k)
        lift = (mean - self._overall) / self._spread
        return self._described(mean, lift, np.arange(mean.size)[:n], _top(np.abs(lift), n))

    def _described(
        self, mean: Floats, lift: Floats, likely: NDArray[np.intp], lifted: NDArray[np.intp]
    ) -> Described:
        return Described(
            *(
                [Feature(self._names[j], float(mean[j]), float(lift[j])) for j in chosen]
                for chosen in (likely, lifted)
            )
        )


class WordFeatures(Features):
    """Describes clusters by their words: the last of their statistics is how many they have."""

    def of(self, k: int, n: int) -> Described:
        """Return the n likeliest words, and the n that the cluster has most above the stream."""
        mean = self._clusters.mean(k)
        lift = mean / self._overall
        enough = (mean * self._clusters.statistic(k, -1) >= EXPECTED) & (mean >= OFTEN)
        often = np.flatnonzero(enough)
        if often.size > n:
            often = _top(np.where(enough, lift, -1.0), n)
        lifted = often[np.argsort(-lift[often], kind="stable")]
        return self._described(mean, lift, _top(mean, n), lifted)


def _top(values: Floats, n: int) -> NDArray[np.intp]:
    """Return where the n largest values are, largest first.

    The n largest maxima of blocks are n values, so what is below all of them is not looked at.
    Where the last place is shared, `argpartition` of all values says who gets it.
    """
    n = min(n, values.size)
    blocks = values[: values.size // TOP_BLOCK * TOP_BLOCK].reshape(-1, TOP_BLOCK)
    if 0 < n <= len(blocks):
        least = np.partition(blocks.max(axis=1), len(blocks) - n)[len(blocks) - n]
        found = np.flatnonzero(values >= least)
        found = found[np.argsort(-values[found], kind="stable")]
        if found.size == n or values[found[n - 1]] > values[found[n]]:
            return found[:n]
    found = np.sort(np.argpartition(-values, n - 1)[:n])
    return found[np.argsort(-values[found], kind="stable")]
