"""Documents over a growing vocabulary."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

import bnpstream.kernels.words.documents  # noqa: F401  (the loops over documents)
from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.statistics.table import Table
from bnpstream.kernels.text.bags import Bags
from bnpstream.kernels.words.dirichlet import (
    AsymmetricDirichletMultinomial,
    BurstyDirichletMultinomial,
)
from bnpstream.kernels.words.levels import Screen
from bnpstream.kernels.words.tables import damping
from bnpstream.likelihoods.bursty import BurstyWords
from bnpstream.likelihoods.documents import (
    UNSEEN,
    BurstyDocumentBatch,
    DocumentBatch,
    as_document,
    as_documents,
)
from bnpstream.likelihoods.multinomial import guessed_strength, mean_of
from bnpstream.likelihoods.open_vocabulary import BurstyVocabulary, OpenVocabulary
from bnpstream.likelihoods.typicality import Entries
from bnpstream.likelihoods.word_screen import Words, make_screen, octave_of
from bnpstream.likelihoods.words import WordLikelihood

if TYPE_CHECKING:
    from bnpstream.likelihoods.vocabulary import Vocabulary

TWICE = 1.5
"""A summed count below this belongs to a word that occurred once."""
MOST_UNKNOWN = 0.5
"""Largest share of the base measure for unknown words."""


class VocabularyLikelihood(WordLikelihood):
    """Multinomial documents over a growing vocabulary.

    Like `DirichletMultinomial`, with one column for all unknown words and a total that includes
    them. Statistics have one column for each of: unknown words, known words, length.

    Parameters
    ----------
    vocabulary : Vocabulary
        The words.
    base : OpenVocabulary
        Total of the base measure, and its rest for unknown words.
    capacity : int
        Words for which there is space.
    given : ndarray, optional
        Alphas of the known words.
    """

    batch_class: ClassVar[type[DocumentBatch]] = DocumentBatch

    def __init__(
        self,
        vocabulary: "Vocabulary",
        base: OpenVocabulary,
        capacity: int,
        given: Floats | None = None,
    ) -> None:
        self.vocabulary, self.base, self.total = vocabulary, base, float(base.A)
        alphas = np.empty(0) if given is None else given
        # All alphas of the first `capacity` words lie between these.
        least = float(alphas.min(initial=base.alpha(capacity, 1)))
        most = float(alphas.max(initial=base.alpha(0, 1)))
        self._damped = damping(base.A, self.burstiness)
        low, high = (int(octave_of(self._damped * alpha)) for alpha in (least, most))
        octaves = np.arange(low, high + 1)
        self.alpha = np.full(capacity + 1, least)
        self._log_alpha = np.log(self.alpha)
        classes = np.zeros(capacity + 1, np.int32)
        self._screened = Words(1.0 / self.alpha, classes, octaves, least)
        self.give(slice(1, alphas.size + 1), alphas)
        self.give_rest(base.rest(len(vocabulary)))

    def give(self, numbers: slice, alpha: Floats | float) -> None:
        """Set the base measure of some words."""
        self.alpha[numbers] = alpha
        self._log_alpha[numbers] = np.log(alpha)
        self._screened.inverse_alpha[numbers] = 1.0 / np.asarray(alpha)
        octaves = octave_of(self._damped * alpha)
        self._screened.classes[numbers] = octaves - self._screened.octaves[0]

    def give_rest(self, alpha: float) -> None:
        """Set the base measure of all unknown words; no cluster has any of them."""
        self.alpha[UNSEEN], self._log_alpha[UNSEEN] = alpha, np.log(alpha)

    @property
    def _given(self) -> Floats:
        """Return the alphas of the known words."""
        return self.alpha[1 : len(self.vocabulary) + 1]

    def _with(self, base: OpenVocabulary, given: Floats) -> "VocabularyLikelihood":
        return documents_over(self.vocabulary, base, self.alpha.size - 1, given)

    def grown(self, size: int) -> "VocabularyLikelihood":
        """Return the same likelihood with space for `size` words and as many again."""
        return documents_over(self.vocabulary, self.base, 2 * size, self._given)

    def rescaled(self, factor: float) -> "VocabularyLikelihood":
        """Return this likelihood with A and every alpha times a factor."""
        return self._with(replace(self.base, total=factor * self.total), factor * self._given)

    def guessed(self, batch: DocumentBatch) -> "VocabularyLikelihood":
        """Return this likelihood with a first guess of the base measure, from some documents."""
        guess = guessed_strength(len(self.vocabulary)) / self.total
        return self.rescaled(guess).relocated(batch.totals(self.n_located))

    @property
    def n_located(self) -> int:
        """Return the number of columns that `relocated` uses: unknown words, and known ones."""
        return len(self.vocabulary) + 1

    def relocated(self, totals: Floats) -> "VocabularyLikelihood":
        """Return this likelihood with the same total A, divided by word frequencies.

        Unknown words get what Good and Turing expect of them: the share of tokens whose word
        occurred once.
        """
        words, known = np.maximum(totals[1:], 0.0), len(self.vocabulary)
        if known == 0:
            return self
        once = np.count_nonzero((words > 0.0) & (words < TWICE))
        share = min((once + 1.0) / (words.sum() + 2.0), MOST_UNKNOWN)
        spread = float(known / (share**-0.5 - 1.0))
        base = replace(self.base, spread=spread, total=self.total)
        return self._with(base, (self.total - base.rest(known)) * mean_of(words))

    def log_marginal_sparse(self, rows: csr_array) -> Floats:
        """Return the log marginal likelihood of (K, D) statistics, from the words they have."""
        at_end = rows.indices == rows.shape[1] - 1
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        alpha, counts = self.alpha[rows.indices[~at_end]], rows.data[~at_end]
        gains = gammaln(alpha + counts) - gammaln(alpha)
        words = np.bincount(owner[~at_end], gains, minlength=rows.shape[0])
        lengths = np.bincount(owner[at_end], rows.data[at_end], minlength=rows.shape[0])
        return words + gammaln(self.total) - gammaln(self.total + lengths)

    def entries(self, rows: Any) -> Entries:
        """Return the counts of encoded documents."""
        if isinstance(rows, Bags):
            return Entries(rows.counts.astype(np.float64), rows.indptr)
        documents = [as_document(row, f"document {i}") for i, row in enumerate(rows)]
        counts = [count for document in documents for count in document.values()]
        return Entries(np.array(counts, np.float64), np.cumsum([0, *map(len, documents)]))

    def mean_names(self, names: Sequence[str]) -> list[str]:
        """Return the known words; `posterior_mean` has all unknown words before them."""
        return [str(word) for word in self.vocabulary.words]

    def batch_of(self, arrays: dict[str, NDArray[Any]]) -> DocumentBatch:
        """Return the rows that `DocumentBatch.arrays` described."""
        return self.batch_class(**arrays)

    def base_measure(self, n_words: int) -> tuple[Floats, float]:
        """Return alpha of the unknown words and the first `n_words` - 1 known ones, and A."""
        return self.alpha[:n_words], self.total

    def encode(self, X: Any) -> DocumentBatch:
        """Return documents, with words outside the vocabulary as unknown."""
        return self.vocabulary.batch(as_documents(X))

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Any:
        """Draw one document from the posterior predictive of each cluster, as counts by word.

        Unknown words are counted under None.
        """
        names = [None, *self.vocabulary.words]
        counts = super().sample(statistics, rng, **options)
        return [{names[j]: int(row[j]) for j in np.flatnonzero(row)} for row in counts]

    def kernel_parameters(self, n_statistics: int) -> Any:
        """Return the parameters of the compiled score."""
        return AsymmetricDirichletMultinomial(self.alpha, self._log_alpha, self.total)

    def cache(self, table: Table, masses: Floats, n_clusters: int) -> Screen:
        """Return upper bounds of each word's share of the score, two bytes per cluster."""
        words, total = self._screened, self.total
        return make_screen(words, total, table, masses, n_clusters, self.burstiness)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vocabulary.base}, {len(self.vocabulary)} words)"


