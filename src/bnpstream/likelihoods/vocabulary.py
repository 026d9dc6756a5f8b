"""Growing vocabularies: words are numbered, and given their alpha, as they appear."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.arrays import Integers
from bnpstream.kernels.text.bags import Bags
from bnpstream.kernels.text.bags import Words as Lexicon
from bnpstream.likelihoods.documents import UNSEEN, Document, DocumentBatch
from bnpstream.likelihoods.open_vocabulary import OpenVocabulary
from bnpstream.likelihoods.packed_words import packed, require_words, unpacked
from bnpstream.likelihoods.vocabulary_likelihood import documents_over

FIRST_CAPACITY = 1024
"""Words for which arrays have space at first; they double."""


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
