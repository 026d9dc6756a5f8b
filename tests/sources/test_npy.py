"""Vectors in a file of NumPy."""

import numpy as np
import pytest

from bnpstream.sources import open_source


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(23, 5))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_vectors_stay_as_narrow_as_they_are(tmp_path, vectors, dtype, order):
    path, rows = tmp_path / "vectors.npy", np.asarray(vectors, dtype, order=order)
    np.save(path, rows)
    with open_source(str(path)) as source:
        assert (source.schema.format, source.schema.kind, source.schema.n_features) == (
            "npy",
            "table",
            5,
        )
        batches = [records.rows for records, _ in source.batches(4)]
    assert {batch.dtype for batch in batches} == {np.dtype(dtype)}
    np.testing.assert_array_equal(np.concatenate(batches), rows)


def test_reading_goes_on_from_any_batch(tmp_path, vectors):
    path = tmp_path / "vectors.npy"
    np.save(path, vectors)
    with open_source(str(path)) as source:
        positions = [position for _, position in source.batches(4)]
        for position, seen in zip(positions[:-1], range(4, 23, 4), strict=True):
            rest = [records for records, _ in source.batches(4, position)]
            np.testing.assert_array_equal(np.concatenate([r.rows for r in rest]), vectors[seen:])
            assert rest[0].numbers[0] == seen
    np.save(path, vectors[:6])
    with open_source(str(path)) as source, pytest.raises(ValueError, match=r"vectors.npy"):
        list(source.batches(4, positions[3]))


def test_a_row_that_is_not_finite_is_rejected_by_number(tmp_path, vectors):
    path = tmp_path / "vectors.npy"
    vectors[[6, 9], [2, 0]] = np.nan, np.inf
    np.save(path, vectors)
    with open_source(str(path)) as source:
        found = list(source.batches(8))
    rejects = [reject for records, _ in found for reject in records.rejects]
    assert [(reject.line, reject.record) for reject in rejects] == [(7, 6), (10, 9)]
    assert "column 2 is nan" in rejects[0].reason
    numbers = [number for records, _ in found for number in records.numbers]
    assert numbers == [i for i in range(23) if i not in (6, 9)]


@pytest.mark.parametrize(
    "array", [np.ones(4), np.ones((0, 3)), np.array([["a"]]), np.array([[None]], dtype=object)]
)
def test_what_is_no_matrix_of_numbers_is_refused(tmp_path, array):
    path = tmp_path / "vectors.npy"
    np.save(path, array)
    with pytest.raises(ValueError, match=r"vectors.npy: (an array|not a matrix) .*numpy.save"):
        open_source(str(path))


def test_a_file_that_is_cut_short_is_refused(tmp_path, vectors):
    path = tmp_path / "vectors.npy"
    np.save(path, vectors)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"vectors.npy: not a matrix of numbers"):
        open_source(str(path))


def test_a_file_that_grows_is_refused(tmp_path, vectors):
    path = tmp_path / "vectors.npy"
    np.save(path, vectors)
    with pytest.raises(ValueError, match="while it grows"):
        open_source(str(path), follow=True)
