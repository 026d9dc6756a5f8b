"""Ways to spoil files: at any byte, by lines and fields, under their packing, by what they are.

One case in four was drawn.

A case is a function of its number alone, so that one that ended a process can be made again.
"""

import gzip
import random
from pathlib import Path
from typing import Any, NamedTuple

import zstandard
from drawn import crossed_tables, drawn_file
from inventions import random_arrays, random_table
from splices import is_packed, packed, packed_twice, spliced

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
CONTENTS = {path: path.read_bytes() for path in CORPUS}
SMALL = [path for path in CORPUS if len(CONTENTS[path]) < 2000]
"""What is spoilt: large files cost too much."""
PIECES = [b"", b"\0", b"\xff", b"\n", b"\r\n", b" ", b'"', b",", b":", b"-1", b"1e999", b"nan"]
PIECES += [b"9" * 19, b"2147483648", b"\x0b", b"\x1b[0m", b"{", b"}", b"[", b"%", b"#", b"z" * 99]
TOKENS = [*PIECES, b"0", b"-0", b"+1", b"1.0", b"1e2", b"0x1", b"1_0", b".5", b"5."]
TOKENS += [b"9223372036854775807", b"9223372036854775808", b"4294967296", b"999999999999999999"]
TOKENS += [b"9007199254740993", b"inf", b"true", b"null", b'""', b'"a":1', b"[]", b"{}", b"\t"]
TOKENS += [b"\xef\xbb\xbf", b"\xc2\xa0", b"\xed\xa0\x80", b"\\u0000", b"\\ud800", b"\x85", b"\x1a"]
TOKENS += [b";", b"|", b"qid:1", b"\r"]
FORMATS = ["text", "csv", "tsv", "jsonl", "svmlight", "lda-c", "uci", "mtx"]
PACKINGS = {".gz": (gzip.decompress, gzip.compress)}
PACKINGS[".zst"] = (
    lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    zstandard.compress,
)
PLAIN_SUFFIXES = (".npy", ".npz", ".arrow", ".parquet")
PLAIN_BEGINNINGS = (b"\x93NUMPY", b"PK", b"ARROW1", b"PAR1")
"""Such files cannot be packed: they are read from any place."""


class Case(NamedTuple):
    """A file, and what is said about it."""

    name: str
    data: bytes
    options: dict[str, Any]
    unpacked: bytes | None = None
    """What is packed in the file, and has to give the same rows."""


def spoil(data: bytes, edits: list[tuple[int, float, float, int]]) -> bytes:
    """Return data after edits: what to do, two places as shares of the length, and a number."""
    for what, first, second, number in edits:
        i, j = sorted((int(first * len(data)), int(second * len(data))))
        piece = PIECES[number % len(PIECES)]
        if what == 0:
            data = data[:i] + piece + data[i:]
        elif what == 1 and data:
            at = min(i, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ (1 << number % 8)]) + data[at + 1 :]
        elif what == 2:
            data = data[:i]
        elif what == 3:
            data = data[:i] + data[min(j, i + number % 40) :]
        elif what == 4:
            data = data[:j] + data[i : min(j, i + 64)] + data[j:]
        else:
            data = data[:i] + piece + data[i + len(piece) :]
    return data


def random_edits(rng: random.Random) -> list[tuple[int, float, float, int]]:
    """Return one to four edits."""
    n = rng.randrange(1, 5)
    return [(rng.randrange(6), rng.random(), rng.random(), rng.randrange(256)) for _ in range(n)]


