"""Tiny files that would take ages: the work is bounded by their bytes."""

import gzip
import time

import pytest
import zstandard
from feeding import read_all, write

from bnpstream.sources import open_source
from bnpstream.sources.files.byte_reader import ByteReader

SECONDS = 5.0
"""CPU time that is far more than any of these takes, and far less than it took."""


@pytest.fixture(autouse=True)
def in_time():
    """Each test is done within seconds of CPU time."""
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("n", [10**12, 10**7])
@pytest.mark.parametrize("name", ["docword.txt", "a.mtx"])
def test_a_header_of_empty_rows_is_refused(tmp_path, name, n):
    content = f"{n}\n2\n1\n1 1 1\n"
    if name == "a.mtx":
        content = f"%%MatrixMarket matrix coordinate integer general\n{n} 2 1\n1 1 1\n"
    path = write(tmp_path, name, content)
    with pytest.raises(ValueError, match=f"{path}: line . announces {n} .*nearly all .* empty"):
        open_source(path)


def test_a_header_with_some_empty_rows_is_not(tmp_path):
    path = write(tmp_path, "docword.txt", "3000\n2\n1\n2 1 1\n")
    records, rejects = read_all(open_source(path))
    assert (len(records), rejects) == (3000, [])


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_thousands_of_empty_members(tmp_path, pack):
    path = tmp_path / "a"
    path.write_bytes(pack(b"a\n") + 50_000 * pack(b"") + pack(b"b\n"))
    with ByteReader(str(path)) as file:
        assert b"".join(file.blocks()) == b"a\nb\n"


def test_zeros_between_members(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b"a\n") + bytes(5_000_000) + gzip.compress(b"b\n"))
    with ByteReader(str(path)) as file:
        assert b"".join(file.blocks()) == b"a\nb\n"


@pytest.mark.parametrize("line", ['x","y', '"s', '"s""', '"', '"a","b'])
def test_quotes_that_are_never_closed(tmp_path, line):
    n = 20_000
    path = write(tmp_path, "a.csv", 'note,size\na,1\n"s\n' + f"{line}\n" * n)
    records, rejects = read_all(open_source(path))
    assert len(records) + len(rejects) > n // 3
