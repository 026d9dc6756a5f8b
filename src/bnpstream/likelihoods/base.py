"""What every likelihood offers: a conjugate exponential family behind two methods."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from bnpstream.kernels.arrays import SparseRows
from bnpstream.kernels.statistics.pairs import add_product
from bnpstream.kernels.statistics.table import DENSE_UP_TO, Table
from bnpstream.likelihoods.word_screen import no_screen

Floats = NDArray[np.float64]


class Row(NamedTuple):
    """One observation: sufficient statistics t(x), given at some columns and zero elsewhere."""

    columns: slice | NDArray[np.integer]
    values: Floats
    log_base: float
    """log h(x)."""
    weight: float = 1.0
    """How many rows it counts for."""


@dataclass(frozen=True)
class Batch:
    """Encoded observations: a row of sufficient statistics and log h(x) each.

    Parameters
    ----------
    statistics : ndarray or csr_array of shape (n, D)
        t(x). Sparse rows are canonical: sorted columns, no duplicates.
    log_base : ndarray of shape (n,)
        log h(x).
    weights : ndarray of shape (n,), optional
        How many rows a row counts for; by default one.
    """

    statistics: Floats | csr_array
    log_base: Floats
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.log_base)

    @property
    def n_statistics(self) -> int:
        """Return D, the length of a row of sufficient statistics."""
        return int(self.statistics.shape[1])

    def row(self, i: int) -> Row:
        """Return observation i."""
        log_base, weight = float(self.log_base[i]), float(self.row_weights[i])
        if isinstance(self.statistics, np.ndarray):
            return Row(slice(None), self.statistics[i], log_base, weight)
        inside = slice(self.statistics.indptr[i], self.statistics.indptr[i + 1])
        return Row(self.statistics.indices[inside], self.statistics.data[inside], log_base, weight)

    @cached_property
    def row_weights(self) -> Floats:
        """Return how many rows every row counts for."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def weighted(self, weights: Floats | None) -> Self:
        """Return the same observations with other weights."""
        return dataclasses.replace(self, weights=weights)

    def part(self, start: int, stop: int) -> Self:
        """Return observations start..stop-1."""
        inside = slice(start, stop)
        weights = None if self.weights is None else self.weights[inside]
        return type(self)(self.statistics[inside], self.log_base[inside], weights)

    def chosen(self, rows: NDArray[np.intp]) -> Self:
        """Return some observations."""
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(self.statistics[rows], self.log_base[rows], weights)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the observations of several batches of one class, in order, as one."""
        blocks: list[Any] = [part.statistics for part in parts]
        dense = isinstance(blocks[0], np.ndarray)
        statistics: Any = np.concatenate(blocks) if dense else vstack(blocks, format="csr")
        return cls(statistics, *cls._joined_ends(parts))

    @staticmethod
    def _joined_ends(parts: Sequence["Batch"]) -> tuple[Floats, Floats | None]:
        """Return log h(x) and the weights of several batches."""
        log_base = np.concatenate([part.log_base for part in parts])
        if all(part.weights is None for part in parts):
            return log_base, None
        return log_base, np.concatenate([part.row_weights for part in parts])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that `Likelihood.batch_of` needs to make these rows again."""
        ends = {"log_base": self.log_base, "weights": self.row_weights}
        if isinstance(self.statistics, np.ndarray):
            return {"statistics": self.statistics, **ends}
        sparse = self.statistics
        return {
            "indptr": sparse.indptr,
            "indices": sparse.indices,
            "data": sparse.data,
            "shape": np.array(sparse.shape),
            **ends,
        }

    def totals(self, n_columns: int) -> Floats:
        """Return the first columns of the statistics summed over all observations."""
        totals: Floats = np.asarray(self.row_weights @ self.statistics)
        return totals[:n_columns]

    def weighted_sums(self, responsibilities: csr_array) -> Any:
        """Return the (K, D) summed statistics given (n, K) responsibilities, sparse if wide."""
        sums = responsibilities.T @ self.statistics
        if not isinstance(sums, np.ndarray) and self.n_statistics <= DENSE_UP_TO:
            sums = sums.toarray()
        return sums

    @cached_property
    def kernel_rows(self) -> Any:
        """Return the arrays for compiled loops, or None where there are none for this layout."""
        return self.sparse_rows()

    def sparse_rows(self) -> SparseRows:
        """Return statistics of any kind for compiled loops: a dense row has every column."""
        n, D = len(self), self.n_statistics
        if isinstance(self.statistics, np.ndarray):
            indptr: NDArray[np.int64] = D * np.arange(n + 1)
            indices = np.tile(np.arange(D, dtype=np.uint32), n)
            values = self.statistics.reshape(-1)
        else:
            indptr = self.statistics.indptr.astype(np.int64, copy=False)
            indices = self.statistics.indices.astype(np.uint32)
            values = self.statistics.data
        return plain_rows(indptr, indices, values, self.log_base, self.row_weights)


