"""Which words of documents count: stop words, and words that have been seen often enough."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bnpstream.engine.checks import require_whole
from bnpstream.likelihoods.documents import Document
from bnpstream.likelihoods.errors import RowError

BURST = 0.2
"""A word whose tokens, dealt out at random, would be in more than exp(.2) times as many documents
comes in bursts. Where so dealt out they would be in more documents than exp(-.2) times the tokens,
they are too few for bursts to be seen."""

_ENGLISH = """a about above after again against all also am an and any are as at be because been
before being below between both but by can could did do does doing down during each few for from
further had has have having he her here hers herself him himself his how i if in into is it its
itself just me more most my myself no nor not now of off on once only or other our ours ourselves
out over own same she should so some such than that the their theirs them themselves then there
these they this those through to too under until up upon us very was we were what when where which
while who whom whose why will with would you your yours yourself yourselves"""
ENGLISH = frozenset(_ENGLISH.split())
"""English function words."""


@dataclass(frozen=True)
class Wording:
    """What is made of texts, and which of their words count.

    Parameters
    ----------
    ngrams : int
        Up to so many words in a row of a text are a word too.
    stop_words : {"auto", "english"}, sequence of str or None
        Words that do not count, nor does a run of words with one of them. "auto": those that tell
        nothing about the first documents (`uninformative`).
    min_count : int
        A word counts from its `min_count`-th occurrence in the stream on.
    """

    ngrams: int = 1
    stop_words: str | Sequence[str] | None = None
    min_count: int = 1

    def __post_init__(self) -> None:
        require_whole("ngrams", self.ngrams, 1)
        require_whole("min_count", self.min_count, 1)
        words = self.stop_words
        if words is None or words in ("auto", "english"):
            return
        listed = isinstance(words, Iterable) and not isinstance(words, str)
        if not (listed and all(isinstance(word, str) for word in words)):
            raise ValueError(
                f'stop_words must be None, "auto", "english" or a list of words, got {words!r}'
            )

    @property
    def known_stop_words(self) -> frozenset[Any] | None:
        """Return the words that do not count; None if the first documents are to tell."""
        if self.stop_words == "auto":
            return None
        return ENGLISH if self.stop_words == "english" else frozenset(self.stop_words or ())


def are_texts(rows: Any) -> bool:
    """Return whether rows are a list, an array or a column of texts."""
    listed = isinstance(rows, list | tuple) or getattr(rows, "ndim", 0) == 1
    return listed and len(rows) > 0 and isinstance(next(iter(rows)), str)


def as_texts(rows: Any) -> list[str]:
    """Return a list of texts; ValueError names one that is none."""
    texts = list(rows)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise RowError(
                i, f"it is not a text but {text!r}", f"row {i} is not a text but {text!r}"
            )
    return texts


def uninformative(documents: Sequence[Document]) -> frozenset[Hashable]:
    """Return the words that tell nothing about which document is which.

    If the X tokens of a word were dealt out to the documents at random, by their lengths N_d, then
    E = sum_d 1 - (1 - X / sum N)^N_d of them would have it. Words with a meaning come in bursts, so
    that fewer documents have them; function words do not, in any language. A word tells nothing if
    log(E / documents that have it) < 0.2 and log(X / E) > 0.2: of a word that even at random would
    hardly have come twice in a document, as most words of short texts, it is not known.

    Parameters
    ----------
    documents : sequence of dict
        Counts of words.
    """
    lengths = np.array([sum(document.values()) for document in documents], np.float64)
    tokens: dict[Hashable, int] = {}
    having: dict[Hashable, int] = {}
    for document in documents:
        for word, count in document.items():
            tokens[word] = tokens.get(word, 0) + count
            having[word] = having.get(word, 0) + 1
    found = []
    for word, n in having.items():
        if n > 1:
            rate = tokens[word] / (lengths.sum() + 1.0)
            expected = -np.expm1(lengths * np.log1p(-rate)).sum()
            if np.log(expected / n) < BURST < np.log(tokens[word] / expected):
                found.append(word)
    return frozenset(found)


def without(documents: Iterable[Document], stop_words: frozenset[Any]) -> list[Document]:
    """Return documents without some words, and without runs of words that have one of them."""

    def counts(word: Hashable) -> bool:
        if word in stop_words:
            return False
        return not isinstance(word, str) or " " not in word or stop_words.isdisjoint(word.split())

    return [{w: x for w, x in document.items() if counts(w)} for document in documents]


class Waiting(dict[Hashable, int]):
    """Words that have come less often than they must, and how often they have."""

    def admitted(
        self, documents: Iterable[Document], known: dict[Hashable, int], least: int
    ) -> list[Document]:
        """Return documents with the words that are known, or have now come `least` times."""
        found = []
        for document in documents:
            kept = {}
            for word, count in document.items():
                if word not in known:
                    self[word] = self.get(word, 0) + count
                    if self[word] < least:
                        continue
                kept[word] = count
            found.append(kept)
        return found
