"""Spoilt files: rejects or one error that names the file, the same for any batches, no crash."""

import random
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from mutations import CORPUS, case_of, options_for, spoil
from naive_readers import check_naive
from readings import MOST, check, check_blocks, check_once

EDITS = some.lists(
    some.tuples(some.integers(0, 5), some.floats(0, 1), some.floats(0, 1), some.integers(0, 255)),
    min_size=1,
    max_size=4,
)
N_CASES = 1000


@pytest.mark.parametrize("original", CORPUS, ids=lambda path: path.name)
def test_files_that_misbehaved(tmp_path, original):
    path = shutil.copy(original, tmp_path / original.name)
    check(path, options_for(original.name))
    if original.suffix in (".jsonl", ".csv", ".tsv", ".txt", ".ldac", ".svm", ".gz", ".zst"):
        check_blocks(path, options_for(original.name))


@pytest.mark.parametrize("original", CORPUS, ids=lambda path: path.name)
@settings(
    max_examples=6,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(edits=EDITS)
def test_spoilt_files(tmp_path, original, edits):
    path = tmp_path / original.name
    path.write_bytes(spoil(original.read_bytes(), edits))
    check(path, options_for(original.name))


@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional header")
def test_cases_of_the_long_run(tmp_path):
    n_compared = 0
    for number in range(N_CASES):
        case = case_of(number)
        path = tmp_path / case.name
        path.write_bytes(case.data)
        whole = check_once(path, case.options, random.Random(-number))
        if whole.error is None and len(whole.found) < MOST:
            n_compared += check_naive(path, case.options)
    assert n_compared > N_CASES / 20
