"""Documents: counts over a vocabulary."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln, softmax

import bnpstream.kernels.documents  # noqa: F401  (the loops over documents)
from bnpstream.kernels.arrays import SparseRows
from bnpstream.kernels.levels import Screen
from bnpstream.kernels.likelihoods import (
    LONG_RUN,
    AsymmetricDirichletMultinomial,
    SymmetricDirichletMultinomial,
)
from bnpstream.kernels.special import STIRLING_FROM
from bnpstream.kernels.table import Table
from bnpstream.likelihoods.base import Batch, Floats, Likelihood, Row
from bnpstream.likelihoods.counts import as_counts
from bnpstream.likelihoods.screening import make_screen

ALPHA_RANGE = (1e-30, 1e30)
"""Products of eight factors alpha + count must stay inside the range of a double."""


class Documents(Batch):
    """Encoded documents: sparse counts, and their length in the last entry of every row."""

    @cached_property
    def kernel_rows(self) -> SparseRows:
        """Return the arrays for compiled loops, with the tokens of words that occur again."""
        rows = self.sparse_rows()
        indptr, values = rows.indptr, rows.values
        repeated = values > 1.0
        repeated[indptr[1:] - 1] = False
        repeats = np.flatnonzero(repeated)
        repeat_ptr = np.searchsorted(repeats, indptr)
        long = values[repeats] >= LONG_RUN
        extra = np.where(long, 1, values[repeats] - 1.0).astype(np.int64)
        ends = np.append(0, np.cumsum(extra))
        seen = np.arange(1.0, ends[-1] + 1.0) - np.repeat(ends[:-1], extra)
        seen[ends[:-1][long]] = -values[repeats[long]]
        starts = np.repeat(indptr[:-1], np.diff(repeat_ptr))
        return rows._replace(
            repeat_ptr=repeat_ptr,
            repeats=repeats,
            token_ptr=ends[repeat_ptr],
            tokens=np.repeat(repeats - starts, extra).astype(np.uint32),
            seen=seen,
        )


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(Likelihood):
    """Multinomial documents with Dirichlet(alpha) word probabilities.

    x ~ Multinomial(N, theta), theta ~ Dirichlet(alpha_1..alpha_V). The sufficient statistics
    of a document are its counts and, in one last column, its length N. With A = sum_w alpha_w,

        log p(x | S) = log N! - sum_w log x_w!
                     + log Gamma(A + S.) - log Gamma(A + S. + N)
                     + sum_w log Gamma(alpha_w + S_w + x_w) - log Gamma(alpha_w + S_w).

    Parameters
    ----------
    alpha : float or array-like of shape (V,)
        Base measure: a symmetric one, or one value a word.

    Examples
    --------
    >>> from bnpstream import DirichletMultinomial
    >>> likelihood = DirichletMultinomial(alpha=0.5)
    >>> batch = likelihood.encode([[2, 0, 1], [0, 1, 0]])
    >>> likelihood.log_predictive(np.zeros((1, 4)), batch.row(1)).round(4)
    array([-1.0986])
    """

    alpha: ArrayLike = 0.1

    def __post_init__(self) -> None:
        try:
            alpha = np.asarray(self.alpha, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"alpha must be a number or one a word, got {self.alpha!r}") from None
        low, high = ALPHA_RANGE
        if alpha.ndim > 1 or alpha.size == 0:
            raise ValueError(
                f"alpha must be a number or one number a word, got an array of shape {alpha.shape}"
            )
        bad = ~((alpha >= low) & (alpha <= high))
        if bad.any():
            place = f"alpha[{int(np.argmax(bad))}]" if alpha.ndim else "alpha"
            value = float(alpha.reshape(-1)[int(np.argmax(bad))])
            raise ValueError(f"{place} must be > 0 and in [{low:g}, {high:g}], got {value!r}")

    def _base_measure(self, n_words: int) -> tuple[Floats, float]:
        """Return alpha with shape (1,) or (V,), and A = sum_w alpha_w."""
        alpha = np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))
        if np.ndim(self.alpha) == 0:
            return alpha, float(alpha[0]) * n_words
        if alpha.size != n_words:
            raise ValueError(
                f"alpha has {alpha.size} values, but the rows have {n_words} columns; "
                "give one number, or one number a column"
            )
        return alpha, float(alpha.sum())

    def encode(self, X: Any) -> Documents:
        """Return counts and length of every document, and the log multinomial coefficient.

        Parameters
        ----------
        X : array-like or sparse of shape (n, V)
            Whole counts >= 0; a document with no words is legal.

        Returns
        -------
        batch : Documents
            Sparse, with V + 1 columns; the last entry of every row is its length.
        """
        counts = as_counts(X)
        n, n_words = counts.shape
        self._base_measure(n_words)
        lengths = np.asarray(counts.sum(axis=1))
        places = counts.indptr[1:]
        indices = np.insert(counts.indices.astype(np.int64), places, n_words)
        indptr = counts.indptr.astype(np.int64) + np.arange(n + 1)
        values = np.insert(counts.data, places, lengths)
        coefficients = counts.copy()
        coefficients.data = gammaln(counts.data + 1.0)
        log_base = gammaln(lengths + 1.0) - np.asarray(coefficients.sum(axis=1))
        return Documents(csr_array((values, indices, indptr), shape=(n, n_words + 1)), log_base)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return sum_w log Gamma(alpha_w + S_w) - log Gamma(A + S.)."""
        alpha, total = self._base_measure(statistics.shape[1] - 1)
        numerator: Floats = gammaln(alpha + statistics[:, :-1]).sum(axis=1)
        return numerator - gammaln(total + statistics[:, -1])

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return log p(x | cluster) without log h(x): the urn drawn token by token.

        Logarithms of single tokens are summed, those of a word that occurs often, and of the
        length, by `log_rising`: differences of log-gammas would lose 1e-8 for clusters of 1e7
        words.
        """
        alpha, total = self._base_measure(statistics.shape[1] - 1)
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

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return E[theta_w] = (alpha_w + S_w) / (A + S.), shape (K, V)."""
        alpha, total = self._base_measure(statistics.shape[1] - 1)
        return (statistics[:, :-1] + alpha) / (statistics[:, -1:] + total)

    def sample(
        self, statistics: Floats, rng: np.random.Generator, *, length: int = 100, **options: Any
    ) -> NDArray[np.int64]:
        """Draw one document of `length` words from the posterior predictive of every cluster.

        Parameters
        ----------
        statistics : ndarray of shape (K, V + 1)
            Summed sufficient statistics.
        rng : numpy.random.Generator
            Source of randomness.
        length : int
            Words in every document.

        Returns
        -------
        counts : ndarray of shape (K, V)
        """
        if options:
            raise TypeError(f"DirichletMultinomial.sample takes length, not {', '.join(options)}")
        alpha, _ = self._base_measure(statistics.shape[1] - 1)
        shape = statistics[:, :-1] + alpha
        # log Gamma(shape) = log Gamma(shape + 1) + log(uniform) / shape does not underflow.
        log_gammas = (
            np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape
        )
        return rng.multinomial(length, softmax(log_gammas, axis=1))

    def kernel_parameters(
        self, n_statistics: int
    ) -> SymmetricDirichletMultinomial | AsymmetricDirichletMultinomial:
        """Return the parameters of the compiled score."""
        alpha, total = self._base_measure(n_statistics - 1)
        if np.ndim(self.alpha) == 0:
            return SymmetricDirichletMultinomial(float(alpha[0]), float(np.log(alpha[0])), total)
        return AsymmetricDirichletMultinomial(alpha, np.log(alpha), total)

    def cache(self, table: Table, masses: Floats, n_clusters: int) -> Screen:
        """Return upper bounds of every word's share of the score, two bytes a cluster."""
        alpha, total = self._base_measure(int(table.shape[0]) - 1)
        return make_screen(alpha, total, table, masses, n_clusters)


def log_rising(x: Floats, n: float) -> Floats:
    """Return log Gamma(x + n) - log Gamma(x) of every x (twin: ``kernels.special.log_rising``)."""
    head = np.arange(min(n, STIRLING_FROM))
    total: Floats = np.log(np.add.outer(x, head)).sum(axis=1)
    x, n = x + head.size, n - head.size
    y = x + n
    tail = _stirling_tail(y) - _stirling_tail(x)
    return total + (x - 0.5) * np.log1p(n / x) + n * np.log(y) - n + tail


def _stirling_tail(z: Floats) -> Floats:
    s = z**-2.0
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / z