def plain_rows(
    indptr: NDArray[np.int64],
    columns: NDArray[np.integer],
    values: Floats,
    log_base: Floats,
    weights: Floats,
) -> SparseRows:
    """Return rows for compiled loops, no tokens spelt out."""
    none, nowhere = np.zeros(indptr.size, np.int64), np.empty(0, np.int64)
    return SparseRows(
        indptr,
        columns.astype(np.uint32),
        _plain(values),
        _plain(log_base),
        _plain(weights),
        none,
        nowhere,
        none,
        nowhere.astype(np.uint32),
        np.empty(0),
    )


def _plain(values: Any) -> Floats:
    """Return float64 as compiled loops know it: contiguous and writable; a copy if need be."""
    return np.require(values, np.float64, ["C", "W"])


class PairedBatch(Batch):
    """Encoded observations whose statistics are pairs of doubles, see `Likelihood.paired`.

    They have no compiled loops.
    """

    def weighted_sums(self, responsibilities: csr_array) -> Floats:
        """Return the (K, D) summed statistics given (n, K) responsibilities, row by row."""
        sums, rows = np.zeros((responsibilities.shape[1], self.n_statistics)), responsibilities
        for i in range(len(self)):
            inside = slice(rows.indptr[i], rows.indptr[i + 1])
            slots, shares = rows.indices[inside], rows.data[inside]
            row = self.row(i)
            place = np.ix_(slots, np.arange(self.n_statistics)[row.columns])
            sums[place] = plus(sums[place], shares, row.values, paired=True)
        return sums

    @property
    def kernel_rows(self) -> None:
        """Return None: compiled loops add doubles."""
        return None


def plus(before: Floats, shares: Floats, values: Floats, *, paired: bool) -> Floats:
    """Return summed statistics plus shares times those of a row.

    Parameters
    ----------
    before : ndarray of shape (K, D)
        Summed statistics.
    shares : ndarray of shape (K,)
        What part of the row each takes.
    values : ndarray of shape (D,) or (K, D)
        The row's statistics, or a row a cluster.
    paired : bool
        Whether statistics are pairs of doubles, see `Likelihood.paired`.
    """
    if not paired:
        return before + shares[:, None] * values
    half = before.shape[-1] // 2
    high, low, value, rest = (
        part[..., columns]
        for part in (before, values)
        for columns in (slice(None, half), slice(half, None))
    )
    return np.concatenate(add_product(high, low, shares[:, None], value, rest), axis=-1)


