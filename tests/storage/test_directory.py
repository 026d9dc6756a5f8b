"""Checkpoints are there whole or not at all, and the files of JSON lines belong to them."""

import json
import os

import numpy as np
import pytest

from bnpstream.storage import (
    RunError,
    RunWriter,
    Tensors,
    checkpoint_path,
    marks_of,
    read_checkpoint,
    read_config,
    read_log,
    read_tensors,
    write_tensors,
)
from bnpstream.storage.logs import JsonLines, Mark, full_segments, read_logged

ARRAYS = {"masses": np.arange(5.0), "none": np.zeros((0, 3), np.int32), "yes": np.ones(2, bool)}


def checkpoint(writer, rows):
    writer.checkpoint(Tensors(ARRAYS | {"rows": np.array([rows])}, {"rows": rows}))


def test_arrays_and_document_come_back(tmp_path):
    write_tensors(tmp_path / "state", Tensors(ARRAYS, {"rows": 3}))
    found = read_tensors(tmp_path / "state")
    assert found.document == {"format": 3, "rows": 3}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype


def test_the_same_content_is_the_same_file(tmp_path):
    for name in ("one", "other"):
        write_tensors(tmp_path / name, Tensors(ARRAYS, {"rows": 3, "a": [1, 2]}))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_every_cut_and_every_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "state"
    write_tensors(path, Tensors(ARRAYS, {"rows": 3}))
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(RunError, match="is damaged"):
            read_tensors(path)
    for place in range(len(whole) - 60, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(RunError, match="is damaged"):
            read_tensors(path)


def test_a_damaged_checkpoint_says_how_to_go_back_to_the_one_before(tmp_path):
    with RunWriter.create(tmp_path, {"command": "fit"}) as writer:
        checkpoint(writer, 10)
        checkpoint(writer, 20)
    state = tmp_path / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-3])
    with pytest.raises(RunError, match=r"at row 10, is intact: remove state\.safetensors"):
        read_checkpoint(tmp_path)
    state.unlink()
    assert read_checkpoint(tmp_path).document["rows"] == 10


def test_a_damaged_first_checkpoint_leaves_nothing_to_go_back_to(tmp_path):
    with RunWriter.create(tmp_path, {}) as writer:
        checkpoint(writer, 10)
    (tmp_path / "state.safetensors").write_bytes(b"")
    with pytest.raises(RunError, match="no intact checkpoint before it: start again"):
        read_checkpoint(tmp_path)


def test_a_checkpoint_that_is_being_replaced_is_read_all_the_same(tmp_path, monkeypatch):
    with RunWriter.create(tmp_path, {}) as writer:
        checkpoint(writer, 10)

        def first_look(folder):
            """Find the file just before it is renamed."""
            monkeypatch.undo()
            path = checkpoint_path(folder)
            path.rename(folder / "previous.safetensors")
            return path

        monkeypatch.setattr("bnpstream.storage.directory.checkpoint_path", first_look)
        assert read_checkpoint(tmp_path).document["rows"] == 10


def test_a_run_without_a_checkpoint_says_so(tmp_path):
    RunWriter.create(tmp_path, {}).close()
    with pytest.raises(RunError, match="no checkpoint yet: it was stopped"):
        read_checkpoint(tmp_path)


