"""What must hold of whatever comes out of a file, sound or spoilt."""

import os
import random
import re
from pathlib import Path
from typing import Any, NamedTuple

from splices import is_packed

from bnpstream.sources import Options, open_source
from bnpstream.sources.files import byte_reader

BATCHES, BLOCKS = (1, 2, 3, 7, 64, 1024), (1, 2, 3, 7, 4096)
LONGEST = 80
"""Bytes of a line at most, so that small files have lines that are too long."""
MOST = 2000
"""Records of a file that are looked at: a header may announce a million."""
MOST_SINGLY = 300
"""Bytes that are read one, two or three at a time."""


class Reading(NamedTuple):
    """What came out of a file."""

    found: list
    """Records and rejects in order, each with the position after it."""
    error: str | None
    schema: Any


def reading(path: Path, batch_rows: int, said: dict[str, Any], start=None, schema=None) -> Reading:
    """Return what comes out of a file, from a position on."""
    found: list = []
    error = source = None
    try:
        source = open_source(str(path), Options(max_line_bytes=LONGEST, **said), schema)
        for records, position in source.batches(batch_rows, start):
            found += [(*one, position) for one in compared(records)]
            if len(found) > MOST:
                break
    except (ValueError, OSError) as problem:
        if path.name not in str(problem) and not is_about(said, str(problem)):
            raise RuntimeError("an error does not name the file") from problem
        error = re.sub("0x[0-9a-f]+", "", str(problem))  # NumPy tells addresses
    finally:
        if source is not None:
            source.close()
    return Reading(found, error, None if source is None else source.schema)


def compared(records) -> list:
    """Return the records and rejects of a batch, in order."""
    rows = records.rows
    if hasattr(rows, "indices"):  # there may be millions of columns
        inside = [slice(*rows.indptr[i : i + 2]) for i in range(rows.shape[0])]
        rows = [[rows.indices[at].tolist(), rows.data[at].tolist()] for at in inside]
    rows = [row.tolist() if hasattr(row, "tolist") else dict_or_list(row) for row in rows]
    assert all(len(x) in (0, len(rows)) for x in (records.excerpts, records.times))
    nothing = [None] * len(rows)
    beside = zip(records.excerpts or nothing, records.times or nothing, strict=True)
    taken = zip(records.numbers, records.ids, rows, beside, strict=True)
    found = [(number, id_, repr((row, more))) for number, id_, row, more in taken]
    found += [(one.record, one.line, f"{one.reason}: {one.beginning}") for one in records.rejects]
    return sorted(found, key=lambda one: one[0])


def is_about(said: dict[str, Any], message: str) -> bool:
    """Return whether a message is about what was said, and not about the file."""
    return any(name in message for name in said)


def dict_or_list(row):
    """Return a row of words or cells as it is compared."""
    return sorted(row.items()) if hasattr(row, "items") else list(row)


def plain(found: list) -> list:
    """Return records and rejects in one order; a line may be left out of an earlier record."""
    return sorted((number, repr(more), text) for number, more, text, _ in found)


def check_numbers(found: list) -> None:
    """Raise AssertionError unless records are numbered without gaps."""
    numbers = {one[0] for one in found}
    assert sorted(numbers) == list(range(len(numbers)))


def check_resumed(
    path: Path, said: dict[str, Any], whole: Reading, at: int, batch_rows: int
) -> None:
    """Raise AssertionError unless reading that goes on after a record gives the rest."""
    position = whole.found[at][3]
    rest = reading(path, batch_rows, said, position, whole.schema)
    assert rest.error == whole.error
    n = position["records"]
    expected = plain([one for one in whole.found if one[0] >= n])
    assert plain([one for one in rest.found if one[0] >= n]) == expected


def check_same(one: Reading, other: Reading) -> None:
    """Raise AssertionError unless two readings gave the same; positions may differ."""
    assert plain(one.found) == plain(other.found)
    assert one.error == other.error


def check(path: Path, said: dict[str, Any]) -> None:
    """Raise AssertionError unless a file is read the same way whatever batches, and resumed.

    Records are numbered without gaps, and what is wrong is a reject or an error that names a file.
    """
    whole = reading(path, BATCHES[-1], said)
    if len(whole.found) > MOST:
        return
    check_numbers(whole.found)
    for batch_rows in BATCHES[:-1]:
        check_same(reading(path, batch_rows, said), whole)
    singly = reading(path, 1, said)
    for at in range(len(singly.found)):
        check_resumed(path, said, singly, at, 2)


