"""Growing vocabularies: words are numbered, and given their alpha, as they appear."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

import bnpstream.kernels.words.documents  # noqa: F401  (the loops over documents)
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.kernels.statistics.table import Table
from bnpstream.kernels.text.bags import Bags
from bnpstream.kernels.text.bags import Words as Lexicon
from bnpstream.kernels.words.dirichlet import (
    AsymmetricDirichletMultinomial,
    BurstyDirichletMultinomial,
)
from bnpstream.kernels.words.levels import Screen
from bnpstream.kernels.words.tables import damping
from bnpstream.likelihoods.bursty import GUESSED_DOCUMENT_STRENGTH, BurstyWords
from bnpstream.likelihoods.documents import (
    UNSEEN,
    BurstyDocumentBatch,
    Document,
    DocumentBatch,
    as_document,
    as_documents,
)
from bnpstream.likelihoods.multinomial import ALPHA_RANGE, guessed_strength, mean_of
from bnpstream.likelihoods.registry import register
from bnpstream.likelihoods.typicality import Entries
from bnpstream.likelihoods.word_screen import Words, make_screen, octave_of
from bnpstream.likelihoods.words import WordLikelihood

FIRST_CAPACITY = 1024
"""Words for which arrays have space at first; they double."""
TOTAL_PER_WORD = 0.15
"""Default of A as a multiple of `spread`: alpha is then .3 at the start of the vocabulary."""


TWICE = 1.5
"""A summed count below this belongs to a word that occurred once."""
MOST_UNKNOWN = 0.5
"""Largest share of the base measure for unknown words."""


@register()
@dataclass(frozen=True)
class OpenVocabulary:
    """Base measure over an open vocabulary: a fixed total, given out as words appear.

    When J words are known, the rest for all others is

        R(J) = A (g / (J + g))^2,

    and the m words that a document adds get (R(J) - R(J + m)) / m each, permanently. The sum of all
    alphas and the rest is always A (``docs/vocabulary.md``).

    Parameters
    ----------
    spread : float
        g: after this many words, a quarter of the base measure is left; about the number of words
        in the first hundred documents.
    total : float, optional
        A: how many words the base measure is worth in a cluster. Default .15 `spread`.

    Examples
    --------
    >>> from bnpstream.likelihoods import OpenVocabulary
    >>> base = OpenVocabulary(spread=100, total=40)
    >>> base.rest(0), base.rest(100)
    (40.0, 10.0)
    >>> round(60 * base.alpha(0, 60) + 40 * base.alpha(60, 40) + base.rest(100), 12)
    40.0
    """

    spread: float
    total: float | None = None

    def __post_init__(self) -> None:
        low, high = ALPHA_RANGE
        for name, value in asdict(self).items():
            known = value is not None or name != "total"
            if known and not (isinstance(value, int | float) and low < value < high):
                raise ValueError(f"{name} must be a number > 0, got {value!r}")

    @property
    def A(self) -> float:  # noqa: N802  (its name in the formulas)
        """Return A, the total."""
        return TOTAL_PER_WORD * self.spread if self.total is None else self.total

    def rest(self, known: int) -> float:
        """Return R(J): the alpha of all words other than the `known` ones."""
        return self.A * (self.spread / (known + self.spread)) ** 2

    def alpha(self, known: int, new: int) -> float:
        """Return (R(J) - R(J + m)) / m for m = `new` words, without subtracting."""
        before, after = known + self.spread, known + new + self.spread
        return self.A * (self.spread / before) * (self.spread / after) * (1 / before + 1 / after)


@register()
@dataclass(frozen=True)
class BurstyVocabulary(OpenVocabulary):
    """Base measure of bursty documents (`BurstyMultinomial`) with a growing vocabulary.

    Parameters
    ----------
    spread, total
        As in `OpenVocabulary`.
    document_strength : float
        s.
    """

    document_strength: float = GUESSED_DOCUMENT_STRENGTH


class Vocabulary:
    """Words in order of appearance, each with the alpha it was given.

    Parameters
    ----------
    base : OpenVocabulary
        Determines the alpha of new words.

    Attributes
    ----------
    words : list
        Word j has number j + 1.
    numbers : dict
        Numbers by word.
    likelihood : VocabularyLikelihood
        Likelihood of documents over this vocabulary; replaced whenever its arrays must grow.
    """

    def __init__(self, base: OpenVocabulary) -> None:
        self.words: list[Hashable] = []
        self.numbers: dict[Hashable, int] = {}
        self.likelihood = documents_over(self, base, FIRST_CAPACITY)
        self._numbered = _Numbered(None, 0)

    @property
    def base(self) -> OpenVocabulary:
        """Return the base measure of new words."""
        return self.likelihood.base

    def __len__(self) -> int:
        return len(self.words)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return words and base measure as arrays; ValueError if a word is not a string."""
        words = packed("vocabulary", require_words(self.words))
        return {**words, "vocabulary.alpha": self.likelihood.alpha}

    @classmethod
    def of(cls, base: OpenVocabulary, arrays: dict[str, NDArray[Any]]) -> "Vocabulary":
        """Return the vocabulary that `arrays` described."""
        found = cls(base)
        words = unpacked("vocabulary", arrays)
        found.words, found.numbers = list(words), {word: j for j, word in enumerate(words, start=1)}
        alpha = arrays["vocabulary.alpha"]
        given = alpha[1 : len(words) + 1]
        found.likelihood = documents_over(found, base, alpha.size - 1, given)
        return found

    def add(self, documents: Sequence[Document]) -> None:
        """Give numbers to new words, document by document.

        Within a document they are sorted, so the order in which it lists them does not matter.
        """
        if isinstance(documents, Bags):
            self._add_bags(documents)
            return
        is_known, new = self.numbers.__contains__, list[list[Hashable]]()
        fresh = set[Hashable]()
        for document in documents:
            if not all(map(is_known, document)):
                unknown = [w for w in document if w not in self.numbers and w not in fresh]
                new.append(sorted(unknown, key=repr))
                fresh.update(unknown)
        self._append(filter(None, new))

    def _add_bags(self, bags: Bags) -> None:
        numbers = self._numbers_of(bags.words)
        unknown = np.flatnonzero(numbers[bags.ids] == UNSEEN)
        ids, first = np.unique(bags.ids[unknown], return_index=True)
        rows = np.searchsorted(bags.indptr, unknown[first], side="right") - 1
        words = bags.words.spelled(ids.tolist())
        listed = sorted(zip(rows.tolist(), map(repr, words), words, ids.tolist(), strict=True))
        new = groupby(listed, key=itemgetter(0))
        numbers[[id for *_, id in listed]] = len(self) + 1 + np.arange(len(listed))
        self._append([[word for _, _, word, _ in group] for _, group in new])
        self._numbered.n_known = len(self)

    def _numbers_of(self, lexicon: Lexicon) -> Integers:
        """Return the number of each word of a lexicon, `UNSEEN` for unknown ones."""
        if self._numbered.lexicon is not lexicon.lexicon:
            self._numbered = _Numbered(lexicon.lexicon, len(self))
        numbered = self._numbered
        size = numbered.numbers.size
        if size < lexicon.size:
            numbered.numbers = np.append(numbered.numbers, np.zeros(lexicon.size - size, np.int64))
        if numbered.n_known < len(self):  # other documents may have added words
            asked = np.flatnonzero(numbered.numbers == UNSEEN)
        else:
            asked = np.arange(size, lexicon.size)
        found = map(self.numbers.get, lexicon.spelled(asked.tolist()))
        numbered.numbers[asked] = [number or UNSEEN for number in found]
        numbered.n_known = len(self)
        return numbered.numbers

    def batch(self, documents: Sequence[Document]) -> DocumentBatch:
        """Return documents with their words numbered; unknown words are `UNSEEN`."""
        batch_class = self.likelihood.batch_class
        if isinstance(documents, Bags):
            return batch_class.of_bags(documents, self._numbers_of(documents.words))
        return batch_class.of(documents, self.numbers)

    def _append(self, new: Iterable[list[Hashable]]) -> None:
        """Add the words of documents, one list each; those of one document share an alpha."""
        alphas: list[float] = []
        for words in new:
            known = len(self.words)
            size = known + len(words)
            if size >= self.likelihood.alpha.size:
                self._give(alphas)
                self.likelihood, alphas = self.likelihood.grown(size), []
            alphas += [self.base.alpha(known, len(words))] * len(words)
            self.words += words
            self.numbers.update(zip(words, range(known + 1, size + 1), strict=True))
        self._give(alphas)

    def _give(self, alphas: list[float]) -> None:
        """Set the alphas of the last words, and the rest."""
        if alphas:
            size = len(self.words)
            self.likelihood.give(slice(size + 1 - len(alphas), size + 1), np.array(alphas))
            self.likelihood.give_rest(self.base.rest(size))


