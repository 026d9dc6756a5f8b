"""Runs that an earlier version saved in the middle of their streams end as that version's would."""

import pytest
from digest_runs import RUNS, cases
from digest_surroundings import computed, differences
from digest_table import read

import loop_cache

DIFFERENT = differences(read()["versions"])
CASES = cases()


@pytest.fixture(scope="module")
def ends(request):
    """Return how the runs end that were asked for, in a process of its own."""
    asked = {
        item.callspec.params["case"]["name"]
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    }
    wanted = [case for case in CASES if case["name"] in asked]
    return dict(computed("digest_runs.py", wanted, loop_cache.folder() / "generic"))


@pytest.mark.skipif(bool(DIFFERENT), reason=f"other last bits: {DIFFERENT}")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_kept_run_goes_on_to_the_same_bits(case, ends):
    outcome = ends[case["name"]]
    assert "error" not in outcome, outcome["error"]
    assert outcome["digest"] == case["digest"]


def test_kept_runs_are_small_and_name_no_place():
    for path in RUNS.rglob("*"):
        if path.is_file():
            assert path.stat().st_size < 60_000
            assert path.suffix in (".json", ".jsonl", ".safetensors")
            assert b"/tmp" not in path.read_bytes()
