"""Bursty documents, which repeat their words more than their cluster does."""

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import bnpstream.kernels.words.bursty  # noqa: F401  (what documents add, compiled)
from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.words.dirichlet import BurstyDirichletMultinomial
from bnpstream.kernels.words.tables import (
    FIXED_POINT,
    LONG_RUN,
    NO_REPEATS,
    ROUNDS,
    STIRLING,
    damping,
    digamma_rise,
)
from bnpstream.likelihoods.batch import Row
from bnpstream.likelihoods.counts import as_counts
from bnpstream.likelihoods.multinomial import (
    ALPHA_RANGE,
    LEARN,
    DirichletMultinomial,
    Documents,
    mean_of,
)
from bnpstream.likelihoods.registry import register
from bnpstream.likelihoods.words import WordLikelihood, log_rising


class BurstyWords(WordLikelihood):
    """What bursty documents add to multinomial ones, whatever their base measure.

    Statistics are tables, the last their sum (``kernels.words.tables``).
    """

    latent: ClassVar[bool] = True

    def shapes(self, statistics: Floats) -> Floats:
        """Return the Dirichlet parameters of documents in each cluster, shape (K, V)."""
        total = self.base_measure(statistics.shape[1] - 1)[1]
        damped: Floats = damping(total + statistics[:, -1:], self.burstiness)
        return damped * super().shapes(statistics)

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return log p(x | cluster) without log h(x): the urn of damped counts.

        The two layers, Dir(s theta) and theta ~ Dir(alpha + T), are replaced by one with the same
        mean and covariances.
        """
        alpha, total = self.base_measure(statistics.shape[1] - 1)
        columns, counts = np.asarray(row.columns)[:-1], row.values[:-1]
        totals = total + statistics[:, -1]
        damped = damping(totals, self.burstiness)
        base = alpha[columns] if alpha.size > 1 else alpha
        shapes = damped[:, None] * (base + statistics[:, columns])
        found: Floats = -log_rising(damped * totals, row.values[-1])
        for shape, count in zip(shapes.T, counts, strict=True):
            found += log_rising(shape, count)
        return found

    def contributions(self, statistics: Floats, row: Row, slots: NDArray[np.int64]) -> Floats:
        """Return the expected tables of each word in some clusters, and their sum.

        Given the total number of tables, words are independent; it is found in a few rounds.
        """
        alpha, total = self.base_measure(statistics.shape[1] - 1)
        columns, counts = np.asarray(row.columns), row.values[:-1]
        before = statistics[:, columns][slots]
        base = before[:, :-1] + (alpha[columns[:-1]] if alpha.size > 1 else alpha)
        totals = total + before[:, -1:]
        lines, again = np.ones(before.shape), np.flatnonzero(counts > 1.0)
        n_tables = np.full(totals.shape, float(counts.size))
        for _ in range(ROUNDS):
            rate = 1.0 / (self.burstiness * (totals + n_tables - 0.5))
            for j in again:
                lines[:, j] = tables_of(float(counts[j]), base[:, j], rate[:, 0])
            n_tables = counts.size + (lines[:, again] - 1.0).sum(axis=1, keepdims=True)
        lines[:, -1:] = n_tables
        return lines


def tables_of(x: float, base: Floats, rate: Floats) -> Floats:
    """Return E[t | x] in each cluster (twin: ``kernels.words.tables.tables_of``)."""
    plain = rate * (base + LONG_RUN) > NO_REPEATS
    rate = np.where(plain, 1.0, rate)
    base = np.where(plain, 1.0, base)
    if x >= LONG_RUN:
        found = np.full(base.shape, x)
        for _ in range(FIXED_POINT):
            u = rate * (base + found)
            found = u * digamma_rise(u, x)
        return np.where(plain, x, found)
    tables = np.arange(1, int(x) + 1)
    factors = rate[:, None] * (base[:, None] + tables[:-1])
    terms = np.cumprod(np.hstack([np.ones((base.size, 1)), factors]), axis=1)
    weights = STIRLING[int(x), 1 : int(x) + 1] * terms
    return np.where(plain, x, weights @ tables / weights.sum(axis=1))


GUESSED_DOCUMENT_STRENGTH = 500.0
"""First guess of s."""
DOCUMENTS_OF_A_TOPIC = 50.0
"""c in average documents: with this many, a cluster's own words outweigh the base measure."""


def strength_of_topics(n_words: float, n_documents: int) -> float:
    """Return c, given the number of words per document, counting each word once."""
    return DOCUMENTS_OF_A_TOPIC * max(n_words / max(n_documents, 1), 1.0)


