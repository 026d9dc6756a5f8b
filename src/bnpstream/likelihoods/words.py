"""Shared by likelihoods of words: the formulas of the Dirichlet-multinomial, in NumPy."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln, softmax

from bnpstream.kernels.arrays import NO_MASS, Floats
from bnpstream.kernels.special import STIRLING_FROM
from bnpstream.kernels.statistics.table import Table
from bnpstream.kernels.words.levels import Screen
from bnpstream.kernels.words.screen import lighten, lower, raise_cluster, raise_levels
from bnpstream.kernels.words.tables import LONG_RUN
from bnpstream.likelihoods.base import Draw, Likelihood, Score
from bnpstream.likelihoods.batch import Batch, Row
from bnpstream.likelihoods.counts import as_counts
from bnpstream.likelihoods.features import Portrayed, WordFeatures
from bnpstream.likelihoods.typicality import Entries, Typicality
from bnpstream.likelihoods.word_pool import WordPool

LENGTHS = 16
"""Number of lengths at which documents are drawn; expectations are interpolated between them."""


class WordLikelihood(Likelihood):
    """Word counts with Dirichlet word probabilities; the last statistic is the length."""

    negligible: ClassVar[float] = NO_MASS
    """A word with less than this counts as absent."""

    feature_kind: ClassVar = "words"
    keeps_rows: ClassVar = True

    @property
    def burstiness(self) -> float:
        """Return 1/s of documents that repeat their words; by default 0."""
        return 0.0

    @abstractmethod
    def base_measure(self, n_words: int) -> tuple[Floats, float]:
        """Return alpha, with shape (1,) or one per word, and A, the total over all words."""

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return sum_w log Gamma(alpha_w + S_w) - log Gamma(A + S.)."""
        alpha, total = self.base_measure(statistics.shape[1] - 1)
        numerator: Floats = gammaln(alpha + statistics[:, :-1]).sum(axis=1)
        return numerator - gammaln(total + statistics[:, -1])

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return log p(x | cluster) without log h(x): the urn, drawn token by token.

        Logarithms of single tokens are summed, those of frequent words and of the length with
        `log_rising`: differences of log-gammas would lose 1e-8 for clusters of 1e7 words.
        """
        alpha, total = self.base_measure(statistics.shape[1] - 1)
        columns, counts = np.asarray(row.columns)[:-1], row.values[:-1]
        few = counts < LONG_RUN
        repeats = counts[few].astype(np.int64)
        words = np.repeat(columns[few], repeats)
        seen = np.arange(words.size) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        base = alpha[words] if alpha.size > 1 else alpha
        log_predictive: Floats = np.log(statistics[:, words] + (base + seen)).sum(axis=1)
        for word, count in zip(columns[~few], counts[~few], strict=True):
            base = alpha[word] if alpha.size > 1 else alpha
            log_predictive += log_rising(statistics[:, word] + base, count)
        return log_predictive - log_rising(statistics[:, -1] + total, row.values[-1])

    def pool(self, rows: csr_array) -> WordPool:
        """Return a pool of clusters to be joined, as sparse rows."""
        return WordPool.of(self, rows)

    def nearly_odds(self, rows: csr_array, pairs: NDArray[np.int64]) -> Floats:
        """Return the log odds of joining pairs, from the words that both have."""
        pool = WordPool.of(self, rows, least=0.0)
        return pool.pair_odds(pairs)

    def n_tokens(self, rows: Any) -> int:
        """Return the number of words in all documents."""
        return int(self.entries(rows).counts.sum())

    def typicality(self, rows: Any) -> Typicality:
        """Return how typical documents are, by the mean gain per token."""
        return self.entries(rows).typicality()

    def log_orders(self, rows: Any) -> Floats:
        """Return log N! - sum_w log x_w! for each document."""
        return self.entries(rows).log_orders()

    def entries(self, rows: Any) -> Entries:
        """Return the counts of encoded documents."""
        matrix: Any = rows
        matrix = csr_array(matrix) if issparse(rows) else as_counts(rows)
        return Entries(matrix.data.astype(np.float64), matrix.indptr)

    def learnt(self, scale: float) -> dict[str, float]:
        """Return A, the total of the base measure."""
        return {"alpha_total": self.base_measure(self.n_located)[1]}

    def describe(self, names: Sequence[str], clusters: Portrayed) -> WordFeatures:
        """Return the words that describe clusters to people."""
        return WordFeatures(self.mean_names(names), clusters)

    def expected_score(self, batch: Batch, draw: Draw, score: Score) -> tuple[Floats, Floats]:
        """Return the log predictives expected of documents of the same lengths."""
        lengths = batch.kernel_rows.values[batch.kernel_rows.indptr[1:] - 1]
        grid = np.unique(lengths)
        if grid.size > LENGTHS:
            grid = np.unique(np.rint(np.geomspace(max(grid[0], 1.0), grid[-1], LENGTHS)))
        expected = [
            score(draw(length=int(length))) if length > 0 else (0.0, 1.0) for length in grid
        ]
        means, spreads = np.array(expected).T
        return np.interp(lengths, grid, means), np.interp(lengths, grid, spreads)

    def grown_cache(
        self,
        cache: Screen,
        table: Table,
        masses: Floats,
        n_clusters: int,
        n_kept: int,
        entries: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> Screen:
        """Return the screen with some levels raised; levels that are too high are still bounds."""
        raise_levels(cache, table, masses, n_clusters, n_kept, *entries)
        return cache

    def merged_cache(
        self, cache: Screen, table: Table, masses: Floats, slot: int, columns: NDArray[np.int64]
    ) -> Screen:
        """Return the screen with the levels of these words raised."""
        words = columns[columns < cache.rows.size]
        raise_cluster(cache, table, masses, slot, words)
        return cache

    def faded_cache(
        self, cache: Screen, table: Table, masses: Floats, n_clusters: int, *, exact: bool
    ) -> Screen:
        """Return the screen of lighter clusters; word bounds are lowered only now and then."""
        follow = lower if exact else lighten
        follow(cache, table, masses, n_clusters)
        return cache

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return E[theta_w] = (alpha_w + S_w) / (A + S.), shape (K, V)."""
        alpha, total = self.base_measure(statistics.shape[1] - 1)
        return (statistics[:, :-1] + alpha) / (statistics[:, -1:] + total)

    def shapes(self, statistics: Floats) -> Floats:
        """Return the Dirichlet parameters of documents in each cluster, shape (K, V)."""
        return statistics[:, :-1] + self.base_measure(statistics.shape[1] - 1)[0]

    def sample(
        self, statistics: Floats, rng: np.random.Generator, *, length: int = 100, **options: Any
    ) -> NDArray[np.int64]:
        """Draw one document of `length` words from the posterior predictive of each cluster.

        Parameters
        ----------
        statistics : ndarray of shape (K, V + 1)
            Summed sufficient statistics.
        rng : numpy.random.Generator
            Source of randomness.
        length : int
            Words per document.

        Returns
        -------
        counts : ndarray of shape (K, V)
        """
        if options:
            raise TypeError(f"{type(self).__name__}.sample takes length, not {', '.join(options)}")
        shape = self.shapes(statistics)
        # log Gamma(shape) = log Gamma(shape + 1) + log(uniform) / shape does not underflow.
        log_gammas = (
            np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape
        )
        return rng.multinomial(length, softmax(log_gammas, axis=1))


def log_rising(x: Floats, n: float) -> Floats:
    """Return log Gamma(x + n) - log Gamma(x) for each x (twin: ``kernels.special.log_rising``)."""
    head = np.arange(min(n, STIRLING_FROM))
    total: Floats = np.log(np.add.outer(x, head)).sum(axis=1)
    x, n = x + head.size, n - head.size
    y = x + n
    tail = _stirling_tail(y) - _stirling_tail(x)
    return total + (x - 0.5) * np.log1p(n / x) + n * np.log(y) - n + tail


def _stirling_tail(z: Floats) -> Floats:
    s = z**-2.0
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / z
