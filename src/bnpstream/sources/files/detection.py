"""Detects the format of a file from its name and its first bytes.

Content that fits one format only decides; then the name; then lines with the same number of fields
are a table, and anything else is text.
"""

import csv
import re
from collections import Counter
from pathlib import PurePath

import orjson

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.lines import first_lines
from bnpstream.sources.json_text import load_json
from bnpstream.sources.options import Options

HEAD_BYTES = 1 << 12
PEEKED_LINES = 200
DELIMITERS = "\t,;|"

_SUFFIXES = {
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".csv": "csv",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ldac": "lda-c",
    ".libsvm": "svmlight",
    ".log": "text",
    ".mtx": "mtx",
    ".ndjson": "jsonl",
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".tab": "tsv",
    ".text": "text",
    ".tsv": "tsv",
}  # .txt says nothing
_PACKED = {".gz", ".zst", ".zstd"}
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # the stream format starts with this and a length
    b"%%MatrixMarket": "mtx",
    b"\x93NUMPY": "npy",
}
_OBJECT = re.compile(rb"\s*\{\s*[\"}]")
_WHOLE = re.compile(rb"\s*[0-9]+\s*")
_TRIPLE = re.compile(rb"\s*[0-9]+\s+[0-9]+\s+[0-9]+\s*")
# In one way only: if digits could be split in several ways, a long line would take forever.
_NUMBER = rb"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_COUNTS = re.compile(rb"\s*([0-9]{1,18})((?:\s+[0-9]+:[0-9]+)*)\s*")
_FEATURES = re.compile(
    rb"\s*%b(?:,%b)*(?:\s+qid:[0-9]+)?(?:\s+[0-9]+:%b)*\s*(?:#.*)?" % ((_NUMBER,) * 3)
)


def guess_format(file: ByteReader, max_line_bytes: int = Options.max_line_bytes) -> str:
    """Return the format of a file, without taking bytes from it.

    Lines that are too long are ignored, unless there are no others.

    Raises
    ------
    ValueError
        If the file has no lines, or has an unknown binary format.
    """
    head = file.peek(HEAD_BYTES)
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    if head.startswith(b"PK\x03\x04") and _first_member(head).endswith(b".npy"):
        return "npz"
    named = _by_name(file.path)
    if named is None and b"\0" in head:
        raise ValueError(f"{file.path}: the format is not known: give --format")
    lines = first_lines(file, at_most=PEEKED_LINES, max_bytes=max_line_bytes) or [head]
    certain = _by_lines(lines, named)
    if certain is not None:
        return certain
    if named is not None:
        return named
    delimiter, share = guess_delimiter([line.decode(errors="replace") for line in lines])
    # Two lines of prose may well have the same number of commas.
    if share == 1.0 and len(lines) > 2:
        return "tsv" if delimiter == "\t" else "csv"
    return "text"


def guess_delimiter(lines: list[str]) -> tuple[str, float]:
    """Return the delimiter that splits most lines into the same number of fields; and their share.

    Examples
    --------
    >>> guess_delimiter(["name;size", "'a, b';3", "c;4"])
    (';', 1.0)
    """
    best = (0.0, 1, ",")
    for delimiter in DELIMITERS:
        try:
            lengths = Counter(map(len, csv.reader(lines, delimiter=delimiter)))
        except csv.Error:
            continue
        if not lengths:
            break
        n_fields, n_lines = lengths.most_common(1)[0]
        if n_fields > 1:
            best = max(best, (n_lines / lengths.total(), n_fields, delimiter))
    return best[2], best[0]


def _by_name(path: str) -> str | None:
    name = PurePath(path.lower())
    while name.suffix in _PACKED:
        name = name.with_suffix("")
    if name.name.startswith("docword."):
        return "uci"
    return _SUFFIXES.get(name.suffix)


def _first_member(head: bytes) -> bytes:
    """Return the name of the first file in a zip archive."""
    length = int.from_bytes(head[26:28], "little")
    return head[30 : 30 + length]


def _by_lines(lines: list[bytes], named: str | None) -> str | None:
    """Return the format that these lines must have, or None if several fit."""
    if not lines:
        return None
    objects = [line for line in lines if _OBJECT.match(line)]
    if len(objects) == len(lines) or (
        len(objects) > len(lines) / 2 and any(map(_is_object, objects))
    ):
        return "jsonl"
    header, entries = lines[:3], lines[3:]
    if entries and all(map(_WHOLE.fullmatch, header)) and all(map(_TRIPLE.fullmatch, entries)):
        return "uci"
    counts = [_COUNTS.fullmatch(line) for line in lines]
    if named != "svmlight" and b":" in b"".join(lines) and all(map(_announces_pairs, counts)):
        return "lda-c"
    features = [line for line in lines if not line.startswith(b"#")]
    if b":" in b"".join(features) and all(map(_FEATURES.fullmatch, features)):
        return "svmlight"
    return None


def _announces_pairs(match: re.Match[bytes] | None) -> bool:
    return match is not None and int(match[1]) == match[2].count(b":")


def _is_object(line: bytes) -> bool:
    try:
        return type(load_json(line)) is dict
    except orjson.JSONDecodeError:
        return False
