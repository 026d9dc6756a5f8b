"""What can be checked of a file that was fetched: its hash if that is known, else its contents."""

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import IO, NamedTuple, cast

from bnpstream.datasets.catalogue import CorpusFile

__all__ = ["Verdict", "inspect"]

_AT_ONCE = 1 << 20


class Verdict(NamedTuple):
    """What was found out about a file."""

    sha256: str
    problem: str | None
    """What is wrong with it; None if nothing is."""


def inspect(path: Path, known: CorpusFile) -> Verdict:
    """Compare a file with what is known of it.

    With a known hash nothing else matters. Without one, the file has to unpack to its end, its
    header has to say what is published, and it needs as many lines.
    """
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if known.sha256 is not None:
        problem = f"its sha256 is {sha256}, expected {known.sha256}"
        return Verdict(sha256, None if sha256 == known.sha256 else problem)
    try:
        with _unpacked(path, known.name) as lines:
            return Verdict(sha256, _find_problem(lines, known))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return Verdict(sha256, f"its gzip data are damaged or end early ({error})")


def _unpacked(path: Path, name: str) -> IO[bytes]:
    # The name on the disk may be that of a download which is not finished.
    return cast(IO[bytes], gzip.open(path)) if name.endswith(".gz") else path.open("rb")


def _find_problem(file: IO[bytes], known: CorpusFile) -> str | None:
    n_lines, last = 0, b"\n"
    if known.header is not None:
        head = [file.readline(_AT_ONCE) for _ in known.header]
        if [line.strip() for line in head] != [b"%d" % number for number in known.header]:
            found = b" ".join(line.strip() for line in head)[:60].decode("ascii", "replace")
            expected = " ".join(map(str, known.header))
            return f"its header (D, W, NNZ) is {found!r}, expected {expected!r}"
        n_lines = len(head)
    while data := file.read(_AT_ONCE):
        n_lines += data.count(b"\n")
        last = data[-1:]
    n_lines += last != b"\n"
    if n_lines != known.n_lines:
        return f"it has {n_lines:,} lines, expected {known.n_lines:,}"
    return None
