"""Documents over a growing vocabulary: a word is known from the first document that has it."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.engine.codec import decode, encode
from bnpstream.engine.encoder import Arrays, Document, Encoder, Informed, Listed
from bnpstream.engine.wording import (
    Waiting,
    Wording,
    are_texts,
    as_texts,
    uninformative,
    without,
)
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch, Likelihood, OpenVocabulary, Vocabulary
from bnpstream.likelihoods.bursty import strength_of_topics
from bnpstream.likelihoods.documents import LENGTH, as_documents
from bnpstream.likelihoods.documents import Document as Words
from bnpstream.likelihoods.open_vocabulary import BurstyVocabulary
from bnpstream.likelihoods.packed_words import packed, require_words, unpacked
from bnpstream.mixture import MixtureState
from bnpstream.mixture.saved import MOST, require, require_numbers
from bnpstream.sources.formats.tokenizer import TextCounter

PLAIN = Wording()
"""Every word counts."""


class GrowingVocabulary(Encoder):
    """Documents with a growing vocabulary.

    Words are added just before the documents that introduce them, so that their alphas do not
    depend on splits into calls when the base measure is redistributed.

    Parameters
    ----------
    spread : float, optional
        g of `OpenVocabulary`; by default the number of words in the first documents.
    total : float, optional
        A; by default learnt if `spread` is open, else .15 `spread`.
    learn_total : bool
        Whether A is learnt if both are open.
    wording : Wording
        How texts are split, and which words count.
    bursty : bool
        Whether documents repeat their words (`BurstyMultinomial`). s is then learnt, and A defaults
        to the words of fifty of the first documents.
    """

    name = "vocabulary"

    def __init__(
        self,
        spread: float | None = None,
        total: float | None = None,
        *,
        learn_total: bool = True,
        wording: Wording = PLAIN,
        bursty: bool = False,
    ) -> None:
        self.spread, self.total, self.learn_total = spread, total, learn_total
        self.bursty = bursty
        self.vocabulary = Vocabulary(OpenVocabulary(1.0 if spread is None else spread, total))
        self._word_by(wording)

    def _word_by(self, wording: Wording) -> None:
        """Use a wording; no words are known yet."""
        self.wording, self.stop_words = wording, wording.known_stop_words
        known = self.spread is not None and self.stop_words is not None
        self._informed = known and not self.bursty
        self._waiting, self._counter = Waiting(), TextCounter(wording.ngrams)

    @property
    def likelihood(self) -> Likelihood:
        """Return the likelihood over the words so far; a new object when its arrays have grown."""
        return self.vocabulary.likelihood

    def use(self, likelihood: Any) -> None:
        """Use another base measure over the same words from now on."""
        self.vocabulary.likelihood = likelihood

    @property
    def is_informed(self) -> bool:
        """Return whether all parameters are set."""
        return self._informed

    def n_statistics(self, rows: Listed) -> int:
        """Return the number of columns that there is space for: any vocabulary fits."""
        return LENGTH + 1

    def check(self, rows: Any) -> Sequence[Words]:
        """Return documents as word counts."""
        return self._counted(rows)

    def _counted(self, rows: Any) -> Sequence[Words]:
        """Return documents as word counts; texts are split into words first."""
        if hasattr(rows, "columns"):
            raise ValueError(
                "X is a data frame, but rows must be documents: give its column of texts, such as "
                f"X[{rows.columns[0]!r}]"
            )
        if getattr(rows, "ndim", 1) == 2 and rows.dtype.kind in "biufc":
            raise ValueError(
                "X is a matrix of numbers, but rows must be documents: texts, lists of words or "
                "dicts of counts; StreamingMixture clusters counts by column"
            )
        rows = list(rows) if isinstance(rows, Iterator) else rows
        return as_documents(self._counter(as_texts(rows)) if are_texts(rows) else rows)

    def informed(self, first: list[Words]) -> Informed:
        """Learn what is open from the words of the first documents: stop words, spread, total."""
        if self.stop_words is None:
            self.stop_words = uninformative(first)
        first = self._frequent(without(first, self.stop_words))
        spread = self.spread or max(len(set().union(*first)), 1)
        base = OpenVocabulary(spread, self.total)
        if self.bursty:
            total = self.total or strength_of_topics(sum(map(len, first)), len(first))
            base = BurstyVocabulary(spread, total)
        self.vocabulary, self._informed = Vocabulary(base), True
        self._waiting = Waiting()
        is_given = self.total is not None or self.spread is not None or not self.learn_total
        if is_given and not self.bursty:
            return Informed(self.likelihood, None)
        self.vocabulary.add(first)
        batch = self.vocabulary.batch(first)
        return Informed(self.vocabulary.likelihood.guessed(batch), batch)

    def _frequent(self, documents: list[Words]) -> list[Words]:
        """Return documents with the words that are frequent enough in all of them together."""
        if self.wording.min_count == 1:
            return documents
        counts = Counter[Any]()
        for document in documents:
            counts.update(document)
        rare = (word for word, count in counts.items() if count < self.wording.min_count)
        return without(documents, frozenset(rare))

    def prepared(self, rows: Any) -> Listed:
        """Return documents as word counts, without stop words."""
        documents = self._counted(rows)
        return Listed(without(documents, self.stop_words) if self.stop_words else documents)

    def part(self, rows: Listed, start: int, stop: int) -> Batch:
        """Return some documents, whose words are known from then on."""
        some = rows.rows[start:stop]
        least, known = self.wording.min_count, self.vocabulary.numbers
        if least > 1:
            some = self._waiting.admitted(some, known, least)
        self.vocabulary.add(some)
        batch = self.vocabulary.batch(some)
        return batch if rows.weights is None else batch.weighted(rows.weights[start:stop])

    def view(self, rows: Listed) -> Batch:
        """Return documents; unknown words count as unknown.

        If words count only from a later occurrence on, unknown words do not count at all.
        """
        documents = rows.rows
        if self.wording.min_count > 1:
            known = self.vocabulary.numbers
            documents = [{w: x for w, x in row.items() if w in known} for row in documents]
        return self.vocabulary.batch(documents)

    def words(self) -> Sequence[Hashable]:
        """Return the words so far."""
        return self.vocabulary.words

    def means(self, means: Floats) -> Floats:
        """Return the probabilities of known words, after that of all unseen ones."""
        return means[:, 1:]

    def counts(self, statistics: csr_array) -> csr_array:
        """Return the counts of each known word in clusters."""
        return statistics[:, 1 : len(self.vocabulary) + 1]

    def statistics(self, state: MixtureState, slots: NDArray[np.int64]) -> Floats:
        """Return the statistics of some clusters: unknown words, known ones, length."""
        lengths = state.candidates[slots, [LENGTH]]
        return np.hstack([state.first_columns(slots, len(self.vocabulary) + 1), lengths])

    def save_rows(self, rows: Any, document: Document, arrays: Arrays) -> None:
        """Add documents, whose words must be strings."""
        require_words(word for words in rows for word in words)
        document["documents"] = list(rows)

    def load_rows(self, document: Document, arrays: Arrays) -> list[Words]:
        """Return the documents."""
        return list(as_documents(document["documents"]))

    def check_columns(self, arrays: Arrays) -> None:
        """Raise ValueError if a snapshot has words without a number or a base measure."""
        n_words, alpha = len(self.vocabulary), arrays["vocabulary.alpha"]
        require("vocabulary.text", len(self.vocabulary.numbers) == n_words)
        require("vocabulary.alpha", alpha.ndim == 1 and alpha.size > n_words)
        require_numbers("vocabulary.alpha", alpha, alpha.shape, 0.0)
        for name, columns in arrays.items():
            if name.endswith("columns"):
                known = (columns >= 0) & (columns <= n_words) | (columns == LENGTH)
                require(name, known.all())
            if name.endswith("values"):
                require(name, (np.abs(columns) <= MOST).all())

    def save_into(self, document: Document, arrays: Arrays) -> None:
        """Add the words with their alphas."""
        document["spread"], document["total"] = encode(self.spread), encode(self.total)
        document["learn_total"], document["bursty"] = self.learn_total, self.bursty
        if self.wording != PLAIN:
            document["wording"] = {
                "ngrams": self.wording.ngrams,
                "stop_words": _listed(self.wording.stop_words),
                "min_count": self.wording.min_count,
                "found": _listed(self.stop_words),
            }
            arrays |= packed("rare", require_words(self._waiting))
            arrays["rare.counts"] = np.fromiter(self._waiting.values(), np.int64)
        if self._informed:
            document["base"] = encode(self.vocabulary.base)
            arrays |= self.vocabulary.arrays()

    @classmethod
    def load_from(
        cls, document: Document, arrays: Arrays, classes: Iterable[type] = ()
    ) -> "GrowingVocabulary":
        """Return the encoder with its words."""
        encoder = cls(
            document["spread"],
            document["total"],
            learn_total=document["learn_total"],
            bursty=document.get("bursty", False),  # earlier versions had none
        )
        if "wording" in document:
            given = dict(document["wording"])
            found = given.pop("found")
            encoder._word_by(Wording(**given))
            encoder.stop_words = None if found is None else frozenset(found)
            require("rare.counts", (arrays["rare.counts"] >= 0).all())
            counts = arrays["rare.counts"].tolist()
            encoder._waiting.update(zip(unpacked("rare", arrays), counts, strict=True))
        if "base" in document:
            encoder.vocabulary = Vocabulary.of(decode(document["base"]), arrays)
            encoder._informed = True
        return encoder


def _listed(words: Any) -> Any:
    """Return words as JSON, in a fixed order."""
    return words if words is None or isinstance(words, str) else sorted(words)
