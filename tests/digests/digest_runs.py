"""Going on with a run that an earlier version saved in the middle of its stream."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import digest_data as data
from digest_bits import fitted
from digest_cases import command, given, of_run, said

import bnpstream

RUNS = Path(__file__).with_name("runs")
PLACE = "{source}"
"""Stands in a kept config.json for the folder that has the files of the source."""


def cases():
    """Return what is known of every run that is kept: how it was begun, and how it is to end."""
    found = []
    for path in sorted(RUNS.glob("*/case.json")):
        found.append({"name": path.parent.name, **json.loads(path.read_text())})
    return found


def write_source(case, folder):
    """Write the files of a source; return their paths, and that of the rows held out."""
    about, form = case["data"], case["format"]
    rows, held = data.stream(about["kind"], about["rows"], about["seed"])
    stamps = data.times(about["rows"], about["seed"]) if case["times"] else None
    size = about["rows"] // case["files"]
    paths = []
    for number in range(case["files"]):
        part = slice(number * size, (number + 1) * size)
        paths.append(folder / f"rows{number:02d}.{form}")
        data.write(paths[-1], form, rows[part], None if stamps is None else stamps[part])
    later = folder / f"held.{form}"
    data.write(later, form, held, None if stamps is None else stamps[: data.N_HELD])
    return paths, later


def go_on(case, folder):
    """Return the digests at the end of a run's source."""
    run = folder / "run"
    shutil.copytree(RUNS / case["name"] / "run", run)
    if case["face"] == "model":
        return _go_on_with_model(case, run)
    config = run / "config.json"
    config.write_text(config.read_text().replace(PLACE, str(folder)))
    return finish_run(case, folder, run, ["--resume"])


def finish_run(case, folder, run, more):
    """Run a command to the end of its source; return the digests of its run directory."""
    name = case["command"]
    paths, later = write_source(case, folder)
    arguments = [name, *paths, "--out", run, *more]
    if case["face"] == "shared":
        arguments += ["--dask", "local:2"]
    lines = command(folder, *arguments, "--json" if name == "fit" else "--quiet").splitlines()
    return of_run(folder, run, name, lines, later)


def _go_on_with_model(case, run):
    about = case["data"]
    rows, held = data.stream(about["kind"], about["rows"], about["seed"])
    model, start = getattr(bnpstream, case["estimator"]).load(run), case["saved_at"]
    calls = []
    if start < about["rows"]:
        model.partial_fit(rows[start:], **given(case, start, about["rows"]))
        calls.append(said(model))
    return fitted(model.finish(), held, calls)


def main():
    """Read cases as JSON from standard input; write a line of JSON for every one of them."""
    out = sys.stdout
    for case in json.load(sys.stdin):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = {"digest": go_on(case, Path(folder))}
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps({"name": case["name"], **found}) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
