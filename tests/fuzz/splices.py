"""Ways to spoil files by what they are made of: numbers, sections, characters, packings."""

import gzip
import io
import json
import lzma
import random
import re
import struct
import unicodedata
import warnings
import zipfile
import zlib
from typing import Any

import zstandard

SIZES = [0, 1, 2, 3, 7, 8, 63, 64, 127, 255, 256, 32767, 65535, 65536, 2**24, 2**31 - 1, 2**31]
SIZES += [2**32 - 1, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
NUMBER = re.compile(rb"\d+")
DAMAGE = (zipfile.BadZipFile, EOFError, MemoryError, OSError, RuntimeError, ValueError)
MOST_BYTES = 1200
"""Files stay small, so that many are read."""


def arithmetic(data: bytes, rng: random.Random) -> bytes:
    """Return data with lengths, offsets and counts that were changed by arithmetic."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        found = list(NUMBER.finditer(data))
        if found and rng.random() < 0.6 and not _is_binary(data):
            one = rng.choice(found)
            data = data[: one.start()] + _another(int(one[0][:40]), rng) + data[one.end() :]
            continue
        size = rng.choice([1, 2, 4, 4, 8])
        if len(data) < size:
            continue
        at = rng.randrange(0, len(data) - size + 1)
        at -= at % size * (rng.random() < 0.8)
        order = "little" if rng.random() < 0.85 else "big"
        value = int.from_bytes(data[at : at + size], order)
        other = rng.choice([value + 1, value - 1, -value, 2 * value, value // 2, value + len(data)])
        other = rng.choice([other, other, len(data), len(data) - at, rng.choice(SIZES)])
        data = data[:at] + (other % 2 ** (8 * size)).to_bytes(size, order) + data[at + size :]
    return data


def _is_binary(data: bytes) -> bool:
    return b"\0" in data[:200]


def _another(value: int, rng: random.Random) -> bytes:
    """Return another number as it may be written."""
    other = rng.choice([value + 1, value - 1, 10 * value, rng.choice(SIZES), -value, value])
    text = str(other)
    return rng.choice(
        [
            text,
            text,
            f"{text}.{'0' * rng.randrange(30)}",
            f"{'0' * rng.randrange(1, 40)}{text}",
            f"{text}e{rng.choice([0, 1, -1, 18, 19, 308, 309, -400, 99999, 10**12])}",
            f"{text}{'0' * rng.choice([15, 17, 18, 19, 20, 60, 400])}",
            f"0.{'0' * rng.choice([1, 20, 330])}{text}",
            f"{text}/1",
            hex(other),
            f"{other:,}",
            f"({text})",
        ]
    ).encode()


def repeated(data: bytes, rng: random.Random) -> bytes:
    """Return data in which a section occurs many times, or sections stand in another order."""
    if len(data) < 2:
        return data * rng.randrange(1, 9)
    mark = rng.choice([b"\n", b"\n", b"\0\0", b"PK", b"\xff\xff\xff\xff", b",", b" ", b'"'])
    parts = data.split(mark)
    if len(parts) > 2 and rng.random() < 0.6:
        if rng.random() < 0.4:
            rng.shuffle(parts)
        else:
            at = rng.randrange(len(parts))
            parts[at:at] = [parts[at]] * rng.choice([1, 2, 9, 40])
        return mark.join(parts)[:MOST_BYTES]
    i, j = sorted(rng.sample(range(len(data) + 1), 2))
    times = max(1, min(rng.choice([1, 2, 5, 50, 500]), (MOST_BYTES - len(data)) // (j - i)))
    return data[:j] + data[i:j] * times + data[j:]


STRANGE = "\u2028\u2029\x85\u200b\u200d\u202e\u2066\ufeff\u00a0\u3000\u0301\u0345\u00ad\ufffd\ufffe"
STRANGE += "\u0130\u0131\xdf\u017f\u212a\U0001d7d8\U0010ffff\U000e0041"
STRANGE += "\x1c\x1d\x1e\x1f\x0b\x0c\x7f\x08"
BROKEN = [b"\xc0\xaf", b"\xe0\x80\x80", b"\xf0\x82\x82\xac", b"\xed\xa0\x80\xed\xb0\x80", b"\xc3"]
BROKEN += [b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80", b"\xbf" * 3, b"\xfe\xff"]


def characters(data: bytes, rng: random.Random) -> bytes:
    """Return data with characters that look like others, or are parts of characters."""
    what = rng.randrange(7)
    at = rng.randrange(len(data) + 1)
    if what == 0:
        piece = "".join(rng.choices(STRANGE, k=rng.choice([1, 1, 2, 30]))).encode()
        return data[:at] + piece + data[at:]
    if what == 1:
        return data[:at] + rng.choice(BROKEN) + data[at + rng.choice([0, 1, 2]) :]
    text = data.decode("utf-8", "surrogateescape")
    if what == 2:  # digits and letters of other scripts
        zero = rng.choice("\uff10\u0660\u0966\U0001d7d8\u06f0")
        digits = {ord("0") + k: chr(ord(zero) + k) for k in range(10)}
        marks = {ord(c): chr(ord(c) + 0xFEE0) for c in rng.sample(':,"-.{}[]', 2)}
        found = re.split(r"(\d+)", text)
        k = rng.randrange(len(found))
        found[k] = found[k].translate(digits | marks)
        text = "".join(found)
    elif what == 3:
        form = rng.choice(["NFD", "NFKD", "NFC"])
        text = unicodedata.normalize(form, text + rng.choice(["é", "ﬁ", "Å", "한", "½"]))
    elif what == 4:
        encoding = rng.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7", "cp037"])
        return text.encode(encoding, "replace")
    elif what == 5:  # line ends
        ends = rng.choice(["\r\n", "\r", "\n\r", "\u2028", "\x85", "\x0b", "\n\n", "\0"])
        text = ends.join(text.split("\n"))
    else:  # a character that stands across the end of what is read at a time
        pad = rng.choice([1, 2, 3, 7, 77, 78, 79, 80, 81])
        text = text[:at] + "é€😀"[rng.randrange(3)] * pad + text[at:]
    return text.encode("utf-8", "surrogateescape")


def values_of_json(data: bytes, rng: random.Random) -> bytes:
    """Return JSON lines with values that were exchanged, nested or spelled another way."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    try:
        record = json.loads(lines[at])
        if not isinstance(record, dict) or not record:
            return characters(data, rng)
    except (ValueError, RecursionError):
        return arithmetic(data, rng)
    key, other = rng.choice(list(record)), rng.choice(list(record))
    value: Any = record[key]
    depth = rng.choice([1, 2, 100, 1100])
    odd = [
        "",
        [],
        {},
        None,
        True,
        -0.0,
        1e308,
        10**30,
        [value],
        {key: value},
        [[1], [2, 3]],
        [None],
    ]
    odd += [
        {"": 1},
        {"a": 1e19},
        [1, "1"],
        "\ud800",
        "\x1b]0;x\x07",
        {"a": {"b": 1}},
        [True, False],
    ]
    what = rng.randrange(7)
    if what == 0:
        record[key] = record[other]
    elif what == 1:
        record[key] = rng.choice(odd)
    elif what == 2:
        record[rng.choice([key.upper(), f"{key} ", f"{key}\0", "__proto__", ""])] = value
    elif what == 3:
        del record[key]
    if what == 4:
        nested = json.dumps(record).replace(json.dumps(value), "[" * depth + "1" + "]" * depth, 1)
        lines[at] = nested.encode()
    elif what == 5:  # the same text, every character escaped
        spelled = json.dumps(record)
        lines[at] = re.sub("[a-z]", lambda one: f"\\u{ord(one[0]):04X}", spelled).encode()
    else:
        spaces = rng.choice([(",", ":"), (" , ", " : "), (",\t", ":\r")])
        lines[at] = json.dumps(record, separators=spaces, ensure_ascii=rng.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )
    return b"\n".join(lines)


def joined(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return parts of two files, of any formats, as one."""
    i, j = rng.randrange(len(data) + 1), rng.randrange(len(other) + 1)
    what = rng.randrange(5)
    if what == 0:
        return data + other
    if what == 1:
        return data[:i] + other[j:]
    if what == 2:
        return data[:i] + other + data[i:]
    if what == 3:  # the beginning or the end of another format
        n = rng.choice([4, 6, 8, 16, 64])
        return other[:n] + data[n:] if rng.random() < 0.5 else data[:-n] + other[-n:]
    size = rng.choice([4, 8, 16, 32])
    return data[:i] + other[j : j + size] + data[i + size :]


def archive(data: bytes, rng: random.Random) -> bytes:
    """Return an archive of arrays with members renamed, doubled, swapped, packed or spoilt."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as whole:
            members = [(name, whole.read(name)) for name in whole.namelist()]
    except (*DAMAGE, lzma.LZMAError, zlib.error):
        return arithmetic(data, rng)
    if not members:
        return data
    at, other = rng.randrange(len(members)), rng.randrange(len(members))
    name, content = members[at]
    what = rng.randrange(6)
    if what == 0:
        members.append((name, members[other][1]))
    elif what == 1:
        strange = ["../x.npy", "/x.npy", "", "indptr", "data.npy\0", "é.npy", "a/b.npy"]
        members[at] = (rng.choice(strange), content)
    elif what == 2:
        members[at] = (name, members[other][1])
    elif what == 3:
        members[at] = (name, arithmetic(content, rng))
    elif what == 4:
        members[at] = (name, characters(content, rng))
    else:
        members[at] = (name, content[: rng.randrange(len(content) + 1)])
    sink = io.BytesIO()
    how = rng.choice(
        [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    )
    with zipfile.ZipFile(sink, "w", how) as whole, warnings.catch_warnings(action="ignore"):
        for name, content in members:
            whole.writestr(zipfile.ZipInfo(name or "x"), content, how)
    data = sink.getvalue()
    return arithmetic(data, rng) if rng.random() < 0.4 else data


def is_packed(data: bytes) -> bool:
    """Return whether data begin as gzip or zstd do, a frame to be skipped included."""
    return (
        data[:2] == b"\x1f\x8b" or data[:4] == b"\x28\xb5\x2f\xfd" or data[1:4] == b"\x2a\x4d\x18"
    )


def packed(data: bytes, suffix: str, rng: random.Random) -> bytes:
    """Return data in several members or frames, some empty, with everything a header may have."""
    ends = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice([0, 1, 3, 12])))
    parts = [data[i:j] for i, j in zip([0, *ends], [*ends, len(data)], strict=True)]
    pack = _gzip_member if suffix == ".gz" else _zstd_frame
    return b"".join(pack(part, rng) for part in parts)


def _gzip_member(data: bytes, rng: random.Random) -> bytes:
    flags = rng.choice([0, 0, 4, 8, 16, 28])
    header = b"\x1f\x8b\x08" + bytes([flags]) + struct.pack("<IBB", rng.getrandbits(32), 2, 255)
    if flags & 4:
        header += struct.pack("<H", 6) + b"AB\x02\0zz"
    header += (b"name\0" if flags & 8 else b"") + (b"a comment\0" if flags & 16 else b"")
    level = rng.choice([0, 1, 9])
    body = zlib.compressobj(level, zlib.DEFLATED, -15)
    content = body.compress(data[: len(data) // 2]) + body.flush(zlib.Z_FULL_FLUSH)
    content += body.compress(data[len(data) // 2 :]) + body.flush()
    return header + content + struct.pack("<II", zlib.crc32(data), len(data))


def _zstd_frame(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.2:  # a frame to be skipped
        skipped = struct.pack("<II", 0x184D2A50 + rng.randrange(16), 5) + b"hello"
        return skipped + _zstd_frame(data, rng)
    sizes, checked = rng.random() < 0.5, rng.random() < 0.5
    packer = zstandard.ZstdCompressor(write_content_size=sizes, write_checksum=checked)
    if rng.random() < 0.5:
        return packer.compress(data)
    whole = packer.compressobj()
    middle = whole.compress(data[:9]) + whole.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return middle + whole.compress(data[9:]) + whole.flush()


def packed_twice(data: bytes, rng: random.Random) -> bytes:
    """Return what is packed in what is packed."""
    for _ in range(rng.choice([2, 2, 3])):
        data = gzip.compress(data) if rng.random() < 0.5 else zstandard.compress(data)
        if rng.random() < 0.2:
            data = arithmetic(data, rng)
    return data


def spliced(name: str, data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return a file spoilt in one or two ways that go with what it is."""
    ways = [arithmetic, repeated, characters, lambda data, rng: joined(data, other, rng)]
    if ".jsonl" in name:
        ways += [values_of_json] * 3
    if name.endswith(("npz", "npy")):
        ways += [archive, archive, arithmetic]
    if name.endswith((".arrow", ".arrows", ".parquet")):
        ways += [arithmetic] * 4
    for _ in range(rng.choice([1, 1, 2])):
        data = rng.choice(ways)(data, rng)
    return data[: 3 * MOST_BYTES]
