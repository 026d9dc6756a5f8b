"""Slow readers of records with fields, in plain Python over other people's parsers.

The csv module reads CSV, json JSON lines, pyarrow Parquet and Arrow, and NumPy archives of arrays;
what their values mean is said here once more. As in `naive_readers`, a row is None for a reject.
"""

import csv
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from readings import LONGEST

MOST = 2**53
MISSING = ("", "na", "nan", "null")


def number(value: Any) -> float | None:
    """Return a finite number; ValueError if it is none."""
    if value is None or (value != value):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    found = float(value)
    if math.isinf(found):
        raise ValueError
    return found


def whole(value: Any) -> int:
    """Return a count; ValueError if it is none."""
    found = number(value)
    if found is None or not 0 <= value <= MOST or value != int(value):
        raise ValueError
    return int(value)


def truth(value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise ValueError
    return value


def label(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError
    return value


def counts(value: Any) -> dict[str, int]:
    """Return counts by word of an object or of a list of words."""
    found: dict[str, int] = {}
    if isinstance(value, dict) and all(isinstance(word, str) for word in value):
        found = {word: whole(n) for word, n in value.items()}
    elif isinstance(value, list) and all(isinstance(word, str) for word in value):
        for word in value:
            found[word] = found.get(word, 0) + 1
    else:
        raise ValueError
    if sum(found.values()) > MOST:
        raise ValueError
    return {word: n for word, n in found.items() if n}


def vector(value: Any, size: int) -> list[float]:
    """Return a list of so many finite numbers."""
    if not isinstance(value, list) or len(value) != size:
        raise ValueError
    found = [number(x) for x in value]
    if None in found:
        raise ValueError
    return [x for x in found if x is not None]


CELLS: dict[str, Callable[[Any], Any]] = {"number": number, "truth": truth, "label": label}


def row_of(record: dict[str, Any], schema: Any) -> Any:
    """Return the row of a record, None if it has to be rejected."""
    fields = schema.fields
    try:
        if "vector" in fields:
            return vector(record.get(fields["vector"]), schema.n_features)
        if "text" in fields:
            text = record.get(fields["text"])
            text = text.decode() if isinstance(text, bytes) else text
            return text if isinstance(text, str) else None
        if "counts" in fields:
            return counts(record.get(fields["counts"]))
        cells = zip(schema.names, schema.types, strict=True)
        return [CELLS[type_](record.get(name)) for name, type_ in cells]
    except (ValueError, OverflowError):
        return None


def csv_records(text: str, delimiter: str) -> Iterable[tuple[list[str], int, int]]:
    """Yield fields, how long records are, and over how many lines they go."""
    lines, before = text.split("\n"), 0
    cut = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    for fields in cut:
        raw = "\n".join(lines[before : cut.line_num])
        if raw.encode().strip():
            yield fields, len(raw.encode()), cut.line_num - before
        before = cut.line_num


def csv_rows(data: bytes, schema: Any) -> Any:
    """Return the rows of a file in which every quote is closed."""
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    names = [f"column{i + 1}" for i in range(int(schema.fields.get("n_fields", 0)))]
    found: list = []
    if b"\r" in data:
        return NotImplemented
    try:
        for fields, size, n_lines in csv_records(data.decode(), schema.fields["delimiter"]):
            if n_lines > 1 and size + n_lines > LONGEST:  # each may have ended in two bytes
                return NotImplemented
            if not names and size <= LONGEST:
                names = [name.strip() for name in fields]
                continue
            if size > LONGEST or len(fields) != len(names):
                found.append(None)
                continue
            found.append(csv_row(dict(zip(names, fields, strict=True)), schema))
    except (UnicodeDecodeError, csv.Error):
        return NotImplemented
    return found


def csv_row(record: dict[str, str], schema: Any) -> Any:
    if "text" in schema.fields:
        return record[schema.fields["text"]]
    typed: dict[str, Any] = dict(record)
    for name, type_ in zip(schema.names, schema.types, strict=True):
        cell = record[name].strip()
        if cell.lower() in MISSING:
            typed[name] = None
        elif type_ == "truth":
            typed[name] = {"true": True, "false": False}.get(cell.lower(), cell)
        elif type_ == "number":
            try:
                typed[name] = float(cell) if "_" not in cell else cell
            except ValueError:
                return None
            if typed[name] != typed[name]:  # with a sign, it is no missing cell
                return None
    return row_of(typed, schema)


def once(pairs: list) -> dict:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def refuse(constant: str) -> None:
    raise ValueError(constant)


def json_rows(lines: list[bytes], schema: Any) -> list:
    """Return the rows of JSON lines."""
    found: list = []
    wanted = {schema.fields.get(role) for role in ("vector", "text", "counts")} - {None}
    for line in lines:
        if not line or line.isspace():
            continue
        found.append(None)
        if len(line) > LONGEST:
            continue
        try:
            record = json.loads(line.decode(), object_pairs_hook=once, parse_constant=refuse)
            # Halves of characters are none, and no number is infinite.
            json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and not record.keys().isdisjoint(wanted or schema.names):
            found[-1] = row_of(record, schema)
    return found


def arrow_rows(data: bytes, schema: Any) -> Any:
    """Return the rows of a Parquet or Arrow file that is sound."""
    try:
        if schema.format == "parquet":
            table = pa.parquet.read_table(io.BytesIO(data))
        elif data[:6] == b"ARROW1":
            table = pa.ipc.open_file(data).read_all()
        else:
            table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return NotImplemented
    roles = [schema.fields[role] for role in ("vector", "text", "counts") if role in schema.fields]
    columns, empty = {}, [None] * table.num_rows
    for name in roles or schema.names:
        if "vector" in schema.fields and name not in table.schema.names:
            continue
        column = table.column(name)
        if "decimal" in str(column.type):  # rounded by pyarrow in a way of its own
            return NotImplemented
        columns[name] = column.to_pylist()
        if pa.types.is_map(column.type):
            columns[name] = [None if cell is None else mapped(cell) for cell in columns[name]]
    rows = zip(*(columns[name] for name in columns), strict=True) if columns else zip(empty)
    return [row_of(dict(zip(columns, row, strict=True)), schema) for row in rows]


def mapped(cell: list) -> dict | str:
    """Return a map as dict, or what is none if a key occurs twice."""
    found = dict(cell)
    return found if len(found) == len(cell) else "a key occurs twice"


def npz_rows(data: bytes, schema: Any) -> Any:
    """Return the rows of a sparse matrix."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            bounds, columns, values = (arrays[f"{x}.npy"] for x in ("indptr", "indices", "data"))
            shape = arrays["shape.npy"]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError):
        return NotImplemented
    n_rows, n_columns = (int(x) for x in shape.reshape(-1)[:2])
    ends, columns, values = (x.reshape(-1).tolist() for x in (bounds, columns, values))
    found: list = []
    for i in range(n_rows):
        inside = range(ends[i], ends[i + 1])
        row: dict[int, Any] = {}
        is_sound = True
        for at in inside:
            column, value = columns[at], values[at]
            is_sound &= 0 <= column < n_columns and math.isfinite(value)
            is_sound &= schema.kind == "table" or 0 <= value < 2**63
            row[column] = row.get(column, 0) + value
        if schema.kind == "counts" and is_sound:
            is_sound = sum(float(values[at]) for at in inside) < 2**62
        found.append({j: x for j, x in row.items() if x} if is_sound else None)
    return found