class BurstyDocuments(Documents):
    """Encoded documents whose base measure counts each word once per document."""

    def totals(self, n_columns: int) -> Floats:
        """Return the number of documents with each of the first columns."""
        once = csr_array(self.statistics)
        once.data = np.ones_like(once.data)
        totals: Floats = np.asarray(self.row_weights @ once)
        return totals[:n_columns]


@register("bursty")
@dataclass(frozen=True, eq=False)
class BurstyMultinomial(BurstyWords, DirichletMultinomial):
    """Documents that repeat their words: two layers of Dirichlet word probabilities.

    theta_k ~ Dir(alpha) are those of a cluster, theta_d ~ Dir(s theta_k) those of one of its
    documents, x ~ Multinomial(N, theta_d): a hierarchical Dirichlet compound multinomial. A
    document repeats words it has used before, even if they are rare in its cluster; with infinite s
    this is `DirichletMultinomial`.

    A document adds to its cluster the expected number of its words that were drawn anew from
    theta_k, its *tables* T, 1 <= t_w <= x_w. A score replaces both layers by one with the same mean
    and covariances: with C = A + T.,

        g = s / (s + C + 1),    log p(x | T) = log N! - sum_w log x_w!
            + log Gamma(g C) - log Gamma(g C + N)
            + sum_w log Gamma(g (alpha_w + T_w) + x_w) - log Gamma(g (alpha_w + T_w)).

    Parameters
    ----------
    alpha : float, array-like of shape (V,) or "learn"
        Base measure: one number for all words, or one per word. By default alpha = c m: m from the
        number of documents with a word, and c such that the words of fifty documents outweigh it. A
        larger c gives fewer clusters.
    document_strength : float or "learn"
        s: the smaller it is, the more a document repeats its own words; infinite for a multinomial.
        By default learnt from the stream, by how well rows are predicted.
    relocates : bool
        Whether to update m from the words seen so far whenever s is learnt again. Set if alpha is
        learnt; an alpha that is given stays.

    Examples
    --------
    >>> from bnpstream import BurstyMultinomial
    >>> likelihood = BurstyMultinomial(alpha=0.5, document_strength=2.0)
    >>> batch = likelihood.encode([[4, 0, 1], [0, 1, 0]])
    >>> likelihood.contributions(np.zeros((1, 4)), batch.row(0), np.zeros(1, np.int64)).round(2)
    array([[2.11, 1.  , 3.11]])
    """

    document_strength: float | Literal["learn"] = LEARN
    relocates: bool = field(default=False, repr=False)
    batch_class: ClassVar = BurstyDocuments

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = ALPHA_RANGE
        s: Any = self.document_strength
        if s == LEARN:
            return
        if isinstance(s, bool) or not (isinstance(s, Real) and low <= float(s) <= high):
            raise ValueError(
                f'document_strength must be a number in [{low:g}, {high:g}] or "learn", got {s!r}'
            )

    @property
    def burstiness(self) -> float:
        """Return 1/s."""
        if self.document_strength == LEARN:
            raise ValueError(
                'document_strength="learn" is not learnt yet: call informed(X) with some rows'
            )
        return 1.0 / float(self.document_strength)

    @property
    def is_informed(self) -> bool:
        """Return whether alpha and s are known."""
        return super().is_informed and self.document_strength != LEARN

    def informed(self, X: Any) -> "BurstyMultinomial":
        """Return this likelihood with alpha = c m from some rows, and a first guess of s."""
        found, counts = self, as_counts(X)
        if isinstance(self.alpha, str):
            once = np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.float64)
            total = strength_of_topics(once.sum(), counts.shape[0])
            found = replace(found, alpha=total * mean_of(once), relocates=True)
        if self.document_strength == LEARN:
            found = replace(found, document_strength=GUESSED_DOCUMENT_STRENGTH)
        return found

    @property
    def n_located(self) -> int:
        """Return V, if alpha is learnt, or 0."""
        return super().n_located if self.relocates else 0

    @property
    def scale_is_open(self) -> bool:
        """Return whether s is to be learnt."""
        return self.document_strength == LEARN

    def rescaled(self, factor: float) -> "BurstyMultinomial":
        """Return this likelihood with s times a factor."""
        return replace(self, document_strength=factor / self.burstiness)

    def learnt(self, scale: float) -> dict[str, float]:
        """Return A, the total of the base measure, and s."""
        s = 1.0 / self.burstiness
        return (super().learnt(scale) if self.relocates else {}) | {"document_strength": s}

    def kernel_parameters(  # type: ignore[override]
        self, n_statistics: int
    ) -> BurstyDirichletMultinomial:
        """Return the parameters of the compiled score."""
        alpha, total = self.base_measure(n_statistics - 1)
        every = np.broadcast_to(alpha, n_statistics - 1).copy()
        return BurstyDirichletMultinomial(every, np.log(every), total, self.burstiness)
