"""What every likelihood offers: a conjugate exponential family behind two methods."""

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
    """What rows a likelihood takes, in the words of scikit-learn's ``InputTags``."""

    positive_only: bool = False
    """Whether cells must not be negative."""
    allow_nan: bool = False
    """Whether cells may be missing."""
    categorical: bool = False
    """Whether cells may be labels."""
    string: bool = False
    """Whether cells may be strings."""


class Slowness(NamedTuple):
    """How long rows take where that is long by nature."""

    seconds_per_row: float
    """About, to absorb one row, on one core."""
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
    """Whether the second half of a row of statistics holds the low digits of the first.

    Then `encode` returns a `PairedBatch`."""

    def informed(self, X: Any) -> "Likelihood":
        """Return this likelihood with unset parameters estimated from rows; default unchanged."""
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

    def slowness(self) -> Slowness | None:
        """Return how long a row takes where that may be long, with a way out; default None."""
        return None

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
    `contributions` and `log_predictive`; compiled, ``contribution_of`` is registered besides the
    scores. Statistics that are `paired` cannot be latent."""

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

    def log_marginal_sparse(self, rows: csr_array) -> Floats:
        """Return `log_marginal` of summed statistics that are too wide to be written out.

        By default they are written out, a few at a time: shape (K, D) -> (K,).
        """
        step = max(1, BLOCK_CELLS // rows.shape[1])
        starts = range(0, rows.shape[0], step)
        parts = [self.log_marginal(rows[start : start + step].toarray()) for start in starts]
        return np.concatenate([np.empty(0), *parts])

    def pool(self, rows: csr_array) -> Pool:
        """Return clusters that can be joined, given (K, D) statistics with columns ascending."""
        return Pool(self, rows.toarray())

    def nearly_odds(self, rows: csr_array, pairs: NDArray[np.int64]) -> Floats | None:
        """Return log m(i+j) - log m(i) - log m(j) of pairs of rows, to within a thousandth.

        It rules out most pairs where that is quicker than `log_marginal`; by default None.

        Parameters
        ----------
        rows : csr_array of shape (K, D)
            Summed statistics, columns ascending.
        pairs : ndarray of shape (2, P)
            Rows i and j.
        """
        return None

    def cosines(self, means: Floats, batch: Any) -> Floats:
        """Return the cosine of every row with each of some directions, (K, D) -> (n, K)."""
        raise ValueError(
            f"cosines are of directions, but the likelihood is {type(self).__name__}: use "
            'likelihood="directional", or transform'
        )

    def row_means(self, statistics: Floats) -> Floats | None:
        """Return the mean of the rows of every cluster, shape (K, D), by which topics are found.

        By default None: clusters are grouped by odds.
        """
        return None

    keeps_rows: ClassVar[bool] = False
    """Whether a stream keeps a sample of its rows to find topics with."""
    merges_when_done: ClassVar[bool] = False
    """Whether ``merge_threshold="auto"`` merges clusters once all passes of a fit are done."""
    settles_first: ClassVar[bool] = False
    """Whether the rows that a base measure is learnt from are revisited, and their clusters merged,
    before a stream goes on."""

    @property
    def input(self) -> InputTraits:
        """Return what rows this likelihood takes; by default numbers, all of them there."""
        return InputTraits()

    def n_tokens(self, rows: Any) -> int | None:
        """Return how many words rows have, as `encode` takes them; None if they have none."""
        return None

    def typicality(self, rows: Any) -> Typicality:
        """Return how typical rows are, as `encode` takes them; by default by log evidence."""
        return of_rows(rows)

    def log_orders(self, rows: Any) -> Floats:
        """Return the log number of orders that the words of rows can have; by default one."""
        return np.zeros(np.shape(rows)[0])

    def expected_score(
        self, batch: Batch, draw: Draw, score: Score
    ) -> tuple[Floats | float, Floats | float]:
        """Return what log predictives are expected of rows like these.

        By default all rows are alike.

        Parameters
        ----------
        batch : Batch
            n rows.
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

        By default that is its scale, relative to what the first rows looked like.
        """
        return {"scale": float(scale)}

    feature_kind: ClassVar[Literal["words", "columns"]] = "columns"
    """What the entries of a cluster's mean are to people."""

    def mean_names(self, names: Sequence[str]) -> list[str]:
        """Return what every entry of `posterior_mean` is called, given names of the columns."""
        return list(names)

    def describe(self, names: Sequence[str], clusters: Portrayed) -> Features:
        """Return what describes clusters to people, given names of the columns."""
        return Features(self.mean_names(names), clusters)

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

    def merged_cache(
        self, cache: Any, table: Table, masses: Floats, slot: int, columns: NDArray[np.int64]
    ) -> Any | None:
        """Return the cache once a cluster has taken in some columns of another.

        By default None: it is made anew when it is next asked for.
        """
        return None

    def faded_cache(
        self, cache: Any, table: Table, masses: Floats, n_clusters: int, *, exact: bool
    ) -> Any:
        """Return the cache once all statistics and masses were multiplied by a factor below one.

        By default it is made anew. Where bounds that have become too high will do, they need not
        be lowered unless it is to be `exact`.
        """
        return self.cache(table, masses, n_clusters)
