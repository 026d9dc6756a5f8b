"""Words of a text, and columns for words by a hash."""

import re
import sys
import unicodedata
from functools import cache
from zlib import crc32

__all__ = ["HashedWords", "count_words"]

CACHED_WORDS = 1 << 20
"""Words whose column is remembered, about 100 MB; then all are forgotten."""

_ascii_words = re.compile(r"\w\w+", re.ASCII).findall


def count_words(text: str) -> dict[str, int]:
    """Return how often each word of a text occurs.

    A word is two or more letters, digits or underscores in a row, in lower case. Marks that belong
    to a letter, as in Hindi, are part of the word; however an accent is spelled, it is the same
    word.

    Examples
    --------
    >>> count_words("The house, the House: a café!")
    {'the': 2, 'house': 2, 'café': 1}
    """
    if text.isascii():
        words = _ascii_words(text.lower())
    else:
        words = _any_words().findall(unicodedata.normalize("NFC", text.lower()))
    counts: dict[str, int] = {}
    for word in words:  # faster than a Counter for as few words as a document has
        counts[word] = counts.get(word, 0) + 1
    return counts


@cache
def _any_words() -> re.Pattern[str]:
    r"""Return the pattern of a word of any script; `\w` alone would cut it at vowel signs."""
    marks = "".join(
        character
        for character in map(chr, range(0x300, sys.maxunicode + 1))
        if unicodedata.category(character).startswith("M")
    )
    return re.compile(rf"\w[\w{marks}]+")


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
