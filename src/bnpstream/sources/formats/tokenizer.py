"""Words of a text, and hashed columns for words.

`count_words` defines what a word is. `TextCounter` finds the same words in compiled code.
"""

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.text.bags import Bags

CACHED_WORDS = 1 << 20
"""Words remembered, about 100 MB; after that all are forgotten."""

PLANES = (0, 1, 14)
"""Planes of Unicode, of 17, that have marks; ideographs and private use fill the others."""
PLAIN_TEXTS = 2048
"""Texts per process counted in Python; only for more the compiler is loaded."""

_ascii_words = re.compile(r"\w\w+", re.ASCII).findall


def count_words(text: str, ngrams: int = 1) -> dict[str, int]:
    """Count the words of a text.

    A word is two or more letters, digits or underscores in a row, in lower case. Marks that belong
    to a letter, as in Hindi, are part of the word; different spellings of an accent give the same
    word. Phrases of up to `ngrams` words are counted too.

    Examples
    --------
    >>> count_words("The house, the House: a café!")
    {'the': 2, 'house': 2, 'café': 1}
    >>> count_words("New York", ngrams=2)
    {'new': 1, 'york': 1, 'new york': 1}
    """
    words = _ascii_words(text.lower()) if text.isascii() else _any_words().findall(_lower(text))
    single = len(words)
    for n in range(2, ngrams + 1):
        words += [" ".join(words[i : i + n]) for i in range(single - n + 1)]
    counts: dict[str, int] = {}
    for word in words:  # faster than a Counter for the few words of a document
        counts[word] = counts.get(word, 0) + 1
    return counts


@cache
def _any_words() -> re.Pattern[str]:
    r"""Return the pattern of a word in any script; `\w` alone would split it at vowel signs."""
    return re.compile(rf"\w[\w{''.join(_marks())}]+")


@cache
def _marks() -> list[str]:
    """Return all marks, such as accents and vowel signs; the first accent is the first mark."""
    characters = _characters()
    planes = [characters[max(plane << 16, 0x300) : (plane + 1) << 16] for plane in PLANES]
    return [
        character
        for character in "".join(planes)
        if unicodedata.category(character).startswith("M")
    ]


@cache
def _characters() -> str:
    """Return every character, including surrogates."""
    numbers = np.arange(sys.maxunicode + 1, dtype="<u4")
    return numbers.tobytes().decode("utf-32-le", "surrogatepass")


@cache
def _classes() -> NDArray[np.uint8]:
    r"""Return the class of every character: a word starts with a letter, that is `\w`."""
    from bnpstream.kernels.text.words import LETTER, MARK  # here, as it imports numba

    classes = np.zeros(sys.maxunicode + 1, np.uint8)
    classes[[ord(mark) for mark in _marks()]] = MARK
    for letters in re.finditer(r"\w+", _characters()):
        classes[letters.start() : letters.end()] = LETTER
    return classes


class TextCounter:
    """Counts the words of texts; in compiled code if there are many and no n-grams.

    Parameters
    ----------
    ngrams : int
        Also count phrases of up to this many words.

    Examples
    --------
    >>> list(TextCounter()(["The house, the House: a café!", ""]))
    [{'the': 2, 'house': 2, 'café': 1}, {}]
    """

    n_texts: ClassVar[int] = 0
    """Texts counted in this process."""

    def __init__(self, ngrams: int = 1) -> None:
        self._ngrams = ngrams
        self._lexicon: Any = None

    def __call__(self, texts: Sequence[str]) -> Bags | list[dict[str, int]]:
        """Return the word counts of each text."""
        TextCounter.n_texts += len(texts)
        if TextCounter.n_texts <= PLAIN_TEXTS or self._ngrams > 1:
            return [count_words(text, self._ngrams) for text in texts]
        if self._lexicon is None or len(self._lexicon) >= CACHED_WORDS:
            from bnpstream.kernels.text.lexicon import Lexicon  # here, as it imports numba

            self._lexicon = Lexicon()
        joined, classes = "".join(texts), np.empty(0, np.uint8)
        if joined.isascii():
            data, sizes = joined.encode(), map(len, texts)
        else:
            parts = [_lower(text).encode("utf-8", "surrogatepass") for text in texts]
            data, sizes, classes = b"".join(parts), map(len, parts), _classes()
        bounds = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(sizes, np.int64, len(texts)), out=bounds[1:])
        found: Bags = self._lexicon.count(data, bounds, classes)
        return found


def _lower(text: str) -> str:
    """Return a text in lower case with normalised accents; ASCII only needs lower case."""
    return text if text.isascii() else unicodedata.normalize("NFC", text.lower())


class HashedWords(dict[str, int]):
    """Maps words to columns by a hash that is the same in every process and version.

    Parameters
    ----------
    n_columns : int
        A power of 2.

    Examples
    --------
    >>> HashedWords(1024)["senate"]
    755
    """

    def __init__(self, n_columns: int) -> None:
        super().__init__()
        self._mask = n_columns - 1

    def __missing__(self, word: str) -> int:
        if len(self) >= CACHED_WORDS:
            self.clear()
        column = self[word] = crc32(word.encode()) & self._mask
        return column