class BurstyVocabularyLikelihood(BurstyWords, VocabularyLikelihood):
    """Bursty documents over a growing vocabulary, like `BurstyMultinomial`."""

    base: BurstyVocabulary
    batch_class: ClassVar[type[DocumentBatch]] = BurstyDocumentBatch

    @property
    def burstiness(self) -> float:
        """Return 1/s."""
        return 1.0 / self.base.document_strength

    def rescaled(self, factor: float) -> VocabularyLikelihood:
        """Return this likelihood with s times a factor."""
        return self._with(
            replace(self.base, document_strength=factor / self.burstiness), self._given
        )

    def guessed(self, batch: DocumentBatch) -> VocabularyLikelihood:
        """Return this likelihood with a first guess of the base measure, from some documents."""
        return self.relocated(batch.totals(self.n_located))

    def learnt(self, scale: float) -> dict[str, float]:
        """Return A, the total of the base measure, and s."""
        return super().learnt(scale) | {"document_strength": 1.0 / self.burstiness}

    def kernel_parameters(self, n_statistics: int) -> BurstyDirichletMultinomial:
        """Return the parameters of the compiled score."""
        return BurstyDirichletMultinomial(self.alpha, self._log_alpha, self.total, self.burstiness)


def documents_over(
    vocabulary: "Vocabulary", base: OpenVocabulary, capacity: int, given: Floats | None = None
) -> VocabularyLikelihood:
    """Return the likelihood of documents over a vocabulary, bursty if the base measure is."""
    bursty = isinstance(base, BurstyVocabulary)
    family = BurstyVocabularyLikelihood if bursty else VocabularyLikelihood
    return family(vocabulary, base, capacity, given)