def spoil_lines(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Return lines of which some are moved, doubled, left out, joined, or have another field."""
    lines = data.split(b"\n")
    for _ in range(rng.randrange(1, 4)):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        what = rng.randrange(7)
        if what == 0:
            lines[i], lines[j] = lines[j], lines[i]
        elif what == 1:
            lines.insert(i, lines[j])
        elif what == 2 and len(lines) > 1:
            del lines[i]
        elif what == 3:
            lines.insert(i, rng.choice(other.split(b"\n")))
        elif what == 4:
            lines[i] += rng.choice([b"\r", b" ", b"", b"\t"]) + lines[j]
        else:
            separator = rng.choice([b" ", b":", b",", b"\t", b'"'])
            fields = lines[i].split(separator)
            fields[rng.randrange(len(fields))] = rng.choice(TOKENS)
            lines[i] = separator.join(fields)
    return b"\n".join(lines)


def options_for(name: str, rng: random.Random | None = None) -> dict[str, Any]:
    """Return what is said about a file: vectors have to be named, the rest may be."""
    named = {"vectors": {"vector_field": "v"}, "numbered": {"counts_field": "counts"}}
    found: dict[str, Any] = dict(named.get(name.split(".")[0], {}))
    if rng is None or rng.random() < 0.6:
        return found
    said = rng.choice(
        [
            {"n_features": rng.choice([1, 3, 40])},
            {"hash_bits": rng.choice([1, 8])},
            {"ngrams": 2},
            {"header": rng.random() < 0.5},
            {"delimiter": rng.choice([",", ";", "\t", " ", '"', "é"])},
            {"id_field": rng.choice(["id", "text", "x", "nowhere"])},
            {"time_field": rng.choice(["id", "t", "x"])},
            {"vector_field": rng.choice(["v", "x", "counts"])},
            {"counts_field": rng.choice(["counts", "words", "x"])},
            {"text_field": rng.choice(["text", "b", "x"])},
            {"columns": ("x", "y")},
            {
                "format": rng.choice(
                    ["text", "csv", "tsv", "jsonl", "svmlight", "lda-c", "uci", "mtx"]
                )
            },
        ]
    )
    return found | said


def case_of(number: int) -> Case:
    """Return a case by its number."""
    rng = random.Random(number)
    if number % 2:
        return spliced_case(rng)
    if number % 4 == 0:
        return drawn_case(rng)
    share = rng.random()
    if share < 0.12:
        name, data = random_table(rng) if share < 0.08 else random_arrays(rng)
        if rng.random() < 0.4:
            data = spoil(data, random_edits(rng))
        return Case(name, data, options_for(name, rng))
    original = rng.choice(SMALL)
    data, packing = CONTENTS[original], PACKINGS.get(original.suffix)
    pack = None
    is_sound = not original.name.startswith("damaged")
    if packing is not None and is_sound and rng.random() < 0.7:
        data, pack = packing[0](data), packing[1]
    what = rng.random()
    if what < 0.5:
        data = spoil(data, random_edits(rng))
    else:
        data = spoil_lines(data, rng, CONTENTS[rng.choice(SMALL)])
        if what > 0.85:
            data = spoil(data, random_edits(rng)[:1])
    data = data if pack is None else pack(data)
    name = original.name if original.name.startswith("docword") else f"case.{original.name}"
    return Case(name, data, options_for(original.name, rng))


def drawn_case(rng: random.Random) -> Case:
    """Return a file that was drawn by the grammar of its format, sound or a little spoilt."""
    name, data = crossed_tables(rng) if rng.random() < 0.2 else drawn_file(rng)
    how = rng.random()
    if how < 0.2:
        data = spoil(data, random_edits(rng)[:1])
    elif how < 0.3:
        data = spoil_lines(data, rng, CONTENTS[rng.choice(SMALL)])
    return Case(name, data, options_for(name, rng))


def spliced_case(rng: random.Random) -> Case:
    """Return a file that was spoilt by what it is made of, packed or called another way."""
    if rng.random() < 0.15:
        name, data = random_table(rng) if rng.random() < 0.6 else random_arrays(rng)
    else:
        original = rng.choice(SMALL)
        name, data = original.name, CONTENTS[original]
        if original.suffix in PACKINGS and not name.startswith("damaged"):
            name, data = original.stem, PACKINGS[original.suffix][0](data)
    data = spliced(name, data, CONTENTS[rng.choice(SMALL)], rng)
    options = options_for(name, rng)
    if rng.random() < 0.06:  # another format's name
        name = f"named{''.join(rng.choice(SMALL).suffixes)}"
    name = name if name.startswith("docword") else f"case.{name}"
    how = rng.random()
    if how > 0.12 or name.endswith((".gz", ".zst")):
        return Case(name, data, options)
    suffix = rng.choice([".gz", ".zst"])
    if how < 0.02:
        return Case(name + suffix, packed_twice(data, rng), options)
    whole = packed(data, suffix, rng)
    if how < 0.07:
        needs_plain = name.endswith(PLAIN_SUFFIXES) or data.startswith(PLAIN_BEGINNINGS)
        return Case(name + suffix, whole, options, None if needs_plain or is_packed(data) else data)
    damage = rng.choice(
        [whole[: rng.randrange(len(whole))], whole + data[:9], spoil(whole, random_edits(rng))]
    )
    return Case(name + suffix, damage, options)
