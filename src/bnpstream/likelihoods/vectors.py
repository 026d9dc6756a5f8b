"""Dense vectors with a latent scale per row: what directions and spherical Gaussians share."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp, softmax

from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.statistics.table import DENSE_UP_TO, Table
from bnpstream.kernels.vectors.families import LEVELS, SCALES
from bnpstream.kernels.vectors.rows import update_all
from bnpstream.kernels.vectors.screen import LINES, LOGGED, Lengths, Vectors
from bnpstream.likelihoods.base import Likelihood
from bnpstream.likelihoods.batch import Batch, Row, filled, read_only
from bnpstream.likelihoods.cells import (
    LARGEST,
    WrongWidthError,
    all_numbers,
    as_matrix,
    as_vector,
    require_positive,
)
from bnpstream.likelihoods.errors import RowError
from bnpstream.likelihoods.frames import check_table
from bnpstream.likelihoods.pools import Pool

STEPS: Floats = 2.0 ** (0.5 * np.arange(SCALES, dtype=np.float64))
"""Scales of rows, relative to the least."""


def as_vectors(X: Any) -> NDArray[Any]:
    """Return X as a matrix of float32, if it is of float16 or float32, or else of float64.

    Parameters
    ----------
    X : array-like or sparse of shape (n, D)
        Numbers. Not copied where it is such a matrix.
    """
    table = X if type(X) is np.ndarray else as_matrix(X)
    check_table(table)
    narrow = table.dtype.kind == "f" and table.dtype.itemsize <= 4
    try:
        values = np.require(table, np.float32 if narrow else np.float64, ["C", "W"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers: {error}") from None
    if not all_numbers(values):
        row, column = np.argwhere(~(np.abs(values.astype(np.float64)) <= LARGEST))[0]
        raise RowError(
            int(row), f"column {column} is {values[row, column]}: vectors must be finite numbers"
        )
    return values


class VectorBatch(Batch):
    """Encoded vectors, as they were given; what scores need of one is made when it is asked for.

    Parameters
    ----------
    values : ndarray of shape (n, D)
        float32 or float64.
    factors : ndarray of shape (n,)
        What a row is multiplied by.
    family : VectorLikelihood
        Knows the centre.
    weights : ndarray of shape (n,), optional
        How many rows a row counts for; by default one.
    """

    def __init__(
        self,
        values: NDArray[Any],
        factors: Floats,
        family: "VectorLikelihood",
        weights: Floats | None = None,
    ) -> None:
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "family", family)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "log_base", filled(len(values), 0.0))

    values: NDArray[Any]
    factors: Floats
    family: "VectorLikelihood"
    has_sparse_rows: ClassVar[bool] = False

    @property
    def n_statistics(self) -> int:
        """Return G + D."""
        return SCALES + int(self.values.shape[1])

    @cached_property
    def statistics(self) -> Floats:
        """Return what scores need of all rows, shape (n, G + D): zeros, and the vectors."""
        vectors = self.factors[:, None] * self.values.astype(np.float64) - self.family.centre
        return np.hstack([np.zeros((len(self), SCALES)), vectors])

    def row(self, i: int) -> Row:
        """Return observation i."""
        vector = self.factors[i] * self.values[i].astype(np.float64) - self.family.centre
        values = np.append(np.zeros(SCALES), vector)
        return Row(slice(None), values, 0.0, float(self.row_weights[i]))

    def totals(self, n_columns: int) -> Floats:
        """Return zeros: no row tells its scale."""
        return np.zeros(n_columns)

    def weighted(self, weights: Floats | None) -> Self:
        """Return the same observations with other weights."""
        return type(self)(self.values, self.factors, self.family, weights)

    def chosen(self, rows: NDArray[np.intp] | slice) -> Self:
        """Return some observations."""
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(self.values[rows], self.factors[rows], self.family, weights)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the observations of several batches, in order, as one."""
        values = np.concatenate([part.values for part in parts])
        factors = np.concatenate([part.factors for part in parts])
        return cls(values, factors, parts[0].family, cls._joined_ends(parts)[1])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that `VectorLikelihood.batch_of` needs to make these rows again."""
        return {"values": self.values, "factors": self.factors, "weights": self.row_weights}

    def weighted_sums(self, responsibilities: csr_array) -> Floats:
        """Return the (K, G + D) summed statistics given (n, K) responsibilities."""
        sums: Floats = responsibilities.T @ self.statistics
        return sums

    @cached_property
    def kernel_rows(self) -> Vectors:
        """Return the arrays for compiled loops."""
        return Vectors(read_only(self.values), self.factors, self.log_base, self.row_weights)


@dataclass(frozen=True, eq=False)
class VectorLikelihood(Likelihood):
    """Vectors, each with its own scale of a grid, which is inferred with the cluster.

    A row adds sum_g r_g (1_g, s_g x), r being the probability of its scale s_g in the cluster: the
    statistics are N_g, how many rows have scale g, and V. The grid is `floor`, times what the
    family says, times 1, sqrt 2, 2, ... 2^3.5; the shares of scales are learnt along the stream.

    A subclass has a field for the scale of its base measure, called `scale_name`, which is learnt
    where it is None.
    """

    mean: ArrayLike | None = None
    floor: float = 0.7
    shares: ArrayLike | None = None
    scale_name: ClassVar[str]
    latent: ClassVar[bool] = True
    merges_when_done: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive("floor", self.floor)
        if self.mean is not None:
            as_vector("mean", self.mean)
        if self.shares is not None:
            require_positive("shares", as_vector("shares", self.shares, SCALES))

    @property
    @abstractmethod
    def grid(self) -> Floats:
        """Return the scales, shape (G,), ascending."""

    @property
    @abstractmethod
    def base(self) -> Floats:
        """Return eta of an empty cluster, shape (D,)."""

    @property
    @abstractmethod
    def centre(self) -> Floats:
        """Return what is subtracted from rows, shape (D,)."""

    @abstractmethod
    def factors_of(self, values: NDArray[Any]) -> Floats:
        """Return what rows are multiplied by, (n, D) -> (n,); ValueError names a bad row."""

    @abstractmethod
    def pairs_of(
        self, squares: Floats, precisions: Floats, products: Floats, square: float
    ) -> Floats:
        """Return log p(x, g | cluster), shape (K, G).

        Given |eta|^2, the precision and eta . x of clusters, each (K, 1), and |x|^2.
        """

    @abstractmethod
    def log_lengths(self, squares: Floats, precisions: Floats) -> Floats:
        """Return the part of log Z that depends on |eta|^2 and the precision."""

    @abstractmethod
    def log_counts(self) -> Floats:
        """Return what a row of every scale adds to log Z, shape (G,)."""

    @property
    def precision(self) -> float:
        """Return the precision of an empty cluster; by default 0."""
        return 0.0

    @property
    def scale_is_open(self) -> bool:
        """Return whether the scale of the base measure is to be learnt."""
        return getattr(self, self.scale_name) is None

    @property
    def is_informed(self) -> bool:
        """Return whether the base measure is known."""
        return self.mean is not None and not self.scale_is_open

    @property
    def n_columns(self) -> int:
        """Return D; ValueError if it is not known so far."""
        if not self.is_informed:
            raise ValueError(
                f"{type(self).__name__} leaves its base measure open: call informed(X) with some "
                "rows, or give all its parameters"
            )
        return as_vector("mean", self.mean).size

    def rescaled(self, factor: float) -> Self:
        """Return this family with the scale of its base measure times a factor."""
        return replace(self, **{self.scale_name: factor * getattr(self, self.scale_name)})

    @property
    def n_located(self) -> int:
        """Return G: shares of scales are learnt from the counts of them."""
        return SCALES

    def relocated(self, totals: Floats) -> Self:
        """Return this family with shares of the scales as they were so far, and one row of each."""
        return replace(self, shares=(totals + 1.0) / (totals + 1.0).sum())

    def continues(self, other: Likelihood) -> bool:
        """Return whether statistics that another likelihood summed are this one's too."""
        if not isinstance(other, VectorLikelihood) or type(self) is not type(other):
            return False
        return np.array_equal(self.grid, other.grid)

    @property
    def log_shares(self) -> Floats:
        """Return log pi_g."""
        shares = np.ones(SCALES) if self.shares is None else as_vector("shares", self.shares)
        logs: Floats = np.log(shares / shares.sum())
        return logs

    def check_rows(self, X: Any) -> None:
        """Raise ValueError if a row is none of this family's."""
        self.factors_of(as_vectors(X))

    def encode(self, X: Any) -> VectorBatch:
        """Return the rows of X, checked.

        Parameters
        ----------
        X : array-like or sparse of shape (n, n_columns)
            Vectors. float32 stays as it is, float16 becomes float32, all else float64.
        """
        values = as_vectors(X)
        if values.shape[1] != self.n_columns:
            raise WrongWidthError(
                f"X has {values.shape[1]} columns, but {type(self).__name__} has {self.n_columns}"
            )
        if values.shape[1] + SCALES > DENSE_UP_TO:
            raise ValueError(
                f"{type(self).__name__} takes vectors of up to {DENSE_UP_TO - SCALES} numbers, got "
                f"{values.shape[1]}: project them first, by TruncatedSVD for example"
            )
        return VectorBatch(values, self.factors_of(values), self)

    def batch_of(self, arrays: dict[str, NDArray[Any]]) -> VectorBatch:
        """Return the rows that `VectorBatch.arrays` described."""
        return VectorBatch(arrays["values"], arrays["factors"], self, arrays["weights"])

    def _parts(self, statistics: Floats) -> tuple[Floats, Floats]:
        """Return eta, (K, D), and the precision of clusters, (K,)."""
        rows = statistics[:, :]
        return self.base + rows[:, SCALES:], self.precision + rows[:, :SCALES] @ self.grid

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return log Z, relative to that of an empty cluster."""
        eta, precisions = self._parts(statistics)
        lengths = self.log_lengths((eta**2).sum(axis=1), precisions)
        counts: Floats = statistics[:, :SCALES] @ self.log_counts()
        return lengths + counts

    def _pairs(self, statistics: Floats, row: Row) -> Floats:
        """Return log p(x, g | cluster), shape (K, G)."""
        eta, precisions = self._parts(statistics)
        x = row.values[SCALES:]
        parts = ((eta**2).sum(axis=1), precisions, eta @ x)
        squares, precision, products = (part[:, None] for part in parts)
        return self.pairs_of(squares, precision, products, float(x @ x))

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return log p(x | cluster), summed over scales."""
        found: Floats = logsumexp(self._pairs(statistics, row), axis=1)
        return found

    def contributions(self, statistics: Floats, row: Row, slots: NDArray[np.int64]) -> Floats:
        """Return the probabilities of the scales, and the row times the mean scale."""
        r = softmax(self._pairs(statistics[:, :][slots], row), axis=1)
        return np.hstack([r, np.outer(r @ self.grid, row.values[SCALES:])])

    def pool(self, rows: csr_array) -> Pool:
        """Return clusters that can be joined, by products of their vectors."""
        return VectorPool(self, rows.toarray())

    def cache(self, table: Table, masses: Floats, n_clusters: int) -> Lengths:
        """Return lengths and precisions of all clusters."""
        capacity = table.starts.size
        lengths = Lengths(
            np.zeros(capacity),
            np.zeros(capacity),
            np.zeros(capacity),
            np.zeros(capacity),
            np.zeros((LINES, capacity)),
            np.zeros((LINES, capacity)),
            np.zeros((LEVELS, capacity)),
            np.zeros((LEVELS, capacity)),
            np.zeros((2, capacity)),
            np.zeros(capacity),
            np.zeros(2),
            np.zeros((2, LINES)),
            np.zeros((LOGGED, 2), np.int64),
            np.zeros(LOGGED),
            np.zeros(2, np.int64),
        )
        return self.faded_cache(lengths, table, masses, n_clusters, exact=True)

    def faded_cache(
        self, cache: Lengths, table: Table, masses: Floats, n_clusters: int, *, exact: bool
    ) -> Lengths:
        """Return the same arrays, found anew."""
        update_all(cache, self.kernel_parameters(int(table.shape[0])), table, masses, n_clusters)
        return cache


