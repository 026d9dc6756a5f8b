"""Words as arrays, for files."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def packed(name: str, words: list[str]) -> dict[str, NDArray[Any]]:
    """Return words as arrays with names: the words joined, and where each ends."""
    texts = [word.encode("utf-8", "surrogatepass") for word in words]
    return {
        f"{name}.ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
        f"{name}.text": np.frombuffer(b"".join(texts), np.uint8),
    }


def unpacked(name: str, arrays: dict[str, NDArray[Any]]) -> list[str]:
    """Return the words that `packed` put into arrays."""
    text, ends = arrays[f"{name}.text"].tobytes(), arrays[f"{name}.ends"].tolist()
    if [0, *ends] != sorted([0, *ends]) or ends[-1:] not in ([], [len(text)]):
        raise ValueError(f"the array {name}.ends does not go from 0 to {len(text)}")
    return [
        text[start:end].decode("utf-8", "surrogatepass")
        for start, end in zip([0, *ends][:-1], ends, strict=True)
    ]


def require_words(words: Iterable[Hashable]) -> list[str]:
    """Return words, all of which must be strings; ValueError names one that is not."""
    found = []
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"the word {word!r} is not a string, so it cannot be saved")
        found.append(word)
    return found
