"""Spelling counts out as tokens: what compiled scores of documents multiply."""

from typing import Any

import numpy as np

from bnpstream.kernels.arrays import Floats, Integers, SparseRows
from bnpstream.kernels.jit.decorators import entry
from bnpstream.kernels.words.tables import LONG_RUN


def spell_out(indptr: Integers, values: Floats) -> tuple[Any, ...]:
    """Return repeat_ptr, repeats, token_ptr, tokens and seen of ``SparseRows``.

    The last entry of a row is its length and no word. A long run is one token.
    """
    repeat_ptr, token_ptr = np.zeros((2, indptr.size), np.int64)
    count_tokens(indptr, values, repeat_ptr, token_ptr)
    repeats = np.empty(repeat_ptr[-1], np.int64)
    tokens, seen = np.empty(token_ptr[-1], np.uint32), np.empty(token_ptr[-1])
    fill_tokens(indptr, values, repeat_ptr, repeats, token_ptr, tokens, seen)
    return repeat_ptr, repeats, token_ptr, tokens, seen


@entry
def count_tokens(indptr: Integers, values: Floats, repeat_ptr: Any, token_ptr: Any) -> None:
    """Fill the ends of rows in what repeats and in the tokens."""
    for i in range(indptr.size - 1):
        repeats_so_far, tokens_so_far = repeat_ptr[i], token_ptr[i]
        for j in range(indptr[i], indptr[i + 1] - 1):
            if values[j] > 1.0:
                repeats_so_far += 1
                tokens_so_far += 1 if values[j] >= LONG_RUN else np.int64(values[j]) - 1
        repeat_ptr[i + 1], token_ptr[i + 1] = repeats_so_far, tokens_so_far


@entry
def fill_tokens(
    indptr: Integers,
    values: Floats,
    repeat_ptr: Any,
    repeats: Any,
    token_ptr: Any,
    tokens: Any,
    seen: Any,
) -> None:
    """Fill what repeats, the tokens, and how often each has been seen."""
    for i in range(indptr.size - 1):
        r, t = repeat_ptr[i], token_ptr[i]
        for j in range(indptr[i], indptr[i + 1] - 1):
            if values[j] <= 1.0:
                continue
            repeats[r] = j
            r += 1
            long = values[j] >= LONG_RUN
            for before in range(1 if long else np.int64(values[j]) - 1):
                tokens[t] = j - indptr[i]
                seen[t] = -values[j] if long else before + 1.0
                t += 1


def with_tokens(rows: SparseRows) -> SparseRows:
    """Return rows of counts with the tokens after a word's first spelt out."""
    return SparseRows(*rows[:5], *spell_out(rows.indptr, rows.values))