class Likelihood(ABC):
    """A conjugate exponential family p(x | theta) = h(x) exp(theta . t(x) - ...).

    A cluster is one row of summed sufficient statistics S; a zero row is the prior. With Z the
    normaliser of the conjugate posterior, everything follows from `encode` and
    `log_normalizer`:

        log p(x | cluster) = log Z(S + t(x)) - log Z(S) + log h(x).

    Whatever can be faster is overridden, and ``bnpstream.testing.check_likelihood`` says whether
    the override tells the truth.
    """

    paired: ClassVar[bool] = False
    """Whether the second half of a row of statistics holds the low digits of the first.

    Then `encode` returns a `PairedBatch`."""

    def informed(self, X: Any) -> "Likelihood":
        """Return this likelihood with what it leaves open taken from some rows; default none."""
        return self

    def chosen(self, X: Any) -> "Likelihood":
        """Return the family that suits some rows; by default this one."""
        return self

    def settled(self, X: Any) -> "Likelihood":
        """Return what the type of the rows alone makes certain; by default nothing new."""
        return self

    def check_rows(self, X: Any) -> None:
        """Raise ValueError if rows cannot be this likelihood's, whatever it leaves open."""
        self.informed(X).encode(X)

    def bound(self, names: list[str]) -> "Likelihood":
        """Return this likelihood with columns given by name turned into positions; default none."""
        return self

    @property
    def is_informed(self) -> bool:
        """Return whether nothing is left open."""
        return True

    @property
    def scale_is_open(self) -> bool:
        """Return whether the scale of the base measure is to be learnt; by default it is not."""
        return False

    def rescaled(self, factor: float) -> "Likelihood":
        """Return this likelihood with a base measure of another scale.

        What it expects stays the same; how far clusters may be from it, or how wide they are,
        changes. ``bnpstream.search`` finds out which factor predicts best.
        """
        raise NotImplementedError(f"{type(self).__name__} has no scale to be learnt")

    @property
    def n_located(self) -> int:
        """Return how many of the first statistics `relocated` looks at; by default at none."""
        return 0

    def relocated(self, totals: Floats) -> "Likelihood":
        """Return this likelihood with what it expects taken from the totals of all rows.

        Parameters
        ----------
        totals : ndarray of shape (n_located,)
            The first statistics, summed over all clusters.
        """
        return self

    def continues(self, other: "Likelihood") -> bool:
        """Return whether statistics that another likelihood summed are this one's too."""
        return self.paired == other.paired

    batch_class: ClassVar[type[Batch]] = Batch
    """What `encode` returns."""

    def batch_of(self, arrays: dict[str, NDArray[Any]]) -> Batch:
        """Return the rows that `Batch.arrays` described."""
        statistics: Any = arrays.get("statistics")
        if statistics is None:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            statistics = csr_array(parts, shape=tuple(arrays["shape"].tolist()))
        cls = PairedBatch if self.paired else self.batch_class
        return cls(statistics, arrays["log_base"], arrays["weights"])

    @abstractmethod
    def encode(self, X: Any) -> Batch:
        """Return the sufficient statistics of rows; ValueError names the place of a bad one."""

    @abstractmethod
    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return log Z of the posterior for every row of `statistics`, shape (K, D) -> (K,)."""

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return log p(x | cluster) without log h(x) for every row of `statistics`.

        Parameters
        ----------
        statistics : ndarray of shape (K, D)
            Summed sufficient statistics.
        row : Row
            One observation.

        Returns
        -------
        log_predictive : ndarray of shape (K,)
        """
        before = statistics[:, :]  # hashed rows become an array
        after, ones = before.copy(), np.ones(len(before))
        after[:, row.columns] = plus(before[:, row.columns], ones, row.values, paired=self.paired)
        return self.log_normalizer(after) - self.log_normalizer(before)

    def log_marginal(self, statistics: Floats) -> Floats:
        """Return the log marginal likelihood of the summed statistics, log h(x) left out."""
        prior = np.zeros((1, statistics.shape[1]))
        return self.log_normalizer(statistics) - self.log_normalizer(prior)

    latent: ClassVar[bool] = False
    """Whether what a row adds depends on the cluster: there is more to be inferred than which one.

    Then the values of a row are whatever its scores need of x, and the class overrides
    `contributions` and `log_predictive`. Statistics that are `paired` cannot be latent."""

    def contributions(self, statistics: Floats, row: Row, slots: NDArray[np.int64]) -> Floats:
        """Return what a row adds to some clusters, for a responsibility and a weight of one.

        By default t(x), whichever cluster. What is returned is added q times at a visit, kept where
        rows are revisited, and taken out as it was kept.

        Parameters
        ----------
        statistics : ndarray of shape (K, D)
            Summed statistics without the row, as in `log_predictive`; a new cluster is a zero row.
        row : Row
            One observation.
        slots : ndarray of shape (k,)
            Which rows of `statistics`.

        Returns
        -------
        contributions : ndarray of shape (k, columns)
            At the columns of the row.
        """
        return np.tile(row.values, (slots.size, 1))

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return the posterior mean of the cluster's parameters, shape (K, D) -> (K, columns).

        It does not follow from the normaliser: a family that does not say has no `means_`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say what the mean of a cluster is: give it a method "
            "posterior_mean(statistics)"
        )

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Any:
        """Draw one row x from the posterior predictive of every row of `statistics`.

        It does not follow from the normaliser: a family that does not say cannot be sampled.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say how rows are drawn: give it a method "
            "sample(statistics, rng)"
        )

    def kernel_parameters(self, n_statistics: int) -> Any:
        """Return the NamedTuple that selects the compiled score, or None without one."""
        return None

    def cache(self, table: Table, masses: Floats, n_clusters: int) -> Any:
        """Return what compiled scores need besides the statistics; by default nothing."""
        return no_screen(table.starts.size)

    negligible: ClassVar[float] = 1e-250
    """What forgetting has left of a statistic counts as nothing below this.

    By default only numbers that would soon be too small for a double."""

    def grown_cache(
        self,
        cache: Any,
        table: Table,
        masses: Floats,
        n_clusters: int,
        n_kept: int,
        entries: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> Any:
        """Return the cache of a table in which some entries, slots and columns, may have grown.

        By default it is made anew. Slots from `n_kept` on may be those of other clusters; all that
        they hold is among the entries.
        """
        return self.cache(table, masses, n_clusters)

    def faded_cache(
        self, cache: Any, table: Table, masses: Floats, n_clusters: int, *, exact: bool
    ) -> Any:
        """Return the cache once all statistics and masses were multiplied by a factor below one.

        By default it is made anew. Where bounds that have become too high will do, they need not
        be lowered unless it is to be `exact`.
        """
        return self.cache(table, masses, n_clusters)
