"""A checkpoint's document or config.json with one value replaced: a message, never a traceback."""

import json
import subprocess
from functools import partial

import numpy as np
import pytest
from forging_documents import main
from killing import fork

from bnpstream import DirichletMultinomial, StreamingMixture
from bnpstream.runs.overview import Run
from bnpstream.storage import RunError, Tensors, read_tensors
from bnpstream.storage.models import SavedModel
from bnpstream.storage.tensors import write_tensors
from serving import fit, text_records, write_lines

SHARE = 60
"""One forged document in so many is tried here; `make soak` has all."""


def test_no_forged_document_is_a_traceback():
    process = fork(
        partial(main, "window", SHARE), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    output, errors = process.communicate()
    assert process.returncode == 0, output + errors[-3000:]
    assert ", 0 bad" in output


@pytest.mark.parametrize("name", ["Elsewhere", -1, True, []])
def test_a_class_from_elsewhere_is_named(tmp_path, name):
    run = fit(write_lines(tmp_path / "feed.jsonl", text_records(0, 30)), tmp_path / "run")
    path = run / "state.safetensors"
    tensors = read_tensors(path)
    document = json.loads(json.dumps(tensors.document))
    document["stream"]["prior"]["class"] = name
    write_tensors(path, Tensors(tensors.arrays, document))
    with pytest.raises(RunError, match=r"state\.safetensors"):
        Run(run)


def test_a_position_that_is_not_the_models_is_a_message(tmp_path):
    source = write_lines(tmp_path / "feed.jsonl", text_records(0, 30))
    run = fit(source, tmp_path / "run")
    path = run / "state.safetensors"
    tensors = read_tensors(path)
    forged = tensors.document | {"position": None, "finished": False}
    write_tensors(path, Tensors(tensors.arrays, forged))
    with pytest.raises(RunError, match=r"30 records were read .* but the model has 60 rows"):
        fit(source, run, resume=True)


@pytest.mark.parametrize("n_columns", [3, 40, 2**26])
def test_a_table_for_other_columns_is_refused(n_columns):
    model = StreamingMixture("dp", DirichletMultinomial(0.1)).partial_fit(np.eye(12, dtype=int))
    arrays, document = model.to_tensors()
    forged = arrays | {"statistics.shape": np.array([12, n_columns])}
    with pytest.raises(ValueError, match="statistics"):
        StreamingMixture._of(SavedModel.of(Tensors(forged, document)))
