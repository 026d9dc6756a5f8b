"""Words of texts: cut out of UTF-8 bytes, numbered in order of appearance, and counted.

Compiled twin of ``sources.formats.tokenizer.count_words``, which says what a word is. The texts
that come here are in lower case, letters of ASCII excepted.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.jit.decorators import entry, inlined

LETTER, MARK = 1, 2
"""Classes of characters: those that words begin with or go on with, and those they only go on with.
All others, of class 0, end a word."""
LEAST_CHARACTERS = 2
NOBODY = -1
"""A slot of the hash table that is free."""

DOCUMENT, AT, ENTRIES, WORDS, BYTES = range(5)
"""Where the numbers of a loop's progress are: documents done, the next byte of the texts, entries
written; words of the lexicon, and bytes of these."""

_BASIS, _PRIME, _BITS = 2166136261, 16777619, (1 << 32) - 1
"""Hash FNV-1a of 32 bits: products fit in int64."""


def _lower_case() -> NDArray[np.uint8]:
    """Return the lower case of every byte that is a letter, digit or underscore; 0 for others."""
    found = np.zeros(256, np.uint8)
    for character in map(chr, range(128)):
        if character.isalnum() or character == "_":
            found[ord(character)] = ord(character.lower())
    return found


_LOWER = _lower_case()


class Lookup(NamedTuple):
    """Words by a hash: open addressing, the keys one after the other in bytes."""

    slots: NDArray[np.int32]
    """Numbers of words, or `NOBODY`; a power of two, and at least twice the words that fit."""
    hashes: NDArray[np.int64]
    ends: NDArray[np.int64]
    """Where every word ends in `letters`; it begins where the one before ends."""
    places: NDArray[np.int64]
    """Scratch: the last entry of a word, if that is one of the document."""
    letters: NDArray[np.uint8]


class Counts(NamedTuple):
    """Entries of documents: words in order of first appearance, and how often each occurs."""

    ends: NDArray[np.int64]
    """Entries up to the end of every document, the first number being 0."""
    words: NDArray[np.int32]
    counts: NDArray[np.int64]


@inlined
def _width(first: int) -> int:
    """Return how many bytes a character has, by its first one."""
    if first < 0xE0:
        return 2
    return 3 if first < 0xF0 else 4


@inlined
def _code_point(text: Any, at: int, width: int) -> int:
    """Return the number of a character of two to four bytes."""
    point = int(text[at]) & (0x7F >> width)
    for i in range(at + 1, at + width):
        point = (point << 6) | (int(text[i]) & 0x3F)
    return point


@inlined
def _is_word(letters: Any, start: int, end: int, other: int, other_end: int) -> bool:
    """Return whether two stretches of bytes are the same."""
    if end - start != other_end - other:
        return False
    at = start
    while at < end and letters[at] == letters[other + at - start]:
        at += 1
    return at == end


@entry
def place_words(lookup: Lookup, n_words: int) -> None:
    """Put words into an empty hash table."""
    mask = lookup.slots.size - 1
    for word in range(n_words):
        slot = lookup.hashes[word] & mask
        while lookup.slots[slot] != NOBODY:
            slot = (slot + 1) & mask
        lookup.slots[slot] = word


@entry
def count_words(
    text: Any, bounds: Any, classes: Any, lookup: Lookup, found: Counts, progress: Any
) -> bool:
    """Count the words of documents; return False if the lexicon has no room for the next word.

    The loop can be called again then, with a longer lexicon. `bounds` are where documents begin and
    where the last one ends, `classes` those of all characters; without any, texts are ASCII.
    """
    slots, hashes, ends, places, letters = lookup
    indptr, words, counts = found
    document, at, n_entries, n_words, n_bytes = progress
    mask = slots.size - 1
    is_done = True
    while is_done and document < bounds.size - 1:
        stop, first = bounds[document + 1], indptr[document]
        while at < stop:
            began, end, n_characters, skipped = at, n_bytes, 0, 0
            key = _BASIS
            while at < stop:
                byte = int(text[at])
                width = 1 if byte < 128 else _width(byte)
                if width == 1:
                    kind = LETTER if _LOWER[byte] != 0 else 0
                else:
                    kind = int(classes[_code_point(text, at, width)])
                if kind == 0 or (kind == MARK and n_characters == 0):
                    skipped = width
                    break
                if end + width > letters.size:
                    is_done = False
                    break
                for i in range(width):
                    letter = int(_LOWER[byte]) if width == 1 else int(text[at + i])
                    letters[end + i] = letter
                    key = ((key ^ letter) * _PRIME) & _BITS
                end += width
                at += width
                n_characters += 1
            if is_done and n_characters >= LEAST_CHARACTERS:
                slot = key & mask
                word = int(slots[slot])
                while word != NOBODY:
                    start = ends[word - 1] if word > 0 else 0
                    if hashes[word] == key and _is_word(letters, start, ends[word], n_bytes, end):
                        break
                    slot = (slot + 1) & mask
                    word = int(slots[slot])
                if word == NOBODY and n_words == hashes.size:
                    is_done = False
                elif word == NOBODY:
                    word = n_words
                    slots[slot], hashes[word], ends[word], places[word] = word, key, end, 0
                    n_words += 1
                    n_bytes = end
                if is_done:
                    place = places[word]
                    if first <= place < n_entries and words[place] == word:
                        counts[place] += 1
                    else:
                        places[word], words[n_entries], counts[n_entries] = n_entries, word, 1
                        n_entries += 1
            if not is_done:
                at = began
                break
            at += skipped
        if is_done:
            document += 1
            indptr[document] = n_entries
    progress[DOCUMENT], progress[AT], progress[ENTRIES] = document, at, n_entries
    progress[WORDS], progress[BYTES] = n_words, n_bytes
    return is_done