class _Numbered:
    """The numbers of the words of a lexicon.

    Parameters
    ----------
    lexicon : object
        Identifies the lexicon.
    n_known : int
        Words in the vocabulary when these were looked up.
    """

    def __init__(self, lexicon: object, n_known: int) -> None:
        self.lexicon, self.n_known = lexicon, n_known
        self.numbers: Integers = np.empty(0, np.int64)


def packed(name: str, words: list[str]) -> dict[str, NDArray[Any]]:
    """Return words as arrays with names: the words joined, and where each ends."""
    texts = [word.encode("utf-8", "surrogatepass") for word in words]
    return {
        f"{name}.ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
        f"{name}.text": np.frombuffer(b"".join(texts), np.uint8),
    }


def unpacked(name: str, arrays: dict[str, NDArray[Any]]) -> list[str]:
    """Return the words that `packed` put into arrays."""
    text, ends = arrays[f"{name}.text"].tobytes(), arrays[f"{name}.ends"].tolist()
    if [0, *ends] != sorted([0, *ends]) or ends[-1:] not in ([], [len(text)]):
        raise ValueError(f"the array {name}.ends does not go from 0 to {len(text)}")
    return [
        text[start:end].decode("utf-8", "surrogatepass")
        for start, end in zip([0, *ends][:-1], ends, strict=True)
    ]


def require_words(words: Iterable[Hashable]) -> list[str]:
    """Return words, all of which must be strings; ValueError names one that is not."""
    found = []
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"the word {word!r} is not a string, so it cannot be saved")
        found.append(word)
    return found


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
        vocabulary: Vocabulary,
        base: OpenVocabulary,
        capacity: int,
        given: Floats | None = None,
    ) -> None:
        self.vocabulary, self.base, self.total = vocabulary, base, base.A
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
    vocabulary: Vocabulary, base: OpenVocabulary, capacity: int, given: Floats | None = None
) -> VocabularyLikelihood:
    """Return the likelihood of documents over a vocabulary, bursty if the base measure is."""
    bursty = isinstance(base, BurstyVocabulary)
    family = BurstyVocabularyLikelihood if bursty else VocabularyLikelihood
    return family(vocabulary, base, capacity, given)
