"""Counts spelt out as tokens, against plain lists."""

import numpy as np
import pytest

from bnpstream.kernels.words.tables import LONG_RUN
from bnpstream.kernels.words.tokens import spell_out


def spelt_out(documents):
    """Return what `spell_out` should: positions in the batch, and tokens after a word's first."""
    repeats, tokens, ends = [], [], [(0, 0)]
    start = 0
    for document in documents:
        for j, count in enumerate(document):
            if count > 1:
                repeats.append(start + j)
            if count >= LONG_RUN:
                tokens.append((j, -count))
            else:
                tokens += [(j, seen) for seen in range(1, count)]
        ends.append((len(repeats), len(tokens)))
        start += len(document) + 1  # the length
    return repeats, tokens, ends


@pytest.mark.kernel
@pytest.mark.parametrize("case", range(4))
def test_tokens_are_those_of_the_counts(case):
    rng = np.random.default_rng((97, case))
    documents = [
        [int(count) for count in rng.choice([1, 1, 2, 3, 23, 24, 900], size=rng.integers(0, 9))]
        for _ in range(12)
    ]
    indptr = np.append(0, np.cumsum([len(document) + 1 for document in documents]))
    values = np.concatenate([[*document, sum(document)] for document in documents]).astype(float)
    repeat_ptr, repeats, token_ptr, tokens, seen = spell_out(indptr, values)
    expected_repeats, expected_tokens, ends = spelt_out(documents)
    assert repeats.tolist() == expected_repeats
    assert list(zip(tokens.tolist(), seen.tolist(), strict=True)) == expected_tokens
    assert list(zip(repeat_ptr.tolist(), token_ptr.tolist(), strict=True)) == ends
    assert tokens.dtype == np.uint32
