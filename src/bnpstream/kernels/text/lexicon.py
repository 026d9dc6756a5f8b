"""Words that get numbers as they appear, and documents counted by them."""

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.text.bags import Bags, Words
from bnpstream.kernels.text.words import (
    BYTES,
    ENTRIES,
    NOBODY,
    WORDS,
    Counts,
    Lookup,
    count_words,
    place_words,
)

FIRST_WORDS, FIRST_BYTES = 1 << 12, 1 << 15
"""Words, and bytes of words, that a lexicon has room for at first; both double."""
LEAST_BYTES_PER_TOKEN = 3
"""Two letters and what ends the word."""


class Lexicon:
    """Numbers words from 0 on in the order in which they appear.

    Examples
    --------
    >>> text = b"The house, the HouseA vote"
    >>> Lexicon().count(text, np.array([0, 20, 26]), np.empty(0, np.uint8))
    Bags([{'the': 2, 'house': 2}, {'vote': 1}])
    """

    def __init__(self) -> None:
        self._progress = np.zeros(5, np.int64)
        self._key = object()
        self._lookup = _lookup(FIRST_WORDS, FIRST_BYTES)

    def __len__(self) -> int:
        return int(self._progress[WORDS])

    def count(self, text: bytes, bounds: NDArray[np.int64], classes: NDArray[np.uint8]) -> Bags:
        """Return the words of documents.

        Parameters
        ----------
        text : bytes
            The documents in UTF-8, one after the other; in lower case, letters of ASCII excepted.
        bounds : ndarray of shape (n + 1,)
            Where every document begins, and where the last one ends.
        classes : ndarray
            Class of every character, see ``kernels.text.words``; may be empty if all are ASCII.
        """
        n_documents = len(bounds) - 1
        most = (len(text) + n_documents) // LEAST_BYTES_PER_TOKEN
        found = Counts(
            np.zeros(n_documents + 1, np.int64),
            np.empty(most, np.int32),
            np.empty(most, np.int64),
        )
        self._progress[:WORDS] = 0
        data = np.frombuffer(text, np.uint8)
        while not count_words(data, bounds, classes, self._lookup, found, self._progress):
            self._lengthen()
        n = int(self._progress[ENTRIES])
        words = Words(self._key, len(self), self._lookup.ends, self._lookup.letters)
        return Bags(found.ends, found.words[:n].copy(), found.counts[:n].copy(), words)

    def _lengthen(self) -> None:
        """Make room for as many words again, and for as many bytes of words."""
        before, n_words = self._lookup, len(self)
        n_bytes = int(self._progress[BYTES])
        after = _lookup(2 * before.hashes.size, 2 * before.letters.size)
        after.hashes[:n_words], after.ends[:n_words] = (
            before.hashes[:n_words],
            before.ends[:n_words],
        )
        after.places[:n_words] = before.places[:n_words]
        after.letters[:n_bytes] = before.letters[:n_bytes]
        place_words(after, n_words)
        self._lookup = after


def _lookup(n_words: int, n_bytes: int) -> Lookup:
    return Lookup(
        np.full(2 * n_words, NOBODY, np.int32),
        np.empty(n_words, np.int64),
        np.empty(n_words, np.int64),
        np.empty(n_words, np.int64),
        np.empty(n_bytes, np.uint8),
    )
