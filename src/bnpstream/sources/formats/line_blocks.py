"""Whole lines of a file, many at a time, in bounded memory."""

from collections.abc import Iterator
from typing import NamedTuple

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.records import BEGINNING

__all__ = ["Block", "first_block", "line_blocks", "without_header"]


class Block(NamedTuple):
    """Some lines of a file."""

    text: bytes
    """Lines, each with its end; where the file lacks the last one, it is added."""
    end: int
    """Bytes of the file behind it once these lines are."""
    is_new: bool = False
    """Whether a file that is followed was cut or replaced, and these are its first lines."""


def line_blocks(file: ByteReader, max_line_bytes: int, offset: int = 0) -> Iterator[Block]:
    """Yield the lines of a file.

    Parameters
    ----------
    file : ByteReader
        Where bytes come from.
    max_line_bytes : int
        A longer line may lack some bytes; it is still longer than this, and begins its block.
    offset : int
        Bytes of the file that are behind it already.
    """
    # What is shown of a line must not depend on where blocks end.
    kept_bytes = max(max_line_bytes + 1, 4 * BEGINNING)
    left, end = b"", offset
    restarts, is_new = file.restarts, False
    for piece in file.blocks():
        if file.restarts != restarts:
            if left:  # nobody will write its end
                yield Block(left + b"\n", end + 1, is_new)
            left, end = b"", 0
            restarts, is_new = file.restarts, True
        end += len(piece)
        until = piece.rfind(b"\n") + 1
        if until == 0:
            left = (left + piece)[:kept_bytes]
            continue
        text = b"".join([left, memoryview(piece)[:until]])
        yield Block(text, end - len(piece) + until, is_new)
        del text
        left, is_new = piece[until:], False
    if left:
        yield Block(left + b"\n", end + 1, is_new)


def first_block(file: ByteReader) -> Block:
    """Return the lines that a look ahead shows, without taking them."""
    ahead = file.peek()
    until = ahead.rfind(b"\n") + 1
    return Block(ahead[:until] if until else ahead + b"\n", until)


def without_header(blocks: Iterator[Block], n_lines: int) -> Iterator[Block]:
    """Yield blocks without the first lines."""
    while n_lines:
        block = next(blocks, None)
        if block is None:
            return
        at = 0
        while n_lines and at < len(block.text):
            at = block.text.index(b"\n", at) + 1
            n_lines -= 1
        if at < len(block.text):
            yield Block(block.text[at:], block.end)
        del block
    yield from blocks
