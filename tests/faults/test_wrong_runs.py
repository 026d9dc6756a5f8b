"""Run directories that hold what no run has written: a message, exit code 1, no traceback."""

import copy
import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from bnpstream.cli import app
from bnpstream.storage import Tensors, read_tensors, write_tensors

MODELS = {
    "documents": ("--prefix-rows", "5"),
    "provisional": ("--prefix-rows", "500"),
    "window": ("--hash-bits", "6", "--revisit", "20", "--prefix-rows", "5"),
    # A hundred of these go on to their end.
    "prefix": (
        *("--hash-bits", "6", "--prefix-rows", "500", "--likelihood", "diagonal"),
        *("--engine", "auto"),
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a folder with a feed and unfinished runs over it."""
    folder = tmp_path_factory.mktemp("runs")
    feed = folder / "feed.jsonl"
    texts = ("rain wind snow", "bond stock yield")
    feed.write_text("".join(json.dumps({"text": texts[i % 2]}) + "\n" for i in range(30)) + "{\n")
    for name, options in MODELS.items():
        options = ("--engine", "reference", "--batch-rows", "30", "--strict", *options)
        options = (*options, "--checkpoint-seconds", "3600")  # one checkpoint, however slow it is
        stopped = CliRunner().invoke(app, ["fit", str(feed), "--out", str(folder / name), *options])
        assert stopped.exit_code == 1, stopped.output
        assert (folder / name / "state.safetensors").exists()
    return folder


@pytest.fixture(params=MODELS)
def run(request, runs, tmp_path):
    """Return a copy of a run, to be spoilt."""
    shutil.copytree(runs / request.param, tmp_path / "run")
    return tmp_path / "run"


def commands(run):
    """Yield what commands over a run come to; none may end by an error that nobody foresaw."""
    for command in (("clusters", run), ("fit", "--out", run, "--resume")):
        found = CliRunner().invoke(app, [str(argument) for argument in command])
        assert isinstance(found.exception, SystemExit | None), (command, found.exception)
        yield found


def assert_refused(run, *names):
    """Every command says what is wrong with a file, and what to do."""
    for found in commands(run):
        assert found.exit_code == 1, found.output
        assert any(name in found.stderr for name in names), found.stderr
        assert "restore" in found.stderr or "start again" in found.stderr, found.stderr


def altered(value):
    """Yield JSON values that differ from a JSON value in one place: missing, or of another type."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: x for name, x in value.items() if name != key}
            for other in altered(inner):
                yield {**value, key: other}
    yield [] if isinstance(value, dict) else {"x": []}


def test_arrays_that_are_missing_or_of_another_shape_or_type(run):
    path = run / "state.safetensors"
    sound = read_tensors(path)
    for name, array in sound.arrays.items():
        rest = {key: x for key, x in sound.arrays.items() if key != name}
        write_tensors(path, Tensors(rest, sound.document))
        assert_refused(run, str(path))
        longer = np.append(array.reshape(-1), array.reshape(-1)[:1])[:, None]
        for wrong in (array.astype(np.float32), longer):
            write_tensors(path, Tensors({**rest, name: wrong}, sound.document))
            assert len(list(commands(run))) == 2


@pytest.mark.parametrize("run", ["window"], indirect=True)
def test_columns_of_a_row_that_are_not_in_order(run):
    """Loops over words trust that the length of a document comes last."""
    path = run / "state.safetensors"
    sound = read_tensors(path)
    columns = sound.arrays["window.rows.indices"].copy()
    columns[:2] = columns[1], columns[0]
    write_tensors(path, Tensors({**sound.arrays, "window.rows.indices": columns}, sound.document))
    assert_refused(run, "window.rows.indices")


@pytest.mark.parametrize("run", ["window"], indirect=True)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("statistics.columns", -1),
        ("statistics.columns", 1 << 60),
        ("statistics.ends", 1 << 60),
        ("statistics.values", np.nan),
        ("statistics.shape", 1 << 60),
        ("masses", np.nan),
        ("masses", -1.0),
        ("ids", -1),
        ("counters", 1 << 60),
        ("window.slots", 1 << 60),
        ("window.indptr", 1 << 60),
        ("window.shares", np.nan),
        ("window.rows.indices", -1),
        ("window.rows.indices", 1 << 30),
        ("window.rows.indptr", 1 << 30),
    ],
)
def test_numbers_that_compiled_loops_must_not_see(run, name, value):
    path = run / "state.safetensors"
    sound = read_tensors(path)
    array = sound.arrays[name].copy()
    array.reshape(-1)[0] = value
    write_tensors(path, Tensors({**sound.arrays, name: array}, sound.document))
    assert_refused(run, str(path))


@pytest.mark.parametrize("run", ["prefix"], indirect=True)
def test_documents_with_a_part_that_is_missing_or_of_another_type(run):
    path = run / "state.safetensors"
    sound = read_tensors(path)
    optional = {"marks", "version", "format", "epochs", "feature_names_in_"}
    whole = {key: x for key, x in sound.document.items() if key not in optional}
    for part in ("position", "journal", "model", "rows", "rejects", "seconds", "finished"):
        for other in altered({part: whole[part]}):
            if not isinstance(other, dict) or other == {"x": []}:
                continue
            rest = {key: x for key, x in copy.deepcopy(sound.document).items() if key != part}
            write_tensors(path, Tensors(sound.arrays, {**rest, **other}))
            assert len(list(commands(run))) == 2


@pytest.mark.parametrize("run", ["prefix"], indirect=True)
def test_a_config_with_a_part_that_is_missing_or_of_another_type(run):
    path = run / "config.json"
    sound = json.loads(path.read_text())
    for part in ("model", "source", "schema"):
        for key in (*sound[part], None):
            whole = copy.deepcopy(sound)
            if key is None:
                whole[part] = 3
            else:
                whole[part][key] = {"x": [3]}
            path.write_text(json.dumps(whole))
            assert len(list(commands(run))) == 2
    for part in ("model", "source", "schema"):
        path.write_text(json.dumps({**sound, part: []}))
        assert_refused(run, str(path), "holds a saved model")


@pytest.mark.parametrize("metadata", [None, {"format": "np"}, {"bnpstream": "3"}])
def test_tensors_of_somebody_else(run, metadata):
    path = run / "state.safetensors"
    save_file({"weight": np.ones(3)}, path, metadata)
    assert_refused(run, str(path))


def test_names_of_other_columns(run):
    (run / "features.json").write_text('["a"]')
    assert_refused(run, str(run / "features.json"))
