"""Files of lines drawn by the grammar of their format, and tables crossed with others.

Most of such a file is sound, so that faults stand among records that are read in bulk.
"""

import io
import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet

WORDS = ["senate", "house", "Vote", "é", "naïve", "a_b", "x", "ß", "語", "don't", "e\u0301", "İ"]
SPACES = [" ", "  ", "\t", "\v", "\f", "\xa0", "\u2003"]
WHOLE = ["0", "1", "2", "3", "007", "12", "1.0", "2e0", "1E+1", "30e-1", ".0e5", "5.", "00", "1e18"]
REALS = ["0.5", "-0.0", "1e-320", "-2.5E3", "3.", "+.5", "1e308", "123456789.123456789", "-7"]
FAULTS = ["-1", "x", "", "1_0", "0x1", "nan", "inf", "1e999", "9" * 19, "1.5", "--1", "1:2", "१"]
CELLS = ["", "NA", "nan", "Null", " ", "true", "FALSE", "red", "a,b", 'say ""', "two\nlines", "é"]
ENDS = ["\n", "\n", "\n", "\r\n", "\n\n", "\n \n"]


def _number(rng: random.Random, is_real: bool = False, fault: float = 0.04) -> str:
    if rng.random() < fault:
        return rng.choice(FAULTS)
    return rng.choice([*WHOLE, *REALS] if is_real else WHOLE)


def _text(rng: random.Random) -> str:
    n = rng.choice([0, 1, 2, 3, 8])
    return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(n))


def _ended(lines: list[str], rng: random.Random) -> bytes:
    end = rng.choice(ENDS)
    text = "".join(line + (end if rng.random() < 0.9 else rng.choice(ENDS)) for line in lines)
    text = text.rstrip("\r\n") if rng.random() < 0.3 else text
    return ("\ufeff" * (rng.random() < 0.1) + text).encode("utf-8", "surrogatepass")


def csv_file(rng: random.Random) -> tuple[str, bytes]:
    """Return a table, with quotes and line ends in cells, of columns that have a type or two."""
    delimiter, n = rng.choice([",", ",", ";", "\t", "|"]), rng.randrange(1, 5)
    kinds = [rng.randrange(4) for _ in range(n)]

    def cell(kind: int) -> str:
        if kind == 0 and rng.random() < 0.95:
            return _number(rng, is_real=True)
        if kind == 1 and rng.random() < 0.95:
            return rng.choice(["true", "False", " TRUE ", ""])
        return rng.choice(CELLS) if kind < 3 else _text(rng)

    def quoted(text: str) -> str:
        needs = any(mark in text for mark in (delimiter, '"', "\n"))
        if rng.random() < (0.97 if needs else 0.1):
            return '"' + text.replace('"', '""') + '"'
        return text

    names = rng.sample(["id", "text", "x", "y", "", "red"], n)
    lines = [delimiter.join(names)] if rng.random() < 0.8 else []
    for _ in range(rng.choice([1, 2, 5, 30])):
        width = n if rng.random() < 0.95 else rng.randrange(1, n + 2)
        cells = [quoted(cell(kinds[j % n])) for j in range(width)]
        lines.append(delimiter.join(cells))
    return "drawn.tsv" if delimiter == "\t" else "drawn.csv", _ended(lines, rng)


def json_file(rng: random.Random) -> tuple[str, bytes]:
    """Return JSON lines of texts, counts, vectors or cells."""
    kind = rng.choice(["text", "counts", "words", "v", "cells"])
    size = rng.randrange(1, 4)

    def value() -> Any:
        if kind == "text":
            return _text(rng)
        if kind == "counts":
            counts = [0, 1, 2, 3.0, 2**53, 1, 1, 1]
            return {rng.choice(WORDS): rng.choice(counts) for _ in range(rng.randrange(4))}
        if kind == "words":
            return rng.choices(WORDS, k=rng.randrange(4))
        return [rng.choice([0, 1, -2, 0.5, 1e300, 2**60]) for _ in range(size)]

    odd = [None, True, "x", -1, 0.5, [], {}, {"a": -1}, [None], ["a", 1], 2**64, 1e308, [0.5] * 9]
    lines = []
    for i in range(rng.choice([1, 2, 5, 30])):
        record: dict[str, Any] = {kind: rng.choice(odd) if rng.random() < 0.06 else value()}
        if kind == "cells":
            cells = [rng.choice([1, 2.5, None]), rng.choice([True, False]), rng.choice("ab")]
            record = dict(zip("xyz", cells, strict=True))
            if rng.random() < 0.1:
                record[rng.choice("xyzw")] = rng.choice(odd)
            if rng.random() < 0.1:
                del record[rng.choice(sorted(record))]
        if rng.random() < 0.5:
            record["id"] = rng.choice([i, f"r{i}", None, 1.5])
        items = list(record.items())
        rng.shuffle(items)
        spelled = json.dumps(dict(items), ensure_ascii=rng.random() < 0.5)
        if rng.random() < 0.03:  # a key occurs twice
            spelled = "{" + f'"{kind}": 1, ' + spelled[1:]
        lines.append(spelled)
    return ("vectors.jsonl" if kind == "v" else "drawn.jsonl"), _ended(lines, rng)


