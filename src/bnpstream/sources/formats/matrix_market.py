"""The coordinate format of Matrix Market: a banner, comments, the size, and one entry per line.

The banner is ``%%MatrixMarket matrix coordinate integer general``, or has ``real`` or ``pattern``
instead of ``integer``; the size is the number of rows, of columns and of entries. Each further line
is an entry ``row column value``: both count from 1, and entries are sorted by row. With ``pattern``
there are no values, and all are 1. Whole numbers are counts, real ones make a table. Duplicate
entries are summed; blank lines are skipped.
"""

from typing import ClassVar

from bnpstream.kernels.text.digits import COUNTS, ONES, REALS
from bnpstream.sources.files.byte_reader import BYTE_ORDER_MARK, ByteReader
from bnpstream.sources.files.lines import unexpected_line
from bnpstream.sources.formats.entries import EntryReader, Header, Wording
from bnpstream.sources.formats.numerals import BLANKS, fields_of, read_whole
from bnpstream.sources.records import Options, Schema

_BANNER = b"%%matrixmarket"
_VALUES = {b"integer": COUNTS, b"real": REALS, b"pattern": ONES}
_ENTRIES = {
    COUNTS: "a row, a column and a value, all whole numbers of at most 18 digits",
    REALS: "a row, a column and a value, the first two whole numbers",
    ONES: "a row and a column, both whole numbers",
}
_CONVERT = "use scipy.io.mmwrite(path, scipy.sparse.csr_array(matrix), symmetry='general')"
_HEADER_BYTES = 1 << 20
_CHECKED_ENTRIES = 10_000


class MatrixMarketReader(EntryReader):
    """Reads the rows of a sparse matrix."""

    format: ClassVar[str] = "mtx"

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return the schema, from the banner and the size."""
        _check_order(file, cls.read_header(file).n_lines)
        return super().find_schema(file, options)

    @classmethod
    def read_header(cls, file: ByteReader) -> Header:
        """Return the banner and the size, without taking the lines."""
        lines = _header_lines(file)
        banner = fields_of(lines[0].lower())
        if len(banner) != 5 or banner[0] != _BANNER:
            expected = (
                "%%MatrixMarket matrix coordinate, then integer, real or pattern, then general"
            )
            raise unexpected_line(file.path, 1, lines[0], expected)
        what, layout, field, symmetry = banner[1:]
        for is_other, expected in (
            (what != b"matrix", "a matrix"),
            (layout != b"coordinate", f"coordinate, not a dense array: {_CONVERT}"),
            (field not in _VALUES, "values that are integer, real or pattern"),
            (symmetry != b"general", f"general, with all entries: {_CONVERT}"),
        ):
            if is_other:
                raise unexpected_line(file.path, 1, lines[0], expected)
        numbers = [read_whole(number) for number in fields_of(lines[-1])]
        sizes = [number for number in numbers if number is not None and number >= 0]
        if len(numbers) != 3 or len(sizes) != 3 or min(sizes[:2]) < 1:
            expected = "the size: number of rows, columns and entries"
            raise unexpected_line(file.path, len(lines), lines[-1], expected)
        n_rows, n_columns, n_entries = sizes
        values, size_line = _VALUES[field], f"line {len(lines)}"
        wording = Wording(_ENTRIES[values], "row", "column", size_line, size_line, size_line)
        return Header(n_rows, n_columns, n_entries, len(lines), values, wording)


def _header_lines(file: ByteReader) -> list[bytes]:
    """Return the first lines, up to the one with the size."""
    n_lines = 2
    while True:
        ahead = file.peek(_HEADER_BYTES, lines=n_lines)
        lines = ahead.removeprefix(BYTE_ORDER_MARK).split(b"\n")
        if not file.ended:
            lines.pop()  # it may be incomplete
        for number, line in enumerate(lines[1:], start=2):
            if line.strip(BLANKS) and not line.startswith(b"%"):
                return lines[:number]
        if file.ended or len(ahead) == _HEADER_BYTES:
            return lines or [ahead]
        n_lines = len(lines) + 1


def _check_order(file: ByteReader, n_header_lines: int) -> None:
    """Raise ValueError if the first entries are not sorted by row, but by column, say."""
    last = 1
    entries = file.peek().split(b"\n")[n_header_lines:-1]
    for number, line in enumerate(entries[:_CHECKED_ENTRIES], start=n_header_lines + 1):
        row = read_whole((fields_of(line) or [b""])[0])
        if row is not None and row < last:
            expected = f"a row of at least {last}, sorted by row: {_CONVERT}"
            raise unexpected_line(file.path, number, line, expected)
        last = row or last