def test_later_formats_are_refused(tmp_path):
    with RunWriter.create(tmp_path, {}) as writer:
        checkpoint(writer, 10)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "format": 4}))
    with pytest.raises(RunError, match="has format 4, but this version reads 1 to 3: install"):
        read_config(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_a_broken_config_is_named(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match=r"config\.json"):
        read_config(tmp_path)


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(RunError, match="no such run directory"):
        read_config(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"not a run directory, as it has no config\.json"):
        read_config(tmp_path)


def test_a_second_writer_is_kept_out(tmp_path):
    with RunWriter.create(tmp_path, {}):
        with pytest.raises(RunError, match=f"another process .number {os.getpid()}. is writing"):
            RunWriter.resume(tmp_path, {})
        with pytest.raises(RunError, match="already holds a run: give --resume"):
            RunWriter.create(tmp_path, {})
    RunWriter.resume(tmp_path, {}).close()


def test_logs_are_cut_back_to_the_checkpoint(tmp_path):
    with RunWriter.create(tmp_path, {}) as writer:
        writer.logs["trace"].append([{"n": 1}, {"n": 2}])
        checkpoint(writer, 10)
        writer.logs["trace"].append([{"n": 3}])
    document = read_checkpoint(tmp_path).document
    assert [record["n"] for record in read_log(tmp_path, "trace", marks_of(document))] == [1, 2]
    with RunWriter.resume(tmp_path, marks_of(document)) as writer:
        writer.logs["trace"].append([{"n": 4}])
        checkpoint(writer, 20)
    document = read_checkpoint(tmp_path).document
    assert [record["n"] for record in read_log(tmp_path, "trace", marks_of(document))] == [1, 2, 4]


def test_a_log_shorter_than_the_checkpoint_says_is_named(tmp_path):
    with RunWriter.create(tmp_path, {}) as writer:
        writer.logs["lineage"].append([{"n": 1}])
        checkpoint(writer, 10)
    (tmp_path / "lineage.jsonl").write_text("")
    with pytest.raises(RunError, match=r"lineage\.jsonl: has 0 bytes, but the checkpoint"):
        RunWriter.resume(tmp_path, marks_of(read_checkpoint(tmp_path).document))


def test_what_killed_writers_left_is_swept_up(tmp_path):
    with RunWriter.create(tmp_path, {}) as writer:
        checkpoint(writer, 10)
    left = (".config.json.partial", ".state.safetensors.7.partial", ".tmpXyZ12A")
    for name in (*left, "state.safetensors.new", ".report.html.7.partial"):
        (tmp_path / name).write_bytes(b"half")
    RunWriter.resume(tmp_path, marks_of(read_checkpoint(tmp_path).document)).close()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        ".report.html.7.partial",  # somebody may be writing it: a report takes no lock
        "config.json",
        "lock",
        "state.safetensors",
        "trace.jsonl",
        "lineage.jsonl",
        "rejects.jsonl",
    }


def test_what_others_left_is_not_touched(tmp_path):
    others = (".tmp-notes", ".mine.partial", "data.new", "page.html")
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".tmpfolder").mkdir()
    RunWriter.create(tmp_path, {}).close()
    assert all((tmp_path / name).read_text() == "mine" for name in others)


@pytest.mark.parametrize("name", ["state.safetensors", "previous.safetensors", "rejects.jsonl"])
def test_no_run_is_begun_over_what_is_left_of_another(tmp_path, name):
    (tmp_path / name).write_text("much work")
    with pytest.raises(RunError, match=rf"has a {name} but no config\.json: restore"):
        RunWriter.create(tmp_path, {})
    assert (tmp_path / name).read_text() == "much work"


def test_a_run_is_begun_again_if_it_was_killed_at_once(tmp_path):
    RunWriter.create(tmp_path, {}).close()
    (tmp_path / "config.json").rename(tmp_path / ".config.json.partial")
    RunWriter.create(tmp_path, {}).close()


def numbers(path, mark):
    return [record["n"] for record in read_logged(path, mark)]


@pytest.mark.parametrize("n_before", [0, 1, 5, 12, 40])
@pytest.mark.parametrize("n_after", [0, 3, 40])
def test_segments_rotate_and_are_cut_back(tmp_path, n_before, n_after):
    path = tmp_path / "trace.jsonl"
    log = JsonLines(path, rotate_bytes=50)
    for n in range(n_before):
        log.append([{"n": n}])
    mark = log.sync()
    for n in range(n_after):
        log.append([{"n": -n}])
    log.sync()
    assert numbers(path, mark) == list(range(n_before))
    log.close()
    again = JsonLines(path, mark, rotate_bytes=50)
    for n in range(n_before, 60):
        again.append([{"n": n}])
    assert numbers(path, again.sync()) == list(range(60))
    assert len(full_segments(path)) >= 5
    again.close()


def test_old_segments_are_forgotten_unless_a_checkpoint_needs_them(tmp_path):
    path = tmp_path / "trace.jsonl"
    log = JsonLines(path, rotate_bytes=50, keep=2)
    for n in range(60):
        log.append([{"n": n}])
    mark = log.sync()
    log.forget(Mark(1, 0))
    assert full_segments(path)[0][0] == 1
    log.forget(mark)
    assert len(full_segments(path)) == 2
    found = numbers(path, mark)
    assert found == list(range(found[0], 60))
    log.close()