def pairs_file(rng: random.Random) -> tuple[str, bytes]:
    """Return lines of pairs: SVMlight or LDA-C."""
    is_counted, lines = rng.random() < 0.5, []
    is_real = not is_counted and rng.random() < 0.5
    for _ in range(rng.choice([1, 2, 5, 30])):
        pairs = [
            f"{rng.randrange(9)}:{_number(rng, is_real, 0.02)}" for _ in range(rng.randrange(6))
        ]
        blank = rng.choice([" ", " ", "\t", "  "])
        if is_counted:
            n = len(pairs) if rng.random() < 0.97 else rng.randrange(9)
            lines.append(blank.join([str(n), *pairs]))
            continue
        label = rng.choice(["1", "-1", "0.5", "1,2", "+1", "x" if rng.random() < 0.1 else "3"])
        more = [rng.choice(["qid:3"])] * (rng.random() < 0.1)
        note = rng.choice(["", "", "", " # 1:2", "#"])
        lines.append(blank.join([label, *more, *pairs]) + note)
    return "drawn.ldac" if is_counted else "drawn.svm", _ended(lines, rng)


def entries_file(rng: random.Random) -> tuple[str, bytes]:
    """Return a docword or Matrix Market file."""
    is_matrix = rng.random() < 0.5
    n_rows, n_columns = rng.choice([1, 3, 20]), rng.choice([1, 5, 40])
    kind = rng.choice(["integer", "real", "pattern"]) if is_matrix else "integer"
    n = rng.choice([0, 1, 5, 40])
    rows = sorted(rng.randrange(1, n_rows + 1) for _ in range(n))
    lines = []
    for row in rows:
        fields = [str(row), str(rng.randrange(1, n_columns + 1))]
        if kind != "pattern":
            fields.append(_number(rng, kind == "real", 0.01) if is_matrix else rng.choice("123"))
        lines.append(rng.choice([" ", " ", "\t"]).join(fields))
    if rng.random() < 0.1:
        rng.shuffle(lines)
    n = n if rng.random() < 0.95 else n + rng.choice([-1, 1])
    if is_matrix:
        comments = ["% a comment"] * rng.randrange(3)
        head = [f"%%MatrixMarket matrix coordinate {kind} general", *comments]
        return "drawn.mtx", _ended([*head, f"{n_rows} {n_columns} {n}", *lines], rng)
    return "docword.drawn.txt", _ended([str(n_rows), str(n_columns), str(n), *lines], rng)


def text_file(rng: random.Random) -> tuple[str, bytes]:
    """Return lines of text."""
    return "drawn.txt", _ended([_text(rng) for _ in range(rng.choice([1, 3, 30]))], rng)


DRAWERS: list[Callable[[random.Random], tuple[str, bytes]]] = [
    csv_file,
    csv_file,
    json_file,
    json_file,
    pairs_file,
    entries_file,
    text_file,
]


def drawn_file(rng: random.Random) -> tuple[str, bytes]:
    """Return a file of lines of some format."""
    return rng.choice(DRAWERS)(rng)


def crossed_tables(rng: random.Random) -> tuple[str, bytes]:
    """Return sections of two Parquet or Arrow files that have the same columns and other rows."""
    suffix, n_batches = rng.choice(["parquet", "arrow", "arrows"]), rng.choice([1, 2, 4])
    kind, codec = rng.randrange(4), rng.choice(["none", "zstd", "none"])
    makers: list[Callable[[], Any]] = [
        lambda: [_text(rng) for _ in range(rng.choice([2, 3, 9]))],
        lambda: [dict.fromkeys(rng.sample("abcd", rng.randrange(4)), 2) for _ in range(3)],
        lambda: [rng.choice([0.5, 1.0, None]) for _ in range(rng.choice([3, 8]))],
        lambda: [[rng.random(), 1.0] for _ in range(rng.choice([2, 5]))],
    ]
    types = [pa.string(), pa.map_(pa.string(), pa.int64()), pa.float64(), pa.list_(pa.float32())]
    name = ["text", "counts", "x", "v"][kind]
    wholes = []
    for _ in range(2):
        sink = io.BytesIO()
        batches = []
        for _ in range(n_batches):
            cells = makers[kind]()
            pairs = [list(cell.items()) for cell in cells] if kind == 1 else cells
            batches.append(pa.record_batch({name: pa.array(pairs, types[kind])}))
        table = pa.Table.from_batches(batches)
        if suffix == "parquet":
            pa.parquet.write_table(table, sink, row_group_size=3, compression=codec)
        else:
            opener = pa.ipc.new_file if suffix == "arrow" else pa.ipc.new_stream
            how = pa.ipc.IpcWriteOptions(compression=None if codec == "none" else codec)
            with opener(sink, table.schema, options=how) as writer:
                writer.write_table(table)
        wholes.append(sink.getvalue())
    first, other = wholes
    data = bytearray(first)
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        size = rng.choice([1, 4, 8, 8, 16, 64])
        at = rng.randrange(max(1, min(len(first), len(other)) - size))
        at -= at % min(size, 8)
        data[at : at + size] = other[at : at + size]
    return f"{'vectors' if kind == 3 else 'crossed'}.{suffix}", bytes(data)
