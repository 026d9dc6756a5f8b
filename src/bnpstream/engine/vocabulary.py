"""Documents over a vocabulary that grows: words are known from the first document that has them."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.engine.codec import decode, encode
from bnpstream.engine.encoder import Arrays, Document, Encoder, Informed, Listed
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch, Likelihood, OpenVocabulary, Vocabulary
from bnpstream.likelihoods.documents import LENGTH, as_documents
from bnpstream.likelihoods.documents import Document as Words
from bnpstream.likelihoods.vocabulary import require_words
from bnpstream.mixture import MixtureState


class GrowingVocabulary(Encoder):
    """Documents whose words are not known in advance.

    Words are added just before the documents that bring them, so that splits into calls do not
    matter for what they get when the base measure is given out anew.

    Parameters
    ----------
    spread : float, optional
        g of `OpenVocabulary`; by default the number of words in the first documents.
    total : float, optional
        A; by default it is learnt if `spread` is open, else .15 `spread`.
    learn_total : bool
        Whether A is learnt where both are open.
    """

    name = "vocabulary"

    def __init__(
        self, spread: float | None = None, total: float | None = None, *, learn_total: bool = True
    ) -> None:
        self.spread, self.total, self.learn_total = spread, total, learn_total
        self.vocabulary = Vocabulary(OpenVocabulary(1.0 if spread is None else spread, total))
        self._informed = spread is not None

    @property
    def likelihood(self) -> Likelihood:
        """Return documents over the words so far; another object when its arrays have grown."""
        return self.vocabulary.likelihood

    def use(self, likelihood: Any) -> None:
        """Use another base measure over the same words from now on."""
        self.vocabulary.likelihood = likelihood

    @property
    def is_informed(self) -> bool:
        """Return whether the spread is known."""
        return self._informed

    def n_statistics(self, rows: Listed) -> int:
        """Return the number of columns that there is room for: any vocabulary fits."""
        return LENGTH + 1

    def check(self, rows: Any) -> list[Words]:
        """Return documents as counts of words."""
        return list(as_documents(rows))

    def informed(self, first: list[Words]) -> Informed:
        """Take the spread, and a guess of the total, from the words of the first documents."""
        spread = max(len(set().union(*first)), 1)
        self.vocabulary, self._informed = Vocabulary(OpenVocabulary(spread, self.total)), True
        if self.total is not None or not self.learn_total:
            return Informed(self.likelihood, None)
        self.vocabulary.add(first)
        batch = self.vocabulary.batch(first)
        return Informed(self.vocabulary.likelihood.guessed(batch), batch)

    def prepared(self, rows: Any) -> Listed:
        """Return documents as counts of words."""
        return Listed(as_documents(rows))

    def part(self, rows: Listed, start: int, stop: int) -> Batch:
        """Return some documents, whose words are known from then on."""
        some = rows.rows[start:stop]
        self.vocabulary.add(some)
        batch = self.vocabulary.batch(some)
        return batch if rows.weights is None else batch.weighted(rows.weights[start:stop])

    def view(self, rows: Listed) -> Batch:
        """Return documents; words that are not known count as unknown."""
        return self.vocabulary.batch(rows.rows)

    def words(self) -> Sequence[Hashable]:
        """Return the words so far."""
        return self.vocabulary.words

    def means(self, means: Floats) -> Floats:
        """Return the probabilities of known words; those not seen so far come first."""
        return means[:, 1:]

    def statistics(self, state: MixtureState, slots: NDArray[np.int64]) -> Floats:
        """Return the statistics of some clusters: unknown words, known ones, length."""
        lengths = state.candidates[slots, [LENGTH]]
        return np.hstack([state.first_columns(slots, len(self.vocabulary) + 1), lengths])

    def save_rows(self, rows: Any, document: Document, arrays: Arrays) -> None:
        """Add documents, whose words must be strings."""
        require_words(word for words in rows for word in words)
        document["documents"] = rows

    def load_rows(self, document: Document, arrays: Arrays) -> list[Words]:
        """Return the documents."""
        return list(as_documents(document["documents"]))

    def save_into(self, document: Document, arrays: Arrays) -> None:
        """Add the words and what each has of the base measure."""
        document["spread"], document["total"] = encode(self.spread), encode(self.total)
        document["learn_total"] = self.learn_total
        if self._informed:
            document["base"] = encode(self.vocabulary.base)
            arrays |= self.vocabulary.arrays()

    @classmethod
    def load_from(
        cls, document: Document, arrays: Arrays, classes: Iterable[type] = ()
    ) -> "GrowingVocabulary":
        """Return the encoder with its words."""
        encoder = cls(document["spread"], document["total"], learn_total=document["learn_total"])
        if "base" in document:
            encoder.vocabulary = Vocabulary.of(decode(document["base"]), arrays)
            encoder._informed = True
        return encoder
