"""Lines of pairs ``id:value``, a record each."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.text.parser import Progress, Rules, parse_pairs
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.formats.line_blocks import Block, line_blocks
from bnpstream.sources.formats.number_batches import gather
from bnpstream.sources.formats.row_builder import Building
from bnpstream.sources.records import Options, UnusableError
from bnpstream.sources.vocabulary_file import read_vocabulary

__all__ = ["MOST_COLUMNS", "PairParser", "Pairs", "known_features", "survey", "survey_file"]

MOST_COLUMNS = int(np.iinfo(np.int32).max)
"""Columns that may be while nobody knows how many there are."""
_SURVEY_ROWS = 4096


class Pairs(NamedTuple):
    """What a line says."""

    ids: Sequence[int]
    values: Sequence[float]


class PairParser(ABC):
    """Knows what lines of pairs mean.

    Parameters
    ----------
    rules : Rules
        What lines may be.
    """

    n_header_lines = 0
    n_records: int | None = None
    has_labels: bool
    """Whether a line begins with a label, or with the number of pairs."""
    wording: tuple[str, str]
    """What the format calls ids and columns."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    @abstractmethod
    def is_record(self, line: bytes) -> bool:
        """Return whether a line stands for a record."""

    @abstractmethod
    def read(self, line: bytes) -> Pairs:
        """Return what a line says; UnusableError says what it should be."""

    def parse(self, text: NDArray[np.uint8], building: Building) -> Progress:
        """Parse regular lines; return how far that went."""
        found: Progress = parse_pairs(
            text, building.progress, self.has_labels, self.rules, building.room
        )
        return found

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
                    f"{ids_name} in {first}..{last}, as there are {n_columns} {columns_name}"
                )
            building.append([number - first for number in ids], values)
        except UnusableError as error:
            building.reject(line, str(error))
        building.close(building.progress.n_records + 1)
        return True

    def end_error(self, building: Building) -> ValueError | None:
        """Return None: a file may end after any line."""
        return None


class Survey(NamedTuple):
    """What occurs in some records."""

    least_id: int
    most_id: int
    """-1 if there are no pairs."""
    is_real: bool
    """Whether there are values that are no counts."""


def survey(blocks: Iterable[Block], parser: PairParser) -> Survey:
    """Return what occurs in records that can be read; the parser's first column has to be 0."""
    least, most, is_real = MOST_COLUMNS, -1, False
    building = Building(parser.rules, "", 0)
    # What is damaged will be reported when it is read.
    with suppress(ValueError):
        for taken, _ in gather(blocks, parser, building, _SURVEY_ROWS):
            ids, values = taken.rows.indices, taken.rows.data
            least = min(least, int(ids.min(initial=least)))
            most = max(most, int(ids.max(initial=most)))
            is_real = is_real or bool(np.any((values < 0) | (values % 1 != 0)))
    return Survey(least, most, is_real)


def survey_file(file: ByteReader, parser: PairParser) -> Survey:
    """Return what occurs in a whole file, which is opened once more.

    Raises
    ------
    ValueError
        If it cannot be read twice.
    """
    if file.is_live or file.path == "-":
        raise ValueError(
            f"{file.path}: how many columns there are is not known before the end: "
            "give --n-features or --vocab"
        )
    with ByteReader(file.path) as again:
        return survey(line_blocks(again, parser.rules.max_line_bytes), parser)


def known_features(options: Options) -> int | None:
    """Return how many columns there are if the user says so."""
    if options.n_features is None and options.vocab is not None:
        return len(read_vocabulary(options.vocab))
    return options.n_features
