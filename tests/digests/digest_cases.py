"""Running a case of the table with today's code: public names and public attributes only."""

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import digest_data as data
import numpy as np
from digest_bits import digest, fitted, of_model, rows_of_call, sweeps

import bnpstream

SPLIT = (1, 7, 33, 60, 21)
"""Rows of the first calls of `partial_fit`; the last call has the others."""
BLOCK = 30
"""Rows of a partition."""
SETTLED = 3
"""Partitions between two places where a shared run can be saved."""
ADDED_SINCE = {"max_responsibilities": None}
"""Settings that no case names, as there was none when it was made, at what was done then."""
OPTIONS_SINCE = ("--max-responsibilities", "0")
"""The same on the command line."""
TIMING = ("run", "seconds", "seconds_compiling", "seconds_in_pass", "rows_per_second", "dask")
"""What a command says that is no result."""
SAID_SINCE = ("topic", "topics", "largest_topics", "label", "schema", "novelty_quantile")
"""What commands have said only since: the second level, what records are, quantiles."""


def generalized_dirichlet(s):
    """Return log sum_{l <= 3} e^{-ls} / s: Lijoi, Mena and Pruenster (2005)."""
    return -s + np.log(1 + np.exp(-s) + np.exp(-2 * s)) - np.log(s)


def made(written):
    """Return a setting as it is written in the table: {"call": name, ...} is a public class."""
    if isinstance(written, dict):
        inside = {name: made(value) for name, value in written.items() if name != "call"}
        return getattr(bnpstream, written["call"])(**inside)
    if written == "function generalized_dirichlet":
        return generalized_dirichlet
    if isinstance(written, list):
        return [made(value) for value in written]
    return written


class Runner:
    """Runs cases one after the other; a cluster is started when one needs it."""

    def __init__(self):
        self._stack = ExitStack()
        self._client = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stack.close()

    @property
    def client(self):
        if self._client is None:
            from bnpstream.distributed import connect

            self._client = self._stack.enter_context(connect("local:2"))
        return self._client

    def run(self, case):
        """Return the digests of a case."""
        about = case["data"]
        rows, held = data.stream(about["kind"], about["rows"], about["seed"])
        with tempfile.TemporaryDirectory() as folder:
            face = FACES[case["face"]]
            return face(case, rows, held, Path(folder), self)


def estimator(case):
    return getattr(bnpstream, case["estimator"])(**settings(case))


def settings(case):
    return ADDED_SINCE | {name: made(value) for name, value in case["settings"].items()}


def reloaded(model, folder):
    """Return a model that was saved and loaded."""
    model.save(folder / "saved")
    return type(model).load(folder / "saved", classes=())


def given(case, start, stop):
    """Return the weights and the times of some rows, as keywords."""
    n, seed, named = case["data"]["rows"], case["data"]["seed"], {}
    if case["weights"]:
        named["sample_weight"] = data.weights(n, seed)[start:stop]
    if case["times"]:
        named["timestamps"] = data.times(n, seed)[start:stop]
    return named


def said(model):
    return [rows_of_call(model), sweeps(model)]


def by_fit(case, rows, held, folder, runner):
    model, n = estimator(case), case["data"]["rows"]
    if not case["resumed"]:
        model.fit(rows, **given(case, 0, n))
        return fitted(model, held, [said(model)])
    half = n // 2
    model.fit(rows[:half], **given(case, 0, half))
    calls = [said(model)]
    model = reloaded(model, folder)
    calls.append(said(model))
    model.partial_fit(rows[half:], **given(case, half, n))
    calls.append(said(model))
    return fitted(model.finish(), held, calls)


def by_partial_fit(case, rows, held, folder, runner):
    model, n = estimator(case), case["data"]["rows"]
    ends = [*np.cumsum(SPLIT).tolist(), n]
    calls, start = [], 0
    for number, stop in enumerate(ends):
        model.partial_fit(rows[start:stop], **given(case, start, stop))
        calls.append(said(model))
        if case["resumed"] and number in (1, 3):  # within the first rows, and after them
            model = reloaded(model, folder)
        start = stop
    if case["resumed"]:
        for _ in model.finishing():
            break
        model = reloaded(model, folder)
    return fitted(model.finish(), held, calls)


def by_refine(case, rows, held, folder, runner):
    model, n = estimator(case), case["data"]["rows"]
    model.fit(rows, **given(case, 0, n))
    calls = [said(model)]
    if case["resumed"]:
        model = reloaded(model, folder)
    weights = {name: x for name, x in given(case, 0, n).items() if name == "sample_weight"}
    model.refine(rows, n_passes=2, **weights)
    return fitted(model, held, [*calls, said(model)])


