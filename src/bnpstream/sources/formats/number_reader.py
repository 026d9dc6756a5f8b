"""Lines of numbers into batches of rows: regular lines by compiled loops, others one by one."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.text.parser import IRREGULAR, NO_ROOM, Progress, Rules
from bnpstream.sources.files.lines import Block, LineBlocks
from bnpstream.sources.files.position import Position, head_of, too_short
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.row_builder import Building
from bnpstream.sources.records import Records

_CAREFUL_LINES = 4
"""Irregular lines are rarely alone, and entering a loop costs as much as reading one by itself."""


class NumberReader(Reader):
    """Reads lines of numbers; subclasses say what they mean.

    A file that announces its number of records can only be read from its beginning.
    """

    rules: Rules
    n_header_lines: int = 0

    @abstractmethod
    def parse(self, text: NDArray[np.uint8], building: Building) -> Progress:
        """Parse regular lines; return how far that went."""

    @abstractmethod
    def judge(self, line: bytes, building: Building) -> bool:
        """Take or reject one line; return False if it belongs to the next batch."""

    def check_end(self, building: Building) -> None:
        """Raise ValueError if the file cannot end here."""
        return

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield the records after a position, with the position after each batch.

        Reading starts at `start.offset`, or skips to `start.in_file` if that is None.
        """
        building = Building(self.rules, self.file.path, batch_rows, start, self.n_records)
        can_enter = self.n_records is None and self.file.is_plain
        if can_enter and start.offset is not None:
            blocks = LineBlocks(self.file, self.rules.max_line_bytes, start)
            building.enter(start)
        else:
            blocks = LineBlocks(self.file, self.rules.max_line_bytes)
        for records in self.gather(blocks, building):
            position = Position(
                records=building.before + building.first,
                file=start.file,
                in_file=building.first,
                line=building.progress.n_lines,
                offset=building.offset if can_enter else None,
                head=head_of(building.file_first, building.offset) if can_enter else None,
            )
            if self.schema.kind == "table":
                records = replace(records, rows=records.rows.toarray())
            yield records, position

    def all_rows(self, batch_rows: int = 1024) -> Iterator[tuple[Any, int]]:
        """Yield all rows, with the number of records so far; a reject is a ValueError."""
        for records, position in self.batches(batch_rows, Position()):
            if records.rejects:
                raise records.rejects[0].error()
            yield records.rows, position.records

    def gather(self, blocks: Iterable[Block], building: Building) -> Iterator[Records]:
        """Yield batches of sparse rows as they become complete.

        A batch also ends if no more bytes are waiting. If the file breaks off, the complete rows
        come first, then the error.
        """
        n_header = self.n_header_lines
        building.progress = building.progress._replace(n_lines=building.progress.n_lines + n_header)
        try:
            for block in blocks:
                if block.is_new:
                    yield from self._restart(building)
                at, text = 0, np.frombuffer(block.text, dtype=np.uint8)
                while n_header and at < text.size:
                    at, n_header = block.text.index(b"\n", at) + 1, n_header - 1
                building.progress = building.progress._replace(at=at)
                while True:
                    self._advance(block.text, text, building)
                    building.offset = block.end - (text.size - building.progress.at)
                    building.file_first = block.first
                    if building.is_complete:
                        yield from building.take()
                    elif building.progress.at == text.size:
                        break
                del block, text  # before the next ones are read
                if building.progress.n_records and building.is_wanted and not self.file.waiting():
                    yield from building.take()
            self.check_end(building)
        except ValueError:
            yield from building.take_broken()
            raise
        while self.n_records is not None and building.first < self.n_records:
            building.close(building.room.ends.size)
            yield from building.take()
        if building.progress.n_records:
            yield from building.take()
        if not building.is_wanted:
            raise too_short(self.file.path, building.first, "records", building.skip)

    def _restart(self, building: Building) -> Iterator[Records]:
        """Yield the rest of a followed file that was replaced, and start the new one."""
        if self.n_records is not None:
            raise ValueError(
                f"{self.file.path}: it was cut or replaced while it was read, so its first "
                "lines do not describe the rest: start a new run"
            )
        if building.progress.n_records:
            yield from building.take()
        building.start_file()

    def _advance(self, raw: bytes, text: NDArray[np.uint8], building: Building) -> None:
        """Read until the text ends, the batch is complete, or a few lines were irregular."""
        building.progress = self.parse(text, building)
        if building.progress.status == NO_ROOM:
            building.grow()
        if building.progress.status != IRREGULAR:
            return
        for _ in range(_CAREFUL_LINES):
            at = building.progress.at
            if building.is_complete or at == len(raw):
                return
            end = raw.index(b"\n", at)
            if not self.judge(raw[at:end], building):
                return
            building.progress = building.progress._replace(
                at=end + 1, n_lines=building.progress.n_lines + 1
            )
