"""From lines of numbers to batches of rows: compiled loops where all is regular, else with care."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.text.parser import IRREGULAR, NO_ROOM, Progress, Rules
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position
from bnpstream.sources.formats.line_blocks import Block, line_blocks, without_header
from bnpstream.sources.formats.row_builder import Building, Taken
from bnpstream.sources.records import Records, Schema

__all__ = ["LineParser", "gather", "read_batches"]

_CAREFUL_LINES = 4
"""Irregular lines are seldom alone, and to enter a loop takes as long as to read one with care."""


class LineParser(Protocol):
    """Knows what the lines of a format mean."""

    rules: Rules
    n_header_lines: int
    n_records: int | None
    """How many records there are in all, if the file says so."""

    def parse(self, text: NDArray[np.uint8], building: Building) -> Progress:
        """Parse regular lines; return how far that went."""

    def judge(self, line: bytes, building: Building) -> bool:
        """Take or reject one line; return False if it is for the next batch."""

    def end_error(self, building: Building) -> ValueError | None:
        """Return what is wrong if this cannot be the end of the file."""


def read_batches(
    file: ByteReader, parser: LineParser, schema: Schema, batch_rows: int, start: Position
) -> Iterator[tuple[Records, Position]]:
    """Yield the records of a file after `start`, and the position after each batch.

    The file is entered at `start.offset`, or read up to `start.in_file` if that is None.
    """
    building = Building(parser.rules, file.path, start.records - start.in_file)
    can_enter = parser.n_records is None and file.is_plain
    if start.offset is None or not can_enter:
        blocks = without_header(
            line_blocks(file, parser.rules.max_line_bytes), parser.n_header_lines
        )
        building.progress = Progress(n_lines=parser.n_header_lines)
    else:
        # A last line without its end counts as if it had one.
        if file.size is not None and file.size + 1 < start.offset:
            raise ValueError(
                f"{file.path}: it has {file.size} bytes, but {start.offset} were read before: "
                "it is not the same file; start afresh"
            )
        file.seek(start.offset)
        blocks = line_blocks(file, parser.rules.max_line_bytes, start.offset)
        building.progress = Progress(n_lines=start.line)
        building.first = start.in_file
    for taken, offset in gather(blocks, parser, building, batch_rows, start.in_file, file.waiting):
        before = building.before
        numbers = [before + number for number in taken.numbers]
        yield (
            Records(
                rows=taken.rows if schema.kind == "counts" else taken.rows.toarray(),
                numbers=numbers,
                ids=list(numbers),
                rejects=taken.rejects,
            ),
            Position(
                records=before + building.first,
                file=start.file,
                in_file=building.first,
                line=building.progress.n_lines,
                offset=offset if can_enter else None,
            ),
        )


def gather(
    blocks: Iterable[Block],
    parser: LineParser,
    building: Building,
    batch_rows: int,
    skip: int = 0,
    is_waiting: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[Taken, int]]:
    """Yield what is complete, and the bytes of the file behind it.

    Batches end at multiples of `batch_rows` records, and where no more bytes are waiting. The first
    `skip` records of the file are not delivered. Where the file breaks off, what is complete comes
    first, and then the error.
    """
    offset = 0

    def resize() -> None:
        size = batch_rows - building.first % batch_rows
        if building.first < skip:
            size = min(size, skip - building.first)
        if parser.n_records is not None:
            size = min(size, parser.n_records - building.first)
        building.resize(size)

    def take() -> Iterator[tuple[Taken, int]]:
        is_wanted = building.first >= skip
        taken = building.take()
        resize()
        if is_wanted:
            yield taken, offset

    resize()
    try:
        for block in blocks:
            if block.is_new:
                if parser.n_records is not None:
                    raise ValueError(
                        f"{building.source}: it was cut or replaced while it was read, so that its "
                        "first lines say nothing about the rest: start afresh"
                    )
                if building.progress.n_records:
                    yield from take()
                building.start_file()
                skip = 0
                resize()
            text = np.frombuffer(block.text, dtype=np.uint8)
            building.progress = building.progress._replace(at=0)
            while True:
                _advance(parser, block.text, text, building)
                offset = block.end - (text.size - building.progress.at)
                if building.is_complete:
                    yield from take()
                elif building.progress.at == text.size:
                    break
            if building.progress.n_records and building.first >= skip and not is_waiting():
                yield from take()
            del block, text  # before the next ones are read
        if (error := parser.end_error(building)) is not None:
            raise error
    except ValueError:
        if building.first >= skip:
            if building.is_spoilt:
                building.close(building.progress.n_records + 1)
            taken = building.take(is_end=True)
            if taken.rows.shape[0] or taken.rejects:
                yield taken, offset
        raise
    while parser.n_records is not None and building.first < parser.n_records:
        building.close(building.room.ends.size)
        yield from take()
    if building.progress.n_records:
        yield from take()
    if building.first < skip:
        raise ValueError(
            f"{building.source}: it has {building.first} records, but {skip} were read before: "
            "it is not the same input; start afresh"
        )


def _advance(parser: LineParser, raw: bytes, text: NDArray[np.uint8], building: Building) -> None:
    """Read on until the text ends, the batch is complete, or a few irregular lines are behind."""
    building.progress = parser.parse(text, building)
    if building.progress.status == NO_ROOM:
        building.grow()
    if building.progress.status != IRREGULAR:
        return
    for _ in range(_CAREFUL_LINES):
        at = building.progress.at
        if building.is_complete or at == len(raw):
            return
        end = raw.index(b"\n", at)
        if not parser.judge(raw[at:end], building):
            return
        building.progress = building.progress._replace(
            at=end + 1, n_lines=building.progress.n_lines + 1
        )
