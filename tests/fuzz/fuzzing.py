"""Files of the corpus, ways to spoil them, and what must hold of whatever comes out.

``python fuzzing.py MINUTES [SEED]`` goes on for so long, and says how many cases there were. Every
case runs in a process that was forked, a hundred at a time: a crash or a hang has an owner.
"""

import os
import random
import re
import signal
import sys
import time
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory

from bnpstream.sources import Options, open_source
from bnpstream.sources.files import byte_reader

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
BATCHES, BLOCKS = (1, 3, 1024), (1, 2, 3, 7, 4096)
LONGEST = 80
"""Bytes of a line at most, so that small files have lines that are too long."""
MOST = 2000
"""Records of a file that are looked at: a header may announce a million."""
SECONDS = 20
"""Longer than this is never."""
PIECES = [b"", b"\0", b"\xff", b"\n", b"\r\n", b" ", b'"', b",", b":", b"-1", b"1e999", b"nan"]
PIECES += [b"9" * 19, b"2147483648", b"\x0b", b"\x1b[0m", b"{", b"}", b"[", b"%", b"#", b"z" * 99]


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


def options_for(path: Path) -> Options:
    """Return what is said about a file: lines may not be long, and vectors have to be named."""
    vector = "v" if path.name.startswith("vectors") else None
    return Options(max_line_bytes=LONGEST, vector_field=vector)


def reading(path: Path, batch_rows: int, start=None, schema=None) -> tuple[list, str | None]:
    """Return all records and rejects in order, each with the position after it, and the error."""
    found: list = []
    source = None
    try:
        source = open_source(str(path), options_for(path), schema)
        for records, position in source.batches(batch_rows, start):
            rows = records.rows
            if hasattr(rows, "indices"):  # there may be millions of columns
                inside = [slice(*rows.indptr[i : i + 2]) for i in range(rows.shape[0])]
                rows = [[rows.indices[at].tolist(), rows.data[at].tolist()] for at in inside]
            rows = [row.tolist() if hasattr(row, "tolist") else dict_or_list(row) for row in rows]
            taken = zip(records.numbers, records.ids, rows, strict=True)
            now = [(number, id_, repr(row)) for number, id_, row in taken]
            now += [(one.record, one.line, one.reason) for one in records.rejects]
            found += [(*one, position) for one in sorted(now, key=lambda one: one[0])]
            if len(found) > MOST:
                break
    except (ValueError, OSError) as error:
        if path.name not in str(error):
            raise RuntimeError("an error does not name the file") from error
        return found, re.sub("0x[0-9a-f]+", "", str(error))  # NumPy tells addresses
    finally:
        if source is not None:
            source.close()
    return found, None


def dict_or_list(row):
    """Return a row of words or cells as it is compared."""
    return sorted(row.items()) if hasattr(row, "items") else list(row)


def check(path: Path) -> None:
    """Raise AssertionError unless a file is read the same way in batches of any size, and resumed.

    Records are numbered without gaps, and what is wrong is a reject or an error that names a file.
    """
    whole, error = reading(path, BATCHES[-1])
    if len(whole) > MOST:
        return
    for batch_rows in BATCHES[:-1]:
        found, other = reading(path, batch_rows)
        assert _plain(found) == _plain(whole)
        assert other == error
    assert sorted({one[0] for one in found}) == list(range(len({one[0] for one in found})))
    if error is not None or not found:
        return
    schema = open_source(str(path), options_for(path)).schema
    found, _ = reading(path, 1)
    for _, _, _, position in found[:20]:
        rest, failed = reading(path, 2, position, schema)
        assert failed is None
        n = position["records"]
        assert _plain(one for one in rest if one[0] >= n) == _plain(
            one for one in found if one[0] >= n
        )


def _plain(found: list) -> list:
    """Return records and rejects in one order; a line may be left out of an earlier record."""
    return sorted((number, repr(more), text) for number, more, text, _ in found)


def check_blocks(path: Path) -> None:
    """Raise AssertionError unless a file is read the same way whatever reading gives at a time."""
    expected = reading(path, 3)
    usual = byte_reader.BLOCK_BYTES
    try:
        for n_bytes in BLOCKS:
            byte_reader.BLOCK_BYTES = n_bytes
            assert reading(path, 3) == expected, n_bytes
    finally:
        byte_reader.BLOCK_BYTES = usual


def random_edits(rng: random.Random) -> list[tuple[int, float, float, int]]:
    """Return one to four edits."""
    n = rng.randrange(1, 5)
    return [(rng.randrange(6), rng.random(), rng.random(), rng.randrange(256)) for _ in range(n)]


def work(folder: Path, seed: int, n_cases: int) -> None:
    """Check so many files; write down the one that is looked at."""
    for number in range(n_cases):
        rng = random.Random(1000 * seed + number)
        original = rng.choice(CORPUS)
        path = folder / f"case.{original.name}"
        if original.name.startswith("docword"):
            path = folder / original.name
        path.write_bytes(spoil(original.read_bytes(), random_edits(rng)))
        (folder / "now").write_text(str(path))
        signal.alarm(SECONDS)
        check(path)
        path.unlink()


def soak(minutes: float, seed: int) -> int:
    """Go on for some minutes; return how many cases went wrong, each kept beside the corpus."""
    until, n_cases, n_bad = time.monotonic() + 60 * minutes, 0, 0
    for path in CORPUS:
        reading(path, 3)  # loops are compiled once
    while time.monotonic() < until:
        with TemporaryDirectory() as name:
            folder = Path(name)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    work(folder, seed, 100)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code != 0:
                n_bad += 1
                bad = Path((folder / "now").read_text())
                kept = Path(f"fuzz-{seed}-{bad.name}")
                kept.write_bytes(bad.read_bytes())
                print(f"{kept}: ended with {code}", flush=True)
        n_cases, seed = n_cases + 100, seed + 1
    print(f"{n_cases} files, {n_bad} bad; seeds up to {seed}")
    return n_bad


if __name__ == "__main__":
    sys.exit(soak(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
