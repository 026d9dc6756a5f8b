"""Documents as bags of words: arrays that read like a list of counts by word."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray


class Words(NamedTuple):
    """Words that a lexicon had when some documents were counted: it only ever adds others."""

    lexicon: object
    """Tells it from other lexicons, by identity."""
    size: int
    ends: NDArray[np.int64]
    letters: NDArray[np.uint8]

    def spelled(self, numbers: Sequence[int]) -> list[str]:
        """Return some words."""
        ends, letters = self.ends, self.letters
        return [
            letters[ends[word - 1] if word > 0 else 0 : ends[word]]
            .tobytes()
            .decode("utf-8", "surrogatepass")
            for word in numbers
        ]


class Bags(Sequence[dict[str, int]]):
    """Documents as bags of words, one after the other in arrays.

    It reads like a list of dicts from words to counts, in order of first appearance, and travels
    to other processes as one.

    Parameters
    ----------
    indptr : ndarray of shape (n + 1,)
        Where every document begins.
    ids : ndarray of shape (entries,)
        Words, as the lexicon numbers them.
    counts : ndarray of shape (entries,)
        How often each occurs, at least once.
    words : Words
        What the numbers stand for.
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        ids: NDArray[np.int32],
        counts: NDArray[np.int64],
        words: Words,
    ) -> None:
        self.indptr, self.ids, self.counts, self.words = indptr, ids, counts, words

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @overload
    def __getitem__(self, rows: int) -> dict[str, int]: ...

    @overload
    def __getitem__(self, rows: slice) -> "Bags": ...

    def __getitem__(self, rows: int | slice) -> "dict[str, int] | Bags":
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step != 1:
                raise ValueError(f"documents are cut into stretches, not by steps of {step}")
            indptr = self.indptr[start : max(start, stop) + 1]
            inside = slice(indptr[0], indptr[-1])
            return Bags(indptr - indptr[0], self.ids[inside], self.counts[inside], self.words)
        at = range(len(self))[rows]
        inside = slice(self.indptr[at], self.indptr[at + 1])
        words = self.words.spelled(self.ids[inside].tolist())
        return dict(zip(words, self.counts[inside].tolist(), strict=True))

    def __iter__(self) -> Iterator[dict[str, int]]:
        used, places = np.unique(self.ids, return_inverse=True)
        names = self.words.spelled(used.tolist())
        words = [names[place] for place in places.tolist()]
        counts, bounds = self.counts.tolist(), self.indptr.tolist()
        for start, stop in pairwise(bounds):
            yield dict(zip(words[start:stop], counts[start:stop], strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Bags({list(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def copy(self) -> "Bags":
        """Return the documents, which nobody changes."""
        return self

    @staticmethod
    def joined(parts: Sequence["Bags"]) -> "Bags | list[dict[str, int]]":
        """Return the documents of all parts; those of several lexicons as a list."""
        last = parts[-1]
        if any(part.words.lexicon is not last.words.lexicon for part in parts):
            return [document for part in parts for document in part]
        sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        ids, counts = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "counts")
        )
        return Bags(np.append(0, np.cumsum(sizes)), ids, counts, last.words)
