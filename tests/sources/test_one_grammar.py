"""Lines of numbers: what the compiled parser takes, the careful one takes, and the same way."""

import numpy as np
import pytest
from feeding import read_all, write

from bnpstream.kernels.text.parser import IRREGULAR
from bnpstream.sources import Options, open_source
from bnpstream.sources.formats import entries, pairs

PIECES = [b" ", b" ", b"\t", b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xa0", b"\0", b":", b"#"]
PIECES += [b"+", b"-", b".", b"e", b"qid:3", b"label", b"1", b"2", b"3", b"07", b"2.5", b"1e2"]
PIECES += [
    b"9007199254740993.0",
    b"9007199254740993",
    b"1e-400",
    b"0" * 20,
    b"999999999999999999.9",
]
LINES = {
    "a.svm": b"1 1:2 2:3",
    "a.ldac": b"2 0:1 1:4",
    "docword.txt": b"1 1 2",
    "a.mtx": b"1 2 3",
}
HEADERS = {
    "docword.txt": b"9\n3\n1\n",
    "a.mtx": b"%%MatrixMarket matrix coordinate real general\n9 3 1\n",
}
SOUND = [b"1\x0b2 1:1", b"\x0c1 1:2", b"a\x0cb qid:1\x0b 2:3", b"1 qid:3\x0c1:2", b"1\x0b1:2"]
N_LINES = 150


def lines_of(name):
    """Return lines like a sound one, with some bytes put in, taken out or replaced."""
    rng = np.random.default_rng((93, list(LINES).index(name)))
    found = list(SOUND) if name == "a.svm" else []
    while len(found) < N_LINES:
        line = LINES[name]
        for _ in range(int(rng.integers(1, 4))):
            at, until = np.sort(rng.integers(0, len(line) + 1, size=2)).tolist()
            piece = PIECES[int(rng.integers(len(PIECES)))]
            line = line[:at] + piece + line[min(until, at + 2) :]
        found.append(line)
    return found


def read(path):
    options = Options(n_features=3) if path.endswith((".svm", ".ldac")) else Options()
    try:
        records, rejects = read_all(open_source(path, options))
    except ValueError as error:
        return str(error)
    return records, [(reject.line, reject.record, reject.reason) for reject in rejects]


@pytest.mark.parametrize("name", LINES)
def test_both_parsers_read_every_line_alike(tmp_path, monkeypatch, name):
    found = {}
    for careful in (False, True):
        if careful:
            irregular = lambda text, start, *others: (IRREGULAR, *start[1:])  # noqa: E731
            monkeypatch.setattr(pairs, "parse_pairs", irregular)
            monkeypatch.setattr(entries, "parse_entries", irregular)
        found[careful] = [
            read(write(tmp_path, name, HEADERS.get(name, b"") + line + b"\n"))
            for line in lines_of(name)
        ]
    for line, fast, slow in zip(lines_of(name), found[False], found[True], strict=True):
        assert fast == slow, line
    assert any(isinstance(each, tuple) and each[0] for each in found[False])


def test_large_counts_are_whole_in_both_parsers(tmp_path):
    # What makes the second line irregular is not the large count.
    lines = b"1 1:9007199254740993.0\n1 1:9007199254740993.0 2:1e1\n"
    source = open_source(write(tmp_path, "a.svm", lines))
    ((records, _),) = source.batches(10)
    assert records.rows[:, [0]].toarray().tolist() == [[9007199254740993]] * 2