class VectorPool(Pool):
    """Clusters of vectors that are joined: odds of all pairs follow from one matrix product."""

    _likelihood: VectorLikelihood

    def odds(self, i: int, others: Integers) -> Floats:
        """Return log m(i+k) - log m(i) - log m(k) for k in `others`."""
        found: Floats = self.table(np.array([i]), others)[0]
        return found

    def table(self, some: Integers, others: Integers) -> Floats:
        """Return those odds of each of some with each of others, shape (some, others).

        |eta_i + V_k|^2 = |eta_i|^2 + |V_k|^2 + 2 eta_i . V_k; what counts of scales add cancels.
        """
        family = self._likelihood
        eta, precisions = family._parts(self._rows[some])
        sums, more = family._parts(self._rows[others])
        V = sums - family.base
        squares = (eta**2).sum(axis=1)[:, None] + (V**2).sum(axis=1) + 2.0 * (eta @ V.T)
        joint = precisions[:, None] + (more - family.precision)
        alone = family.log_lengths((eta**2).sum(axis=1), precisions)
        other = family.log_lengths((sums**2).sum(axis=1), more)
        odds: Floats = family.log_lengths(np.maximum(squares, 0.0), joint)
        return odds - alone[:, None] - other

    def part(self, slots: Integers) -> "VectorPool":
        """Return some of the clusters, in this order; joins leave these as they are."""
        return VectorPool(self._likelihood, self._rows[slots])

    def summed(self, members: Integers, n_groups: int) -> "VectorPool":
        """Return groups as clusters; members[k] is the group of cluster k."""
        return VectorPool(self._likelihood, self.groups(members, n_groups).sums)
