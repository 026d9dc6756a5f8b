"""Lines of pairs ``id:value``, one record each."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.text.parser import Progress, parse_pairs
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.lines import Block, LineBlocks, first_lines
from bnpstream.sources.files.position import Position
from bnpstream.sources.formats.number_reader import NumberReader
from bnpstream.sources.formats.row_builder import Building
from bnpstream.sources.records import Options, Schema, UnusableError

MOST_COLUMNS = int(np.iinfo(np.int32).max)
"""Most columns while their number is unknown."""
_SURVEY_ROWS = 4096


class Pairs(NamedTuple):
    """The pairs in a line."""

    ids: Sequence[int]
    values: Sequence[float]


class Survey(NamedTuple):
    """What occurs in some records."""

    least_id: int
    most_id: int
    """-1 if there are no pairs."""
    is_real: bool
    """Whether some values are not counts."""


class PairReader(NumberReader):
    """Reads lines of pairs."""

    has_labels: ClassVar[bool]
    """Whether a line starts with a label, or else with the number of pairs."""
    wording: ClassVar[tuple[str, str]]
    """The format's terms for ids and columns."""
    widest: ClassVar[Schema]
    """Schema of records before anything is known about them; ids count from 0."""

    @abstractmethod
    def is_record(self, line: bytes) -> bool:
        """Return whether a line is a record."""

    @abstractmethod
    def read(self, line: bytes) -> Pairs:
        """Parse a line; UnusableError says what was expected."""

    def parse(self, text: NDArray[np.uint8], building: Building) -> Progress:
        """Parse regular lines; return how far that went."""
        start = building.progress
        return Progress(*parse_pairs(text, start, self.has_labels, self.rules, building.room))

    def judge(self, line: bytes, building: Building) -> bool:
        """Take or reject one line."""
        if not self.is_record(line):
            return True
        try:
            if len(line) > self.rules.max_line_bytes:
                raise UnusableError(f"a line of at most {self.rules.max_line_bytes} bytes")
            ids, values = self.read(line)
            first, n_columns = self.rules.first_column, self.rules.n_columns
            last = first + n_columns - 1
            if not all(first <= number <= last for number in ids):
                ids_name, columns_name = self.wording
                raise UnusableError(
                    f"{ids_name} in {first}..{last}, because there are {n_columns} {columns_name}"
                )
            building.append([number - first for number in ids], values)
        except UnusableError as error:
            building.reject(line, str(error))
        building.close(building.progress.n_records + 1)
        return True

    @classmethod
    def survey_head(cls, file: ByteReader, options: Options) -> Survey:
        """Return what occurs in the first records, looking ahead."""
        lines = first_lines(file, max_bytes=options.max_line_bytes)
        head = b"".join(line + b"\n" for line in lines)
        return cls(file, cls.widest, options)._survey([Block(head, len(head))])

    @classmethod
    def survey_file(cls, file: ByteReader, options: Options) -> Survey:
        """Return what occurs in the whole file, which is opened a second time.

        Raises
        ------
        ValueError
            If it cannot be read twice.
        """
        if file.is_live or file.path == "-":
            raise ValueError(
                f"{file.path}: the number of columns is not known before the end: "
                "give --n-features or --vocab"
            )
        with ByteReader(file.path) as again:
            reader = cls(again, cls.widest, options)
            return reader._survey(LineBlocks(again, options.max_line_bytes))

    def _survey(self, blocks: Iterable[Block]) -> Survey:
        """Return what occurs in the valid records."""
        least, most, is_real = MOST_COLUMNS, -1, False
        building = Building(self.rules, self.file.path, _SURVEY_ROWS, Position(), None)
        # Damage will be reported when it is read.
        with suppress(ValueError):
            for records in self.gather(blocks, building):
                ids, values = records.rows.indices, records.rows.data
                least = min(least, int(ids.min(initial=least)))
                most = max(most, int(ids.max(initial=most)))
                with np.errstate(invalid="ignore"):  # the sum may not be finite
                    is_real = is_real or bool(np.any((values < 0) | (values % 1 != 0)))
        return Survey(least, most, is_real)
