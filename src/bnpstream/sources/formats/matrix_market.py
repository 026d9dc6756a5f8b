"""The coordinate format of Matrix Market: a banner, comments, the size, and an entry a line.

The banner is ``%%MatrixMarket matrix coordinate integer general``, or has ``real`` or ``pattern``
instead of ``integer``; the size is the number of rows, of columns and of entries. Each further line
is an entry ``row column value``: both count from 1, and entries are sorted by row. Where the banner
says ``pattern`` there are no values, and all are 1. Whole numbers are counts, real ones make a
table. An entry that occurs twice is summed; blank lines are skipped.
"""

from collections.abc import Iterator

from bnpstream.kernels.text.digits import COUNTS, ONES, REALS
from bnpstream.sources.files.bad_lines import unexpected_line
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.position import Position
from bnpstream.sources.files.source import Reader
from bnpstream.sources.formats.entry_file import EntryParser, Header, Wording
from bnpstream.sources.formats.line_blocks import first_block
from bnpstream.sources.formats.number_batches import read_batches
from bnpstream.sources.formats.number_schemas import check_features, number_schema
from bnpstream.sources.formats.numerals import read_whole
from bnpstream.sources.records import Options, Records, Schema

__all__ = ["MatrixMarketReader"]

_BANNER = b"%%matrixmarket"
_VALUES = {b"integer": COUNTS, b"real": REALS, b"pattern": ONES}
_ENTRIES = {
    COUNTS: "a row, a column and a value, all whole numbers of at most 18 digits",
    REALS: "a row, a column and a value, the first two being whole numbers",
    ONES: "a row and a column, both whole numbers",
}
_CONVERT = "write it by scipy.io.mmwrite(path, scipy.sparse.csr_array(matrix), symmetry='general')"
_HEADER_BYTES = 1 << 20
_CHECKED_ENTRIES = 10_000


class MatrixMarketReader(Reader):
    """Reads the rows of a sparse matrix."""

    format = "mtx"

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self._values, self._header = _read_header(file)
        check_features(file, self._header.n_columns, schema)

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the banner and the size say."""
        values, header = _read_header(file)
        _check_order(file, header)
        return number_schema(cls.format, file, header.n_columns, options, is_real=values == REALS)

    @property
    def n_records(self) -> int:
        """Return how many rows the matrix has."""
        return self._header.n_rows

    def batches(self, batch_rows: int, start: Position) -> Iterator[tuple[Records, Position]]:
        """Yield rows, and the position after each batch."""
        size_line = f"line {self._header.n_lines}"
        wording = Wording(_ENTRIES[self._values], "row", "column", size_line, size_line, size_line)
        parser = EntryParser(
            self.file.path, self._header, self._values, self.options.max_line_bytes, wording
        )
        return read_batches(self.file, parser, self.schema, batch_rows, start)


def _read_header(file: ByteReader) -> tuple[int, Header]:
    """Return what values are and what the size says, without taking the lines."""
    lines = _header_lines(file)
    banner = lines[0].lower().split()
    if len(banner) != 5 or banner[0] != _BANNER:
        expected = "%%MatrixMarket matrix coordinate, then integer, real or pattern, then general"
        raise unexpected_line(file.path, 1, lines[0], expected)
    what, layout, field, symmetry = banner[1:]
    for is_other, expected in (
        (what != b"matrix", "a matrix"),
        (layout != b"coordinate", f"coordinate, as dense arrays come by columns: {_CONVERT}"),
        (field not in _VALUES, "values that are integer, real or pattern"),
        (symmetry != b"general", f"general, as half of the entries are left out: {_CONVERT}"),
    ):
        if is_other:
            raise unexpected_line(file.path, 1, lines[0], expected)
    numbers = [read_whole(number) for number in lines[-1].split()]
    sizes = [number for number in numbers if number is not None and number >= 0]
    if len(numbers) != 3 or len(sizes) != 3 or min(sizes[:2]) < 1:
        expected = "the size: how many rows, columns and entries there are"
        raise unexpected_line(file.path, len(lines), lines[-1], expected)
    n_rows, n_columns, n_entries = sizes
    return _VALUES[field], Header(n_rows, n_columns, n_entries, len(lines))


def _header_lines(file: ByteReader) -> list[bytes]:
    """Return the first lines up to the one that has the size."""
    n_lines = 2
    while True:
        ahead = file.peek(_HEADER_BYTES, lines=n_lines)
        lines = ahead.split(b"\n")
        if not file.ended:
            lines.pop()  # it may go on
        for number, line in enumerate(lines[1:], start=2):
            if line.strip() and not line.startswith(b"%"):
                return lines[:number]
        if file.ended or len(ahead) == _HEADER_BYTES:
            return lines or [ahead]
        n_lines = len(lines) + 1


def _check_order(file: ByteReader, header: Header) -> None:
    """Raise ValueError if the first entries are sorted by column, say, and not by row."""
    last = 1
    entries = first_block(file).text.split(b"\n")[header.n_lines :]
    for number, line in enumerate(entries[:_CHECKED_ENTRIES], start=header.n_lines + 1):
        row = read_whole((line.split() or [b""])[0])
        if row is not None and row < last:
            expected = f"a row of at least {last}, as entries come by rows: {_CONVERT}"
            raise unexpected_line(file.path, number, line, expected)
        last = row or last