def by_river(case, rows, held, folder, runner):
    from bnpstream.river import StreamingMixture

    model = StreamingMixture(**settings(case))
    records, later = (
        part if case["data"]["kind"] == "documents" else data.records(part) for part in (rows, held)
    )

    def asked(record):
        shares = model.predict_proba_one(record)
        return [model.predict_one(record), list(shares.items()), model.score_one(record)]

    calls = []
    for i, record in enumerate(records):
        if i % 17 == 0:
            calls.append([model.n_clusters, asked(record)])
        model.learn_one(record)
    return {
        "rows": digest(calls),
        "answers": digest([model.n_clusters, [asked(record) for record in later]]),
    }


def by_dask(staleness):
    def run(case, rows, held, folder, runner):
        from bnpstream.distributed import fit_stream, stream_partitions

        model, n = estimator(case), case["data"]["rows"]
        blocks = [rows[start : start + BLOCK] for start in range(0, n, BLOCK)]
        shared = {"staleness": staleness, "settle_every": SETTLED}
        start = None
        if case["resumed"]:
            steps = stream_partitions(runner.client, blocks, model, **shared)
            for applied in steps:
                start = applied.reached
                if start.inside is None and start.partitions == SETTLED:
                    break
            steps.close()
            model = reloaded(model, folder)
        result = fit_stream(runner.client, blocks, model, start=start, **shared)
        found = fitted(result.model, held, [])
        return found | {"rows": digest(result.n_rows, result.reached.partitions)}

    return run


# --- commands -------------------------------------------------------------------------------------


def command(folder, *arguments, code=0):
    """Run a command in this process; return what it writes to standard output."""
    from bnpstream.cli import app

    path, found = folder / "output", 0
    with path.open("w") as output, (folder / "complaints").open("w") as complaints:
        before, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), output, complaints
        try:
            app([str(argument) for argument in arguments])
        except SystemExit as end:
            found = end.code or 0
        finally:
            sys.stdout, sys.stderr = before
    said = (folder / "complaints").read_text()
    assert found == code, f"{' '.join(map(str, arguments))}: code {found}: {said}"
    return path.read_text()


def by_command(name):
    def run(case, rows, held, folder, runner):
        form, n = case["format"], case["data"]["rows"]
        stamps = data.times(n, case["data"]["seed"]) if case["times"] else None
        source, later = folder / f"rows.{form}", folder / f"held.{form}"
        data.write(later, form, held, None if stamps is None else stamps[: data.N_HELD])
        arguments = [name, source, "--out", folder / "run", *OPTIONS_SINCE, *case["options"]]
        lines = []
        if case["resumed"]:  # a record that cannot be used ends a strict run, which is saved
            data.write(source, form, rows, stamps, bad_row=n // 2)
            lines += command(folder, *arguments, "--strict", "--quiet", code=1).splitlines()
        data.write(source, form, rows, stamps)
        end = ["--json"] if name == "fit" else ["--quiet"]
        resume = ["--resume"] if case["resumed"] else []
        lines += command(folder, *arguments, *resume, *end).splitlines()
        return of_run(folder, folder / "run", name, lines, later)

    return run


def of_run(folder, run, name, lines, later):
    """Return the digests of a run directory, and of what its command wrote."""
    if name == "fit":
        summary = json.loads("".join(lines))
        output = as_before(summary)
    else:
        output = {}
        for line in map(json.loads, lines):
            assert output.setdefault(line["record"], line) == line
        output = as_before([output[number] for number in sorted(output)])
    config = json.loads((run / "config.json").read_text())
    documents = config["schema"]["kind"] == "documents"
    model = (bnpstream.DocumentMixture if documents else bnpstream.StreamingMixture).load(run)
    whole = of_model(model)
    predicted = command(folder, "predict", run, later, "--json")
    listed = json.loads(command(folder, "clusters", run, "--json"))["clusters"]
    return whole | {
        "rows": digest(output),
        "answers": digest(as_before([json.loads(line) for line in predicted.splitlines()])),
        "clusters": digest(as_before(listed)),
    }


def as_before(document):
    """Return what a command prints without what names or times the run, and without topics."""
    if isinstance(document, dict):
        left_out = (*TIMING, *SAID_SINCE)
        return {k: as_before(x) for k, x in document.items() if k not in left_out}
    return [as_before(x) for x in document] if isinstance(document, list) else document


FACES = {
    "fit": by_fit,
    "partial_fit": by_partial_fit,
    "refine": by_refine,
    "river": by_river,
    "dask-0": by_dask(0),
    "dask-1": by_dask(1),
    "command-fit": by_command("fit"),
    "command-stream": by_command("stream"),
}


def main():
    """Read cases as JSON from standard input; write a line of JSON for every one of them."""
    out = sys.stdout
    with Runner() as runner:
        # Workers last: what this process has compiled they find on disk.
        for case in sorted(json.load(sys.stdin), key=lambda case: case["face"].startswith("dask")):
            began = time.process_time()
            try:
                found = {"digest": runner.run(case)}
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"}
            found |= {"name": case["name"], "seconds": round(time.process_time() - began, 2)}
            out.write(json.dumps(found) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
