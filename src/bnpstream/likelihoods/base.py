"""The interface of likelihoods: conjugate exponential families behind two methods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.statistics.table import Table
from bnpstream.likelihoods.batch import Batch, PairedBatch, Row, plus
from bnpstream.likelihoods.features import Features, Portrayed
from bnpstream.likelihoods.pools import BLOCK_CELLS, Pool
from bnpstream.likelihoods.typicality import Typicality, of_rows
from bnpstream.likelihoods.word_screen import no_screen

Draw = Callable[..., Any]
"""Draws rows from the posterior predictive; options are those of `Likelihood.sample`."""
Score = Callable[[Any], tuple[float, float]]
"""Returns mean and standard deviation of the log predictives of rows."""


class InputTraits(NamedTuple):
    """The rows that a likelihood takes, in the terms of scikit-learn's ``InputTags``."""

    positive_only: bool = False
    """Whether cells must not be negative."""
    allow_nan: bool = False
    """Whether cells may be missing."""
    categorical: bool = False
    """Whether cells may be labels."""
    string: bool = False
    """Whether cells may be strings."""


class Slowness(NamedTuple):
    """How long rows take, if that is long by nature."""

    seconds_per_row: float
    """Approximate time to absorb one row on one core."""
    reason: str
    way_out: str


