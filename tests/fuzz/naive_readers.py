"""Slow readers that share no code with the package, and are compared with its own.

Each takes the bytes of a file and what is known about it, and returns a row or None, for a reject,
for every record; or NotImplemented where a file is of no kind that it knows.
"""

import math
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

from naive_tables import arrow_rows, csv_rows, json_rows, npz_rows
from readings import LONGEST
from splices import is_packed

from bnpstream.sources import Options, open_source

DIGITS = "0123456789"
BLANKS = " \t\r"


def lines_of(data: bytes) -> list[bytes]:
    """Return lines without their ends."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line[:-1] if line[-1:] == b"\r" else line for line in lines]


def split(line: str) -> list[str]:
    """Return what stands between blanks."""
    for blank in BLANKS[1:]:
        line = line.replace(blank, " ")
    return [field for field in line.split(" ") if field]


def whole(text: str, least: int = 0) -> int | None:
    """Return a whole number of at most 18 digits."""
    sign = -1 if text[:1] == "-" and least < 0 else 1
    digits = text[1:] if sign < 0 else text
    if not 1 <= len(digits) <= 18 or any(digit not in DIGITS for digit in digits):
        return None
    return sign * int(digits)


LONGEST_EXPONENT = 18
"""Of a count; a longer one is refused even if the number is 0."""


def decimal(text: str) -> Fraction | None:
    """Return a decimal number as it is written, exactly."""
    mantissa, mark, exponent = text.replace("E", "e").partition("e")
    signs = {"-": -1, "+": 1}
    sign = signs.get(mantissa[:1], 1)
    mantissa = mantissa[1:] if mantissa[:1] in signs else mantissa
    before, _, after = mantissa.partition(".")
    power = exponent[1:] if exponent[:1] in signs else exponent
    if any(c not in DIGITS for c in before + after + power) or not before + after:
        return None
    if mark and power and not int(before + after):
        return Fraction(0)
    if bool(mark) != bool(power) or len(power.lstrip("0")) > 4:
        huge = -5000 if exponent[:1] == "-" else 5000
        return None if bool(mark) != bool(power) else Fraction(10) ** huge
    shift = signs.get(exponent[:1], 1) * int(power or 0) - len(after)
    return sign * int(before + after) * Fraction(10) ** shift


def value(text: str, is_real: bool) -> float | int | None:
    """Return a value that is a count, or a finite number."""
    number = decimal(text)
    if number is None:
        return None
    try:
        near = float(number)
    except OverflowError:
        return None
    if is_real:
        return near
    if len(text.lower().partition("e")[2]) > LONGEST_EXPONENT:
        return None
    return int(number) if number.denominator == 1 and 0 <= number < 10**18 else None


class Total(float):
    """A sum of real numbers; equal to theirs in any order."""

    error: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and abs(other - self) <= self.error

    __hash__ = None  # type: ignore[assignment]


def total(numbers: list[float]) -> float:
    """Return the sum of the numbers of a column."""
    found = Total(sum(numbers))
    found.error = len(numbers) * 2.0**-53 * sum(map(abs, numbers))
    return found if len(numbers) > 2 and math.isfinite(found.error) else float(found)


def summed(pairs: list[tuple[int, Any]], is_real: bool) -> dict[int, Any] | None:
    """Return values by column; None if counts sum to too much."""
    parts: dict[int, list[Any]] = {}
    for column, number in pairs:
        parts.setdefault(column, []).append(number)
    if is_real:
        return {column: total(numbers) for column, numbers in parts.items()}
    if sum(map(float, (number for _, number in pairs))) >= 2**62:
        return None
    return {column: n for column, numbers in parts.items() if (n := sum(numbers)) != 0}


def lda_c(data: bytes, schema: Any) -> list:
    return [lda_c_line(line, schema.n_features) for line in lines_of(data)]


def lda_c_line(line: bytes, n_columns: int) -> dict[int, Any] | None:
    fields = split(line.decode("latin-1"))
    pairs = [pair.split(":") for pair in fields[1:]]
    if not fields or len(line) > LONGEST or any(len(pair) != 2 for pair in pairs):
        return None
    numbers = [[whole(x) for x in pair] for pair in pairs]
    if whole(fields[0]) != len(pairs) or any(None in pair for pair in numbers):
        return None
    if any(word >= n_columns or count < 1 for word, count in numbers):
        return None
    return summed([(word, count) for word, count in numbers], False)


def svmlight(data: bytes, schema: Any) -> list:
    found = []
    for line in lines_of(data):
        text = line.decode("latin-1")
        if text.strip(BLANKS)[:1] in ("", "#"):
            if not text.strip(BLANKS) and len(line) > LONGEST:
                found.append(None)
            continue
        found.append(None if len(line) > LONGEST else svmlight_line(text, schema))
    return found


def svmlight_line(text: str, schema: Any) -> dict[int, Any] | None:
    is_real, first = schema.kind == "table", int(schema.fields["first id"])
    text = text.split("#")[0]
    label, *fields = split(text)
    if ":" in label:
        return None
    if fields and fields[0].startswith("qid:") and whole(fields[0][4:]) is not None:
        del fields[0]
    pairs = []
    for field in fields:
        name, colon, number = field.partition(":")
        column, found = whole(name), value(number, is_real)
        if not colon or column is None or found is None:
            return None
        if not first <= column < first + schema.n_features:
            return None
        pairs.append((column - first, found))
    return summed(pairs, is_real)


def entries(data: bytes, schema: Any) -> list:
    """Return the rows of a docword or Matrix Market file; one with any fault is left alone."""
    lines = [line.decode("latin-1") for line in lines_of(data)]
    is_real, has_values = schema.kind == "table", True
    if schema.format == "mtx":
        has_values = "pattern" not in lines.pop(0).lower()
        while lines and (lines[0].startswith("%") or not lines[0].strip()):
            del lines[0]
        sizes = split(lines.pop(0))
    else:
        sizes, lines = [line.strip() for line in lines[:3]], lines[3:]
    n_rows, n_columns, n_entries = map(int, sizes)
    least = 1 if schema.format == "uci" else 0
    rows: list[list[tuple[int, Any]]] = [[] for _ in range(n_rows)]
    last, n_seen = 1, 0
    for line in lines:
        fields = split(line)
        if not fields:
            continue
        n_seen += 1
        if len(fields) != 2 + has_values or len(line) > LONGEST:
            return NotImplemented
        row, column = whole(fields[0]), whole(fields[1])
        number: Any = 1
        if has_values:
            number = whole(fields[2]) if schema.format == "uci" else value(fields[2], is_real)
        if row is None or column is None or number is None or not last <= row <= n_rows:
            return NotImplemented
        if not 1 <= column <= n_columns or (not is_real and number < least):
            return NotImplemented
        last = row
        rows[row - 1].append((column - 1, number))
    if n_seen != n_entries:
        return NotImplemented
    return [summed(row, is_real) for row in rows]


def text(data: bytes, schema: Any) -> list:
    found = []
    for line in lines_of(data):
        if line and not line.isspace():
            found.append(document(line) if len(line) <= LONGEST else None)
    return found


def document(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def words_of(text: str) -> dict[str, int]:
    """Return the words of a text of ASCII."""
    found: dict[str, int] = {}
    word = ""
    for character in text + " ":
        if character.isalnum() or character == "_":
            word += character.lower()
            continue
        if len(word) > 1:
            found[word] = found.get(word, 0) + 1
        word = ""
    return found


def json_lines(data: bytes, schema: Any) -> list:
    """Return the rows of JSON lines that have an id or none."""
    if "id" in schema.fields and b"\\" in data:  # an id may be spelled in several ways
        return NotImplemented
    return json_rows(lines_of(data), schema)


def npy(data: bytes, schema: Any) -> list:
    """Return the rows of a matrix of numbers in C order."""
    size = struct.unpack("<H", data[8:10])[0] if data[6] == 1 else 0
    header = data[10 : 10 + size].decode("latin-1")
    kinds = {"'<i8'": "q", "'<f8'": "d", "'<f4'": "f", "'<u8'": "Q", "'|i1'": "b", "'|b1'": "?"}
    kind = next((code for name, code in kinds.items() if f"'descr': {name}," in header), None)
    if size == 0 or kind is None or "'fortran_order': False" not in header:
        return NotImplemented
    shape = header.partition("'shape': (")[2].split(")")[0].split(",")
    if len(shape) not in (2, 3) or not all(n.strip().isdecimal() for n in shape[:2]):
        return NotImplemented
    n_rows, n_columns = (int(n) for n in shape if n.strip())
    one = struct.Struct(f"<{n_columns}{kind}")
    found: list = []
    for row in one.iter_unpack(data[10 + size :][: n_rows * one.size]):
        if kind in "df":
            is_sound = all(x == x and abs(x) != float("inf") for x in row)
            found.append(list(row) if is_sound else None)
        elif schema.kind == "table":
            found.append([float(x) for x in row])
        else:
            is_sound = min(row) >= 0 and sum(row) < 2**62
            found.append({j: int(x) for j, x in enumerate(row) if x} if is_sound else None)
    return found


READERS = {
    "lda-c": lda_c,
    "svmlight": svmlight,
    "uci": entries,
    "mtx": entries,
    "text": text,
    "npy": npy,
    "npz": npz_rows,
    "csv": csv_rows,
    "tsv": csv_rows,
    "jsonl": json_lines,
    "parquet": arrow_rows,
    "arrow": arrow_rows,
}
UNKNOWN = {"hash_bits", "id_field", "time_field"}
"""What may be said about a file and is not known here."""


def check_naive(path: Path, said: dict[str, Any]) -> bool:
    """Raise AssertionError unless a file has the rows that a naive reader finds.

    Return whether there is one for it.
    """
    data, rows, rejected = path.read_bytes(), {}, set()
    if is_packed(data) or said.keys() & UNKNOWN:
        return False
    source = open_source(str(path), Options(max_line_bytes=LONGEST, **said))
    schema = source.schema
    read = READERS[schema.format]
    if schema.ngrams > 1:
        source.close()
        return False
    try:
        for records, _ in source.batches(64):
            rejected |= {one.record for one in records.rejects if not one.is_part}
            partial = any(one.is_part for one in records.rejects)
            if partial or len(rows) > 2000:
                return False
            for number, row in zip(records.numbers, plain_rows(records.rows), strict=True):
                rows[number] = row
    except ValueError:
        return False
    expected = read(data, schema)
    if expected is NotImplemented:
        assert schema.format not in ("uci", "mtx") or rejected, "a fault was not seen"
        return False
    for number, row in enumerate(expected):
        if isinstance(row, str):
            row = words_of(row) if row.isascii() else rows.get(number)
        if isinstance(row, dict) and schema.kind == "table":  # sparse
            row = [row.get(j, 0.0) for j in range(schema.n_features)]
        assert (row is None) == (number in rejected), (number, row)
        assert rows.get(number) == row, (number, rows.get(number), row)
    assert len(expected) == len(rows) + len(rejected)
    return True


def plain_rows(rows: Any) -> list:
    """Return counts by column, lists of numbers, or counts by word."""
    if hasattr(rows, "indices"):
        ends = rows.indptr
        columns, values = rows.indices.tolist(), rows.data.tolist()
        parts = [range(ends[i], ends[i + 1]) for i in range(rows.shape[0])]
        return [{columns[at]: values[at] for at in part if values[at]} for part in parts]
    return [cells_of(row.tolist()) if hasattr(row, "tolist") else dict(row) for row in rows]


def cells_of(row: list) -> list:
    """Return cells, None where missing."""
    return [None if cell != cell else cell for cell in row]
