"""Add cases to the table of digests; see README.md beside it.

python tests/digests/make.py cases.json              # a list of cases without digests
python tests/digests/make.py --cover                 # those that cover all pairs
python tests/digests/make.py --replace NAME --why TEXT
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from digest_cover import rows
from digest_surroundings import computed, differences, versions
from digest_table import merged, read, write


def main():
    parser = argparse.ArgumentParser(description="Add cases to the table of digests.")
    parser.add_argument("file", nargs="?", type=Path, help="JSON list of cases without digests")
    parser.add_argument("--cover", action="store_true", help="the cases that cover all pairs")
    parser.add_argument("--replace", action="append", default=[], help="a case that may change")
    parser.add_argument("--why", help="why it may; kept in the table")
    given = parser.parse_args()
    table = read() or {"versions": versions(), "cases": []}
    if said := differences(table["versions"]):
        sys.exit(f"digests of these versions would not go with the table: {said}")
    cases = json.loads(given.file.read_text()) if given.file is not None else []
    if given.cover:
        cases += rows()
    known = {case["name"]: case for case in table["cases"]}
    named = {case["name"] for case in cases}
    again = [known[name] for name in given.replace if name in known and name not in named]
    wanted = [case for case in [*cases, *again] if case["name"] not in known or case in again]
    wanted += [case for case in cases if case["name"] in given.replace]
    wanted = [{k: x for k, x in case.items() if k not in ("digest", "why")} for case in wanted]
    found, digests = [], {}
    with tempfile.TemporaryDirectory() as cache:
        for name, outcome in computed("digest_cases.py", wanted, Path(cache)):
            if "error" in outcome:
                sys.exit(f"{name}: {outcome['error']}")
            print(f"{name}: {outcome['seconds']} s", flush=True)
            digests[name] = outcome["digest"]
    found = [case | {"digest": digests[case["name"]]} for case in wanted]
    try:
        write(merged(table, found, given.replace, given.why))
    except ValueError as error:
        sys.exit(str(error))
    print(f"{len(found)} cases written")


if __name__ == "__main__":
    main()