class Likelihood(ABC):
    """A conjugate exponential family p(x | theta) = h(x) exp(theta . t(x) - ...).

    A cluster is one row of summed sufficient statistics S; a zero row is the prior. With Z the
    normaliser of the conjugate posterior, everything follows from `encode` and
    `log_normalizer`:

        log p(x | cluster) = log Z(S + t(x)) - log Z(S) + log h(x).

    Subclasses override what can be computed faster, and ``bnpstream.testing.check_likelihood``
    checks the overrides against the generic formulas.
    """

    paired: ClassVar[bool] = False
    """Whether the second half of a row of statistics holds the low digits of the first half.

    Then `encode` returns a `PairedBatch`."""

    def informed(self, X: Any) -> "Likelihood":
        """Return this likelihood with unset parameters estimated from rows; default unchanged."""
        return self

    def chosen(self, X: Any) -> "Likelihood":
        """Return the family that suits some rows; by default this one."""
        return self

    def settled(self, X: Any) -> "Likelihood":
        """Return what is certain from the type of the rows alone; by default nothing new."""
        return self

    def check_rows(self, X: Any) -> None:
        """Raise ValueError if this likelihood cannot take these rows, whatever is still open."""
        self.informed(X).encode(X)

    def bound(self, names: list[str]) -> "Likelihood":
        """Return this likelihood with column names turned into positions; by default unchanged."""
        return self

    @property
    def is_informed(self) -> bool:
        """Return whether nothing is left open."""
        return True

    def slowness(self) -> Slowness | None:
        """Return how long a row takes if that may be long, with a way out; default None."""
        return None

    @property
    def scale_is_open(self) -> bool:
        """Return whether the scale of the base measure is to be learnt; by default it is not."""
        return False

    def rescaled(self, factor: float) -> "Likelihood":
        """Return this likelihood with a base measure of another scale.

        The expectation stays the same; the width of clusters, or how far they may be from it,
        changes. ``bnpstream.search`` finds the factor that predicts best.
        """
        raise NotImplementedError(f"{type(self).__name__} has no scale to learn")

    @property
    def n_located(self) -> int:
        """Return the number of first statistics that `relocated` uses; by default 0."""
        return 0

    def relocated(self, totals: Floats) -> "Likelihood":
        """Return this likelihood with its expectation taken from the totals of all rows.

        Parameters
        ----------
        totals : ndarray of shape (n_located,)
            The first statistics, summed over all clusters.
        """
        return self

    def continues(self, other: "Likelihood") -> bool:
        """Return whether statistics summed under another likelihood are valid for this one."""
        return self.paired == other.paired

    batch_class: ClassVar[type[Batch]] = Batch
    """Class of the result of `encode`."""

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
        """Return the sufficient statistics of rows; a ValueError names a bad one."""

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
    """Whether what a row adds depends on the cluster: more is inferred about it than its cluster.

    In this case the values of a row are whatever its scores need of x, and the class overrides
    `contributions` and `log_predictive`; compiled, ``contribution_of`` is registered besides the
    scores. `paired` statistics cannot be latent."""

    def contributions(self, statistics: Floats, row: Row, slots: NDArray[np.int64]) -> Floats:
        """Return what a row adds to some clusters, for a responsibility and a weight of one.

        By default t(x) for every cluster. The result is added q times at a visit, kept if rows are
        revisited, and taken out exactly as it was kept.

        Parameters
        ----------
        statistics : ndarray of shape (K, D)
            Summed statistics without the row, as in `log_predictive`; a new cluster is a zero row.
        row : Row
            One observation.
        slots : ndarray of shape (k,)
            Row numbers in `statistics`.

        Returns
        -------
        contributions : ndarray of shape (k, columns)
            Values at the columns of the row.
        """
        return np.tile(row.values, (slots.size, 1))

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return the posterior mean of the cluster's parameters, shape (K, D) -> (K, columns).

        It does not follow from the normaliser: a family without it has no `means_`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define the mean of a cluster: give it a method "
            "posterior_mean(statistics)"
        )

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Any:
        """Draw one row x from the posterior predictive of every row of `statistics`.

        It does not follow from the normaliser: a family without it cannot be sampled.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define how to draw rows: give it a method "
            "sample(statistics, rng)"
        )

    def log_marginal_sparse(self, rows: csr_array) -> Floats:
        """Return `log_marginal` of summed statistics that are too wide to be dense.

        By default a few at a time are made dense: shape (K, D) -> (K,).
        """
        step = max(1, BLOCK_CELLS // rows.shape[1])
        starts = range(0, rows.shape[0], step)
        parts = [self.log_marginal(rows[start : start + step].toarray()) for start in starts]
        return np.concatenate([np.empty(0), *parts])

    def pool(self, rows: csr_array) -> Pool:
        """Return a pool of clusters to be joined, from (K, D) statistics with columns ascending."""
        return Pool(self, rows.toarray())

    def nearly_odds(self, rows: csr_array, pairs: NDArray[np.int64]) -> Floats | None:
        """Return log m(i+j) - log m(i) - log m(j) of pairs of rows, to within a thousandth.

        If faster than `log_marginal`, it serves to rule out most pairs; by default None.

        Parameters
        ----------
        rows : csr_array of shape (K, D)
            Summed statistics, columns ascending.
        pairs : ndarray of shape (2, P)
            Pairs of rows i and j.
        """
        return None

    def cosines(self, means: Floats, batch: Any) -> Floats:
        """Return the cosine of each row with each of some directions, (K, D) -> (n, K)."""
        raise ValueError(
            f"cosines need directions, but the likelihood is {type(self).__name__}: use "
            'likelihood="directional", or transform'
        )

    def row_means(self, statistics: Floats) -> Floats | None:
        """Return the mean of the rows of each cluster, shape (K, D), for finding topics.

        By default None: clusters are then grouped by odds.
        """
        return None

    keeps_rows: ClassVar[bool] = False
    """Whether a stream keeps a sample of its rows for finding topics."""
    merges_when_done: ClassVar[bool] = False
    """Whether ``merge_threshold="auto"`` merges clusters after all passes of a fit."""
    settles_first: ClassVar[bool] = False
    """Whether the rows from which a base measure is learnt are revisited, and their clusters
    merged, before the stream continues."""

    @property
    def input(self) -> InputTraits:
        """Return what rows this likelihood takes; by default numbers, none missing."""
        return InputTraits()

    def n_tokens(self, rows: Any) -> int | None:
        """Return the number of words in encoded rows; None if rows are not documents."""
        return None

    def typicality(self, rows: Any) -> Typicality:
        """Return how typical encoded rows are; by default by log evidence."""
        return of_rows(rows)

    def log_orders(self, rows: Any) -> Floats:
        """Return the log number of orders of the words of rows; by default 0."""
        return np.zeros(np.shape(rows)[0])

    def expected_score(
        self, batch: Batch, draw: Draw, score: Score
    ) -> tuple[Floats | float, Floats | float]:
        """Return the log predictive expected of rows like these, and its spread.

        By default all rows are alike.

        Parameters
        ----------
        batch : Batch
            The rows.
        draw : callable
            Draws rows from the posterior predictive; keywords are options of `sample`.
        score : callable
            Returns mean and standard deviation of the log predictives of rows.

        Returns
        -------
        mean, spread : float or ndarray of shape (n,)
        """
        return score(draw())

    def learnt(self, scale: float) -> dict[str, float]:
        """Return the parameters of the base measure that were learnt, by name.

        By default the scale, relative to that of the first rows.
        """
        return {"scale": float(scale)}

    feature_kind: ClassVar[Literal["words", "columns"]] = "columns"
    """What the entries of a cluster's mean are to people."""

    def mean_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the entries of `posterior_mean`, given those of the columns."""
        return list(names)

    def describe(self, names: Sequence[str], clusters: Portrayed) -> Features:
        """Return the features that describe clusters to people, given names of the columns."""
        return Features(self.mean_names(names), clusters)

    def kernel_parameters(self, n_statistics: int) -> Any:
        """Return the NamedTuple that selects the compiled score, or None if there is none."""
        return None

    def cache(self, table: Table, masses: Floats, n_clusters: int) -> Any:
        """Return what compiled scores need besides the statistics; by default nothing."""
        return no_screen(table.starts.size)

    negligible: ClassVar[float] = 1e-250
    """A statistic that has faded below this counts as zero.

    By default only numbers that would soon underflow."""

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

        By default it is rebuilt. Slots from `n_kept` on may hold other clusters; all their values
        are among the entries.
        """
        return self.cache(table, masses, n_clusters)

    def merged_cache(
        self, cache: Any, table: Table, masses: Floats, slot: int, columns: NDArray[np.int64]
    ) -> Any | None:
        """Return the cache after a cluster has taken in some columns of another.

        By default None: it is rebuilt when next needed.
        """
        return None

    def faded_cache(
        self, cache: Any, table: Table, masses: Floats, n_clusters: int, *, exact: bool
    ) -> Any:
        """Return the cache after all statistics and masses were multiplied by a factor below one.

        By default it is rebuilt. Bounds that are now too high need not be lowered unless it must
        be `exact`.
        """
        return self.cache(table, masses, n_clusters)
