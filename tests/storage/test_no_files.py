"""Pipes and directories in place of files of a run: a message, and nobody waits for a writer."""

import os

import pytest

from bnpstream.storage import RunError, read_config, read_names, read_tensors
from bnpstream.storage.files import writer_of
from bnpstream.storage.logs import JsonLines, Mark, Tail, read_logged
from bnpstream.storage.order import OrderLog


@pytest.fixture(params=[os.mkfifo, os.mkdir])
def make(request):
    return request.param


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("config.json", lambda path: read_config(path.parent)),
        ("features.json", lambda path: read_names(path.parent)),
        ("state.safetensors", read_tensors),
        ("trace.jsonl", JsonLines),
        ("lineage.jsonl", lambda path: list(read_logged(path, Mark(0, 10)))),
        ("order.jsonl", OrderLog),
    ],
)
def test_what_is_no_file_is_named(tmp_path, make, name, read):
    make(tmp_path / name)
    with pytest.raises(RunError, match=rf"{name}: is not a file"):
        read(tmp_path / name)


def test_those_who_only_look_see_nothing(tmp_path, make):
    for name in ("lock", "trace.jsonl"):
        make(tmp_path / name)
    assert writer_of(tmp_path) is None
    assert Tail(tmp_path / "trace.jsonl").read() == (False, [])
