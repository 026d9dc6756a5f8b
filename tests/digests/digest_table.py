"""The table of digests on disk: a case a line, so that adding some changes no other line."""

import json
from pathlib import Path

TABLE = Path(__file__).with_name("table.json")


def read(path=TABLE):
    """Return the table: `versions`, and `cases` in order."""
    return json.loads(path.read_text()) if path.exists() else None


def write(table, path=TABLE):
    """Write the table."""
    lines = ",\n".join(json.dumps(case) for case in table["cases"])
    text = f'{{"versions": {json.dumps(table["versions"])},\n"cases": [\n{lines}\n]}}\n'
    path.write_text(text)


def merged(table, found, replace=(), why=None):
    """Return a table with further cases; ValueError if one that is there would change.

    Parameters
    ----------
    table : dict
        With `versions` and `cases`.
    found : list of dict
        Cases with their digests.
    replace : collection of str
        Names of cases that may change.
    why : str or None
        Why they may; it is kept with them.
    """
    if replace and not why:
        raise ValueError("say why a digest changes: --why TEXT")
    cases = {case["name"]: case for case in table["cases"]}
    unknown = set(replace) - set(cases)
    if unknown:
        raise ValueError(f"there is no case {', '.join(sorted(unknown))} to replace")
    for case in found:
        before = cases.get(case["name"])
        if before is not None and case["name"] not in replace:
            if {**before, "why": None} != {**case, "why": None}:
                raise ValueError(
                    f"{case['name']} is in the table with another digest or other settings: "
                    "nothing was written. If that is meant, give --replace NAME --why TEXT"
                )
            continue
        cases[case["name"]] = case if before is None else {**case, "why": why}
    return {**table, "cases": list(cases.values())}
