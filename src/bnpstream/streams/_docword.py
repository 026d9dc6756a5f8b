"""Parse the lines of a docword file into columns of whole numbers, a block of text at a time.

The rules are spelled twice: `_parse_block` and `_follows_rules` look at a whole block and only
know whether all is well; where it is not, `_parse_lines` goes line by line and names the first
that is wrong.
"""

import re
from collections.abc import Iterator
from io import BufferedIOBase
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.streams._files import unexpected_line

__all__ = ["Header", "iter_entries", "read_header"]

_BLOCK_BYTES = 1 << 20
# A longer line may be cut, and then refused: memory stays bounded on a file without line ends.
_LINE_BYTES = 4096
# Eighteen digits are the most that always fit in int64.
_WHOLE_NUMBER = re.compile(rb"-?[0-9]{1,18}")
_NINETEEN_DIGITS = 10**18


class Header(NamedTuple):
    """The numbers in the first three lines: D, W and NNZ."""

    n_documents: int
    n_words: int
    n_entries: int


class _Place(NamedTuple):
    """Where the reader stands: lines and entries behind it, and the last docID it has seen."""

    n_lines: int
    n_entries: int
    document: int


def read_header(file: BufferedIOBase, path: str | PathLike[str]) -> Header:
    r"""Read the first three lines.

    Examples
    --------
    >>> import io
    >>> read_header(io.BytesIO(b"3430\n6906\n353160\n"), "docword.kos.txt")
    Header(n_documents=3430, n_words=6906, n_entries=353160)
    """
    numbers: list[int] = []
    for what, least in (("documents D", 1), ("words W", 1), ("entries NNZ", 0)):
        line = file.readline(_LINE_BYTES)
        text = line.strip()
        if not _WHOLE_NUMBER.fullmatch(text) or int(text) < least:
            expected = (
                f"the number of {what}, at least {least}: "
                "a docword file starts with three lines, D, W and NNZ"
            )
            raise unexpected_line(path, len(numbers) + 1, line, expected)
        numbers.append(int(text))
    return Header(*numbers)


def iter_entries(
    file: BufferedIOBase, path: str | PathLike[str], header: Header
) -> Iterator[tuple[NDArray[np.int64], int]]:
    r"""Yield entries, and how many documents are complete with them.

    A document is complete when a later one has begun, or when the file has ended as announced.

    Yields
    ------
    entries : array of int64, shape (3, m)
        The next docIDs, wordIDs and counts.
    n_complete : int
        Documents of which nothing more will come.

    Examples
    --------
    >>> import io
    >>> for entries, n_complete in iter_entries(io.BytesIO(b"1 2 5\n3 1 1\n"), "", Header(4, 2, 2)):
    ...     print(entries.tolist(), n_complete)
    [[1, 3], [2, 1], [5, 1]] 2
    [[], [], []] 4
    """
    place = _Place(n_lines=3, n_entries=0, document=1)
    while block := file.read(_BLOCK_BYTES):
        if not block.endswith(b"\n"):
            block += file.readline(_LINE_BYTES)
        if not block.endswith(b"\n"):
            block += b"\n"
        entries = _parse_block(block)
        if entries is None or not _follows_rules(entries, header, place):
            entries = _parse_lines(block, path, header, place)
        place = _Place(
            n_lines=place.n_lines + block.count(b"\n"),
            n_entries=place.n_entries + entries.shape[1],
            document=int(entries[0, -1]) if entries.size else place.document,
        )
        yield entries, place.document - 1
    if place.n_entries < header.n_entries:
        raise ValueError(
            f"{path}: the file is truncated, it ends after line {place.n_lines} with "
            f"{place.n_entries} entries; expected the {header.n_entries} that line 3 announces: "
            "fetch it again, or correct the header"
        )
    yield np.empty((3, 0), dtype=np.int64), header.n_documents


def _parse_block(block: bytes) -> NDArray[np.int64] | None:
    """Parse lines of three unsigned numbers; None if there may be another kind of line."""
    if block.translate(None, b"0123456789 \t\r\n"):
        return None
    characters = np.frombuffer(block, dtype=np.uint8)
    line_ends = np.flatnonzero(characters == ord("\n"))
    is_digit = characters >= ord("0")
    number_ends = np.flatnonzero(is_digit[:-1] > is_digit[1:])
    # The third number of a line ends before the line does, and the fourth ends after it.
    if (
        number_ends.size != 3 * line_ends.size
        or np.any(number_ends[2::3] > line_ends)
        or np.any(number_ends[3::3] < line_ends[:-1])
    ):
        return None
    entries = np.fromstring(block, dtype=np.int64, sep=" ").reshape(-1, 3)
    return np.ascontiguousarray(entries.T)


def _follows_rules(entries: NDArray[np.int64], header: Header, place: _Place) -> bool:
    """Say whether all of these entries, of which there is at least one, may come here."""
    documents, words, counts = entries
    return bool(
        place.document <= documents[0]
        and np.all(documents[:-1] <= documents[1:])
        and documents[-1] <= header.n_documents
        and words.min() >= 1
        and words.max() <= header.n_words
        and counts.min() >= 1
        # `np.fromstring` turns what does not fit in int64 into the largest int64.
        and counts.max() < _NINETEEN_DIGITS
        and place.n_entries + documents.size <= header.n_entries
    )


def _parse_lines(
    block: bytes, path: str | PathLike[str], header: Header, place: _Place
) -> NDArray[np.int64]:
    """Parse line by line, skipping blank ones; raise at the first that breaks a rule."""
    entries: list[tuple[int, int, int]] = []
    last_document = place.document
    for number, line in enumerate(block.split(b"\n"), start=place.n_lines + 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 3 or not all(map(_WHOLE_NUMBER.fullmatch, fields)):
            expected = "three whole numbers of at most 18 digits: docID wordID count"
            raise unexpected_line(path, number, line, expected)
        document, word, count = map(int, fields)
        if not 1 <= document <= header.n_documents:
            expected = f"a docID in 1..{header.n_documents}, as line 1 announces"
        elif document < last_document:
            expected = f"a docID of at least {last_document}: sort the entries by docID"
        elif not 1 <= word <= header.n_words:
            expected = f"a wordID in 1..{header.n_words}, as line 2 announces"
        elif count < 1:
            expected = "a count of at least 1: leave out words that do not occur"
        elif place.n_entries + len(entries) == header.n_entries:
            expected = f"the end of the file after {header.n_entries} entries, as line 3 announces"
        else:
            entries.append((document, word, count))
            last_document = document
            continue
        raise unexpected_line(path, number, line, expected)
    return np.array(entries, dtype=np.int64).reshape(-1, 3).T
