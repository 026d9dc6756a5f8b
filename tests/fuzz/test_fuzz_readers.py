"""Spoilt files: rejects or one error that names the file, the same for any batches, no crash."""

import shutil

import pytest
from fuzzing import CORPUS, check, check_blocks, spoil
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

EDITS = some.lists(
    some.tuples(some.integers(0, 5), some.floats(0, 1), some.floats(0, 1), some.integers(0, 255)),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("original", CORPUS, ids=lambda path: path.name)
def test_files_that_misbehaved(tmp_path, original):
    path = shutil.copy(original, tmp_path / original.name)
    check(path)
    if original.suffix in (".jsonl", ".csv", ".tsv", ".txt", ".ldac", ".svm", ".gz", ".zst"):
        check_blocks(path)


@pytest.mark.parametrize("original", CORPUS, ids=lambda path: path.name)
@settings(
    max_examples=12,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(edits=EDITS)
def test_spoilt_files(tmp_path, original, edits):
    path = tmp_path / original.name
    path.write_bytes(spoil(original.read_bytes(), edits))
    check(path)
