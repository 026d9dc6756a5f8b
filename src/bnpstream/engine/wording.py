"""Which words of documents count: not stop words, and only sufficiently frequent ones."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bnpstream.engine.checks import require_whole
from bnpstream.likelihoods.documents import Document
from bnpstream.likelihoods.errors import RowError

BURST = 0.2
"""A word comes in bursts if its tokens, dealt out at random, would be in more than exp(.2) times as
many documents. If, dealt out at random, they would be in more documents than exp(-.2) times the
tokens, they are too few for bursts to show."""

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
    """How texts are split into words, and which words count.

    Parameters
    ----------
    ngrams : int
        Also count phrases of up to this many words.
    stop_words : {"auto", "english"}, sequence of str or None
        Words that do not count, nor do phrases with one of them. "auto": those that are
        uninformative in the first documents (`uninformative`).
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
        """Return the words that do not count; None if the first documents decide."""
        if self.stop_words == "auto":
            return None
        return ENGLISH if self.stop_words == "english" else frozenset(self.stop_words or ())


def are_texts(rows: Any) -> bool:
    """Return whether rows are a list, an array or a column of texts."""
    listed = isinstance(rows, list | tuple) or getattr(rows, "ndim", 0) == 1
    return listed and len(rows) > 0 and isinstance(next(iter(rows)), str)


def as_texts(rows: Any) -> list[str]:
    """Return a list of texts; ValueError names an item that is not a text."""
    texts = list(rows)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise RowError(
                i, f"it is not a text but {text!r}", f"row {i} is not a text but {text!r}"
            )
    return texts


def uninformative(documents: Sequence[Document]) -> frozenset[Hashable]:
    """Return the words that do not help to tell documents apart.

    If the X tokens of a word were dealt out to the documents at random, by their lengths N_d, then
    E = sum_d 1 - (1 - X / sum N)^N_d of them would have it. Meaningful words come in bursts, so
    fewer documents have them; function words do not, in any language. A word is uninformative if
    log(E / documents that have it) < 0.2 and log(X / E) > 0.2: for a word that even at random would
    rarely occur twice in a document, like most words of short texts, this is unknown.

    Parameters
    ----------
    documents : sequence of dict
        Word counts.
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
    """Return documents without some words, and without phrases that contain one."""

    def counts(word: Hashable) -> bool:
        if word in stop_words:
            return False
        return not isinstance(word, str) or " " not in word or stop_words.isdisjoint(word.split())

    return [{w: x for w, x in document.items() if counts(w)} for document in documents]


class Waiting(dict[Hashable, int]):
    """Words that have not yet occurred often enough, with their counts."""

    def admitted(
        self, documents: Iterable[Document], known: dict[Hashable, int], least: int
    ) -> list[Document]:
        """Return documents with the words that are known, or have now occurred `least` times."""
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
