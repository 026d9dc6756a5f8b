"""Documents: counts over a vocabulary."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import gammaln

import bnpstream.kernels.words.documents  # noqa: F401  (the loops over documents)
from bnpstream.kernels.arrays import Floats, SparseRows
from bnpstream.kernels.statistics.table import Table
from bnpstream.kernels.words.dirichlet import (
    AsymmetricDirichletMultinomial,
    SymmetricDirichletMultinomial,
)
from bnpstream.kernels.words.levels import Screen
from bnpstream.kernels.words.tables import damping
from bnpstream.kernels.words.tokens import with_tokens
from bnpstream.likelihoods.base import InputTraits
from bnpstream.likelihoods.batch import Batch
from bnpstream.likelihoods.cells import WrongWidthError
from bnpstream.likelihoods.counts import as_counts
from bnpstream.likelihoods.registry import register
from bnpstream.likelihoods.word_screen import make_screen, words_of
from bnpstream.likelihoods.words import WordLikelihood

LEARN: Literal["learn"] = "learn"
GUESSED_STRENGTH, GUESSED_ALPHA = 400.0, 0.5
"""First guess of c, limited to the second number on average for the words that are used."""
SMOOTHING, MOST_SMOOTHING = 0.5, 0.2
"""Added to the count of every word, because unused words may still occur; in total at most the
second number times the words counted, because many columns may never be used."""
ALPHA_RANGE = (1e-30, 1e30)
"""Products of eight factors alpha + count must stay in the range of a double."""


class Documents(Batch):
    """Encoded documents: sparse counts, with the length in the last entry of each row."""

    @cached_property
    def kernel_rows(self) -> SparseRows:
        """Return the arrays for compiled loops, with the tokens of repeated words."""
        return with_tokens(self.sparse_rows())


@register("multinomial")
@dataclass(frozen=True, eq=False)
class DirichletMultinomial(WordLikelihood):
    """Multinomial documents with Dirichlet(alpha) word probabilities.

    x ~ Multinomial(N, theta), theta ~ Dirichlet(alpha_1..alpha_V). The sufficient statistics
    of a document are its counts and, in one last column, its length N. With A = sum_w alpha_w,

        log p(x | S) = log N! - sum_w log x_w!
                     + log Gamma(A + S.) - log Gamma(A + S. + N)
                     + sum_w log Gamma(alpha_w + S_w + x_w) - log Gamma(alpha_w + S_w).

    Parameters
    ----------
    alpha : float, array-like of shape (V,) or "learn"
        Base measure: one number for all words, or one per word. By default `StreamingMixture`
        learns alpha_w = c m_w from the stream (``bnpstream.search``): m from word frequencies, c by
        how well rows are predicted.

    Examples
    --------
    >>> from bnpstream import DirichletMultinomial
    >>> likelihood = DirichletMultinomial(alpha=0.5)
    >>> batch = likelihood.encode([[2, 0, 1], [0, 1, 0]])
    >>> likelihood.log_predictive(np.zeros((1, 4)), batch.row(1)).round(4)
    array([-1.0986])
    """

    alpha: ArrayLike | Literal["learn"] = LEARN
    batch_class: ClassVar = Documents

    def __post_init__(self) -> None:
        if isinstance(self.alpha, str):
            if self.alpha != LEARN:
                raise ValueError(
                    f'alpha must be a number, one per word, or "learn", got {self.alpha!r}'
                )
            return
        try:
            alpha = np.asarray(self.alpha, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"alpha must be a number, or one per word, got {self.alpha!r}"
            ) from None
        low, high = ALPHA_RANGE
        if alpha.ndim > 1 or alpha.size == 0:
            raise ValueError(
                f"alpha must be a number or one per word, got an array of shape {alpha.shape}"
            )
        bad = ~((alpha >= low) & (alpha <= high))
        if bad.any():
            place = f"alpha[{int(np.argmax(bad))}]" if alpha.ndim else "alpha"
            value = float(alpha.reshape(-1)[int(np.argmax(bad))])
            raise ValueError(f"{place} must be > 0 and in [{low:g}, {high:g}], got {value!r}")

    @property
    def input(self) -> InputTraits:
        """Return what rows this family takes: counts."""
        return InputTraits(positive_only=True)

    @property
    def is_informed(self) -> bool:
        """Return whether alpha is known."""
        return not isinstance(self.alpha, str)

    def check_rows(self, X: Any) -> None:
        """Raise ValueError if rows are not counts."""
        as_counts(X)

    def informed(self, X: Any) -> "DirichletMultinomial":
        """Return this likelihood with alpha = c m: m from some rows, c a first guess.

        `StreamingMixture` finds the c that predicts best (``bnpstream.search``).
        """
        if self.is_informed:
            return self
        totals = np.asarray(as_counts(X).sum(axis=0), np.float64)
        guess = guessed_strength(int(np.count_nonzero(totals)))
        return replace(self, alpha=guess * mean_of(totals))

    @property
    def scale_is_open(self) -> bool:
        """Return whether alpha is to be learnt."""
        return not self.is_informed

    def rescaled(self, factor: float) -> "DirichletMultinomial":
        """Return this likelihood with alpha times a factor."""
        return replace(self, alpha=factor * np.asarray(self.alpha, dtype=np.float64))

    @property
    def n_located(self) -> int:
        """Return V if there is one alpha per word, else 0."""
        return np.size(self.alpha) if np.ndim(self.alpha) == 1 else 0

    def relocated(self, totals: Floats) -> "DirichletMultinomial":
        """Return this likelihood with the same total alpha, divided by word frequencies."""
        if totals.size == 0:
            return self
        total = self.base_measure(totals.size)[1]
        return replace(self, alpha=total * mean_of(np.maximum(totals, 0.0)))

    def base_measure(self, n_words: int) -> tuple[Floats, float]:
        """Return alpha with shape (1,) or (V,), and A = sum_w alpha_w."""
        if isinstance(self.alpha, str):
            raise ValueError('alpha="learn" is not learnt yet: call informed(X) with some rows')
        alpha = np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))
        if np.ndim(self.alpha) == 0:
            return alpha, float(alpha[0]) * n_words
        if alpha.size != n_words:
            raise WrongWidthError(
                f"alpha has {alpha.size} values, but the rows have {n_words} columns; "
                "give one number, or one number per column"
            )
        return alpha, float(alpha.sum())

    def encode(self, X: Any) -> Documents:
        """Return counts and length of each document, and the log multinomial coefficient.

        Parameters
        ----------
        X : array-like or sparse of shape (n, V)
            Whole counts >= 0; documents without words are allowed.

        Returns
        -------
        batch : Documents
            Sparse, with V + 1 columns; the last entry of each row is its length.
        """
        counts = as_counts(X)
        n, n_words = counts.shape
        self.base_measure(n_words)
        lengths = np.asarray(counts.sum(axis=1))
        places = counts.indptr[1:]
        indices = np.insert(counts.indices.astype(np.int64), places, n_words)
        indptr = counts.indptr.astype(np.int64) + np.arange(n + 1)
        values = np.insert(counts.data, places, lengths)
        coefficients = counts.copy()
        coefficients.data = gammaln(counts.data + 1.0)
        log_base = gammaln(lengths + 1.0) - np.asarray(coefficients.sum(axis=1))
        statistics = csr_array((values, indices, indptr), shape=(n, n_words + 1))
        return self.batch_class(statistics, log_base)

    def kernel_parameters(
        self, n_statistics: int
    ) -> SymmetricDirichletMultinomial | AsymmetricDirichletMultinomial:
        """Return the parameters of the compiled score."""
        alpha, total = self.base_measure(n_statistics - 1)
        if np.ndim(self.alpha) == 0:
            return SymmetricDirichletMultinomial(float(alpha[0]), float(np.log(alpha[0])), total)
        return AsymmetricDirichletMultinomial(alpha, np.log(alpha), total)

    def cache(self, table: Table, masses: Floats, n_clusters: int) -> Screen:
        """Return upper bounds of each word's share of the score, two bytes per cluster."""
        n_words = int(table.shape[0]) - 1
        alpha, total = self.base_measure(n_words)
        damped = damping(total, self.burstiness)
        words = words_of(np.broadcast_to(alpha, n_words), damped)
        return make_screen(words, total, table, masses, n_clusters, self.burstiness)


def guessed_strength(n_words: int) -> float:
    """Return the first guess of c, given the number of words in use."""
    return min(GUESSED_STRENGTH, GUESSED_ALPHA * max(n_words, 2))


def mean_of(totals: Floats) -> Floats:
    """Return m: smoothed word frequencies."""
    words = max(float(totals.sum()), 1.0)
    smooth = totals + min(SMOOTHING, MOST_SMOOTHING * words / totals.size)
    mean: Floats = smooth / smooth.sum()
    return mean
