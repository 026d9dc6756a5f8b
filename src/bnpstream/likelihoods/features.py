"""Features that tell clusters apart, for describing them to people."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods.telling import Telling

NAMED_BY = 3
"""Features in a label."""
OTHER = "other"
"""Stands for all labels that the first rows did not have."""
TOP_BLOCK = 64
"""Values per block in the search for the largest."""


class Feature(NamedTuple):
    """A word or column that tells a cluster from others."""

    name: str
    value: float
    """A word's probability in the cluster; a column's mean."""
    lift: float
    """For a word, its probability divided by that in the whole stream; for a column, how far its
    mean is above the stream's, in standard deviations of the cluster means."""


class Described(NamedTuple):
    """The features of one cluster."""

    likely: list[Feature]
    """Words with the largest value, largest first; columns in their order."""
    lifted: list[Feature]
    """Distinctive words, most distinctive first (`telling_words`); columns with the largest lift,
    largest first."""


class Portrayed(Protocol):
    """Clusters to be described; their long means are read one at a time."""

    @property
    def weights(self) -> Floats:
        """Return the share of the stream in each cluster."""

    def mean(self, k: int) -> Floats:
        """Return the mean parameters of a cluster."""

    def telling(self, n: int) -> list[Telling]:
        """Return the n most distinctive words of each cluster."""


class Features:
    """Describes clusters by how far their columns are from the stream's.

    Parameters
    ----------
    names : list of str
        Names of the entries of a mean.
    clusters : Portrayed
        Clusters to describe.
    """

    def __init__(self, names: list[str], clusters: Portrayed) -> None:
        self._names, self._clusters = names, clusters
        self._overall = self._averaged(self._means())

    def _means(self) -> Iterator[Floats]:
        return (self._clusters.mean(k) for k in range(len(self._clusters.weights)))

    def _averaged(self, parts: Iterable[Floats]) -> Floats:
        """Return the mean over the stream of a quantity of each cluster."""
        weighted = (w * part for w, part in zip(self._clusters.weights, parts, strict=True))
        return sum(weighted, np.zeros(1))

    @cached_property
    def _spread(self) -> Floats:
        """Return the standard deviation of the cluster means, 1 if they are all equal."""
        variance = self._averaged((mean - self._overall) ** 2 for mean in self._means())
        return np.where(variance > 0, np.sqrt(variance), 1.0)

    def of(self, k: int, n: int) -> Described:
        """Return the first n columns, and the n that are farthest from the stream's."""
        mean = self._clusters.mean(k)
        lift = (mean - self._overall) / self._spread
        # Before any row, every cluster has some probability of an unknown label.
        tells = ~self._is_other | (mean >= 0.5)
        telling = _top(np.where(tells, np.abs(lift), -1.0), n)
        return self._described(mean, lift, np.arange(mean.size)[:n], telling[tells[telling]])

    @cached_property
    def _is_other(self) -> NDArray[np.bool_]:
        return np.array([name.endswith(f" = {OTHER}") for name in self._names])

    def _described(
        self, mean: Floats, lift: Floats, likely: NDArray[np.integer], lifted: NDArray[np.integer]
    ) -> Described:
        return Described(
            *(
                [Feature(self._names[j], float(mean[j]), float(lift[j])) for j in chosen]
                for chosen in (likely, lifted)
            )
        )


class WordFeatures(Features):
    """Describes clusters by their words."""

    _telling: tuple[int, list[Telling]] = (0, [])
    """Words of all clusters, and how many of each were requested."""

    def of(self, k: int, n: int) -> Described:
        """Return the n likeliest words, and the n most distinctive ones."""
        if self._telling[0] != n:
            self._telling = n, self._clusters.telling(n)
        mean = self._clusters.mean(k)
        lift = mean / self._overall
        return self._described(mean, lift, _top(mean, n), self._telling[1][k].words)


def label_of(lifted: Sequence[Feature], kind: str) -> str:
    """Return a label for a cluster or topic: a few words, or columns.

    Parameters
    ----------
    lifted : sequence of Feature
        Distinctive features, most distinctive first.
    kind : str
        "words", or "columns", which are shown with their means.

    Examples
    --------
    >>> rain, wind = Feature("rain", 0.2, 9.0), Feature("wind", 3.14159, -8.0)
    >>> label_of([rain, wind], "words"), label_of([rain, wind], "columns")
    ('rain, wind', 'rain 0.2, wind 3.14')
    """
    first, valued = lifted[:NAMED_BY], kind == "columns"
    return ", ".join(f"{one.name} {one.value:.3g}" if valued else one.name for one in first)


def _top(values: Floats, n: int) -> NDArray[np.intp]:
    """Return the positions of the n largest values, largest first.

    The n largest maxima of blocks are n values, so anything below all of them can be ignored. If
    the last place is shared, `argpartition` of all values decides who gets it.
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