def check_blocks(path: Path, said: dict[str, Any]) -> None:
    """Raise AssertionError unless a file is read the same way whatever reading gives at a time."""
    expected = reading(path, 3, said)
    for n_bytes in BLOCKS:
        assert in_blocks(n_bytes, path, 3, said) == expected, n_bytes


def in_blocks(n_bytes: int, path: Path, batch_rows: int, said: dict[str, Any]) -> Reading:
    """Return what reading some bytes at a time gives."""
    usual = byte_reader.BLOCK_BYTES
    byte_reader.BLOCK_BYTES = n_bytes
    try:
        return reading(path, batch_rows, said)
    finally:
        byte_reader.BLOCK_BYTES = usual


def check_once(path: Path, said: dict[str, Any], rng: random.Random) -> Reading:
    """Raise AssertionError unless a second reading agrees, or one that goes on from some record.

    Return the first reading.
    """
    whole = reading(path, rng.choice(BATCHES), said)
    if len(whole.found) > MOST:
        return whole
    check_numbers(whole.found)
    if whole.found and rng.random() < 0.5:
        check_resumed(path, said, whole, rng.randrange(len(whole.found)), rng.choice(BATCHES))
    elif rng.random() < 0.3:
        check_piped(path, said, whole, rng)
    elif rng.random() < 0.2:
        check_parted(path, said, whole, rng)
    elif rng.random() < 0.5:
        sizes = BLOCKS if path.stat().st_size < MOST_SINGLY else BLOCKS[3:]
        check_same(in_blocks(rng.choice(sizes), path, rng.choice(BATCHES), said), whole)
    else:
        check_same(reading(path, rng.choice(BATCHES), said), whole)
    return whole


PIPED = ("text", "csv", "tsv", "jsonl", "svmlight", "lda-c", "uci", "mtx")
PARTED = ("text", "jsonl", "svmlight", "lda-c")
"""Formats of lines, and those in which every line stands for itself."""
MOST_PIPED = 1 << 16
"""Bytes that a pipe holds."""


def check_piped(path: Path, said: dict[str, Any], whole: Reading, rng: random.Random) -> None:
    """Raise AssertionError unless a pipe gives what a file gives, once it is known what that is."""
    if whole.schema is None or whole.schema.format not in PIPED:
        return
    if path.stat().st_size > MOST_PIPED:
        return
    reader, writer = os.pipe()
    try:
        os.write(writer, path.read_bytes())
        os.close(writer)
        pipe = Path(f"/dev/fd/{reader}")
        piped = reading(pipe, rng.choice(BATCHES), said, None, whole.schema)
    finally:
        os.close(reader)
    assert plain(piped.found) == plain(whole.found)
    told = None if piped.error is None else piped.error.replace(str(pipe), str(path))
    assert told == whole.error


def check_parted(path: Path, said: dict[str, Any], whole: Reading, rng: random.Random) -> None:
    """Raise AssertionError unless two files have the rows of one that is both together."""
    data = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]
    is_plain = whole.error is None and not is_packed(data)
    if not ends or not is_plain or whole.schema.format not in PARTED:
        return
    cut = rng.choice(ends)
    if is_packed(data[cut:]) or data[cut:].startswith(b"\xef\xbb\xbf"):
        return
    parts = [path.with_name(f"{path.name}.{name}") for name in ("one", "two")]
    parts[0].write_bytes(data[:cut])
    parts[1].write_bytes(data[cut:])
    options = Options(max_line_bytes=LONGEST, **said)
    try:
        source = open_source([str(one) for one in parts], options, whole.schema)
        batches = source.batches(rng.choice(BATCHES))
        found = [(*one, position) for records, position in batches for one in compared(records)]
    finally:
        for one in parts:
            one.unlink()
    numbered = [sorted((number, text) for number, _, text, _ in x) for x in (found, whole.found)]
    assert numbered[0] == numbered[1]


def check_unpacked(path: Path, data: bytes, said: dict[str, Any], whole: Reading) -> None:
    """Raise AssertionError unless what is packed in a file gives the same rows by itself."""
    plain_path = path.with_suffix("")
    plain_path.write_bytes(data)
    try:
        alone = reading(plain_path, BATCHES[-1], said)
    finally:
        plain_path.unlink()
    assert (alone.error is None) == (whole.error is None), (alone.error, whole.error)
    if len(whole.found) <= MOST:
        assert plain(alone.found) == plain(whole.found)
