"""Counts too large to be exact are rejects: no sum of them ever wraps around."""

import json

import numpy as np
import pytest
from feeding import read_text
from scipy import sparse

from bnpstream.sources import Options, open_source

MOST = 2**53
MANY = [5 * 10**17] * 36 + [2**64 + 3 - 18 * 10**18]
"""Their sum is 2^64 + 3: in 64 bits, 3."""


def docword(rows):
    entries = [f"{i} 1 {n}" for i, row in enumerate(rows, start=1) for n in row]
    return "\n".join([str(len(rows)), "2", str(len(entries)), *entries]) + "\n"


def matrix_market(rows):
    entries = docword(rows).split("\n", 3)
    sizes = " ".join(entries[:3])
    return f"%%MatrixMarket matrix coordinate integer general\n{sizes}\n{entries[3]}"


FORMATS = {
    "docword.txt": docword,
    "a.mtx": matrix_market,
    "a.ldac": lambda rows: "".join(
        " ".join([str(len(row)), *(f"0:{n}" for n in row)]) + "\n" for row in rows
    ),
    "a.svm": lambda rows: "".join(" ".join(["1", *(f"1:{n}" for n in row)]) + "\n" for row in rows),
}


@pytest.mark.parametrize("name", FORMATS)
def test_repeated_entries_do_not_wrap_around(tmp_path, name):
    rows = [[1, 2], MANY, [MOST - 1, 1], [MOST, 1], [MOST + 1], [7]]
    options = {} if name in ("docword.txt", "a.mtx") else {"n_features": 2}
    _, found, rejects = read_text(tmp_path, name, FORMATS[name](rows), **options)
    assert [row[0] for row in found] == [3.0, float(MOST), float(MOST + 1), float(MOST + 1), 7.0]
    assert [reject.record for reject in rejects] == [1]
    assert "have a sum of more than 64 bits" in rejects[0].reason


@pytest.mark.parametrize("name", FORMATS)
def test_their_reject_is_the_same_in_any_batch(tmp_path, name):
    rows = [[1, 2], MANY, [7], [3], MANY, [4]]
    path = tmp_path / name
    path.write_text(FORMATS[name](rows))
    options = Options() if name in ("docword.txt", "a.mtx") else Options(n_features=2)
    for batch_rows in (1, 2, 5, 64):
        batches = open_source(str(path), options).batches(batch_rows)
        rejects = [reject for batch, _ in batches for reject in batch.rejects]
        assert [reject.document()["place"] for reject in rejects] == [{"record": 2}, {"record": 5}]
        assert str(rejects[0].place) == f"{path}, record 2"


def test_repeated_entries_of_an_archive_do_not_wrap_around(tmp_path):
    rows = [[1, 2], MANY, [MOST, 1], [MOST + 1], [7]]
    ends = np.cumsum([0, *map(len, rows)])
    data = np.array([n for row in rows for n in row], np.int64)
    matrix = sparse.csr_array((data, np.zeros(data.size, np.int64), ends), shape=(5, 2))
    sparse.save_npz(tmp_path / "a.npz", matrix)
    [(batch, _)] = open_source(str(tmp_path / "a.npz")).batches()
    assert batch.rows.toarray()[:, 0].tolist() == [3, MOST + 1, MOST + 1, 7]
    assert [reject.record for reject in batch.rejects] == [1]


@pytest.mark.parametrize("options", [{}, {"hash_bits": 1}])
def test_counts_by_word_do_not_wrap_around(tmp_path, options):
    rows = [{"a": 1}, {f"w{i}": n for i, n in enumerate(MANY)}, {"a": MOST, "b": 1}, {"b": 2}]
    content = "".join(json.dumps({"counts": row}) + "\n" for row in rows)
    path = tmp_path / "a.jsonl"
    path.write_text(content)
    [(batch, _)] = open_source(str(path), Options(**options)).batches()
    assert batch.numbers == [0, 3]
    assert [reject.line for reject in batch.rejects] == [2, 3]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_counts_of_a_matrix_do_not_wrap_around(tmp_path, dtype):
    largest = int(np.iinfo(dtype).max)
    rows = [[1, 2], [largest, 0], [MOST + 1, 0], [2**62, 2**62], [7, 0]]
    np.save(tmp_path / "a.npy", np.array(rows, dtype))
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("a\nb\n")
    [(batch, _)] = open_source(str(tmp_path / "a.npy"), Options(vocab=str(vocabulary))).batches()
    assert batch.rows.toarray().tolist() == [[1, 2], [MOST + 1, 0], [7, 0]]
    assert [reject.record for reject in batch.rejects] == [1, 3]
    assert all("have a sum of more than 64 bits" in reject.reason for reject in batch.rejects)
