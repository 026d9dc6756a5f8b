"""Records of counts: documents over a vocabulary that grows."""

from collections.abc import Sequence

from bnpstream.inference import adf
from bnpstream.likelihoods import OpenVocabulary, Vocabulary
from bnpstream.likelihoods.documents import LENGTH, Document, DocumentBatch, as_document
from bnpstream.priors import Prior
from bnpstream.river.learner import Learner, Record


def as_counted(record: Record) -> Document:
    """Return a record of counts, or say which feature is none and what to do."""
    try:
        return as_document(record, "record")
    except ValueError as error:
        raise ValueError(f"{error}; for other numbers use likelihood='gaussian'") from None


class CountLearner(Learner):
    """Learns from counts; a feature with the count 0 is one that is not there.

    Parameters
    ----------
    prior, settings
        As in `Learner`.
    records : sequence of dict
        The first records: how many features they have decides on the base measure.
    """

    def __init__(self, prior: Prior, settings: adf.Settings, records: Sequence[Record]) -> None:
        words = {word for record in records for word, count in record.items() if count}
        self.vocabulary = Vocabulary(OpenVocabulary(max(len(words), 1)))
        super().__init__(prior, settings, self.vocabulary.likelihood, LENGTH + 1, len(records))

    def learn(self, records: Sequence[Record]) -> None:
        """Absorb records in order, and the words in them."""
        documents = [as_counted(record) for record in records]
        self.vocabulary.add(documents)
        self.model = self.model._replace(likelihood=self.vocabulary.likelihood)
        self.absorb(DocumentBatch.of(documents, self.vocabulary.numbers))

    def encode(self, record: Record) -> DocumentBatch:
        """Return a record to look at; unknown words count as what is left for them."""
        return DocumentBatch.of([as_counted(record)], self.vocabulary.numbers)
