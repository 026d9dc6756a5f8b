"""Not one bit of any result has changed: see README.md beside this file."""

import pytest
from digest_surroundings import computed, differences
from digest_table import merged, read

import loop_cache

TABLE = read()
DIFFERENT = differences(TABLE["versions"])
comparable = pytest.mark.skipif(bool(DIFFERENT), reason=f"other last bits: {DIFFERENT}")


@pytest.fixture(scope="module")
def outcomes(request):
    """Return what today's code makes of the cases that were asked for, in a process of its own."""
    asked = {
        item.callspec.params["case"]["name"]
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
        if "case" in item.callspec.params
    }
    wanted = [case for case in TABLE["cases"] if case["name"] in asked]
    return dict(computed("digest_cases.py", wanted, loop_cache.folder() / "generic"))


@comparable
@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_bits_are_those_of_the_table(case, outcomes):
    outcome = outcomes[case["name"]]
    assert "error" not in outcome, outcome["error"]
    assert outcome["digest"] == case["digest"]


def test_a_case_of_the_table_does_not_change_unless_it_is_named():
    one = {"name": "one", "rows": 3, "digest": {"posterior": "a"}}
    table = {"versions": {}, "cases": [one]}
    other = one | {"digest": {"posterior": "b"}}
    assert merged(table, [one]) == table
    with pytest.raises(ValueError, match="one is in the table with another digest"):
        merged(table, [other])
    with pytest.raises(ValueError, match="say why"):
        merged(table, [other], ["one"])
    with pytest.raises(ValueError, match="no case two"):
        merged(table, [other], ["two"], "a mistake")
    assert merged(table, [other], ["one"], "a mistake")["cases"] == [other | {"why": "a mistake"}]
    assert merged(table, [one | {"name": "two"}])["cases"][0] == one
