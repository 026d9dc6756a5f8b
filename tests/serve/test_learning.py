"""Records that are posted: each is learnt once, whatever is killed, to the bits of a file run."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is missing: pip install 'bnpstream[serve]'")

from bnpstream.serve.api import RefusedError
from bnpstream.serve.inbox import NAME, Inbox
from bnpstream.storage import RunError, read_checkpoint
from bnpstream.storage.files import writer_of
from serving import PATIENCE, Served, fit, text_records, wait_for, write_lines


def lines(folder):
    return [json.loads(line) for line in (folder / NAME).read_bytes().splitlines() if line]


def test_a_record_that_is_sent_again_is_not_logged_again(tmp_path):
    inbox = Inbox(tmp_path / "run")
    assert inbox.append(text_records(0, 10)) == (10, 0, 10)
    assert inbox.append(text_records(5, 10)) == (5, 5, 15)
    assert inbox.append([{"id": "d3"}, {"id": 3}, {"id": 3}]) == (1, 2, 16)
    inbox.close()
    inbox = Inbox(tmp_path / "run")
    assert inbox.append(text_records(0, 15)) == (0, 15, 15)
    inbox.close()
    assert [line["id"] for line in lines(tmp_path / "run")] == [*(f"d{i}" for i in range(15)), 3]


@pytest.mark.parametrize(
    "bad", [{}, {"id": None}, {"id": 1.5}, {"id": True}, "text", 3, {"id": []}]
)
def test_a_record_without_an_id_is_refused_and_nothing_is_logged(tmp_path, bad):
    inbox = Inbox(tmp_path / "run")
    with pytest.raises(RefusedError, match="record 1"):
        inbox.append([{"id": 1}, bad])
    inbox.close()
    assert lines(tmp_path / "run") == []


def test_a_line_that_was_cut_off_is_ended_and_its_record_can_come_again(tmp_path):
    inbox = Inbox(tmp_path / "run")
    inbox.append([{"id": 1, "text": "a"}])
    inbox.close()
    path = tmp_path / "run" / NAME
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"id": 2, "te')
    inbox = Inbox(tmp_path / "run")
    assert path.stat().st_size > size  # never cut: a learner may have read it
    assert inbox.append([{"id": 2, "text": "b"}]) == (1, 0, 3)
    inbox.close()
    found = path.read_bytes().splitlines()
    assert found[1:] == [b'{"id": 2, "te', b'{"id":2,"text":"b"}']


def test_one_server_appends(tmp_path):
    inbox = Inbox(tmp_path / "run")
    with pytest.raises(RunError, match="another server"):
        Inbox(tmp_path / "run")
    inbox.close()


def test_a_run_of_something_else_is_left_alone(tmp_path):
    run = fit(write_lines(tmp_path / "feed.jsonl", text_records(0, 30)), tmp_path / "run")
    with pytest.raises(RunError, match="name a new directory"):
        Inbox(run)


def started(folder):
    """Start the command in a process of its own; return it and its address."""
    command = [sys.executable, "-m", "bnpstream", "serve", str(folder), "--learn", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    return process, Served(line.split(" at ")[1].split(" ")[0])


def until_saved(served, records):
    """Post records until a checkpoint has them: loops may have to be compiled before."""

    def saved():
        status, _, data = served.ask("/learn?ack=checkpoint", {"records": records})
        assert status in (200, 202), data
        return status == 200 and json.loads(data)

    return wait_for(saved)


def test_what_is_posted_is_learnt_once_though_all_is_killed(tmp_path):
    run = tmp_path / "run"
    process, served = started(run)
    try:
        first = served.json("/learn", {"records": text_records(0, 120)})
        assert first == {"logged": 120, "known": 0, "records": 120, "checkpoint": False}
        saved = until_saved(served, text_records(0, 120))
        assert saved == {"logged": 0, "known": 120, "records": 120, "checkpoint": True}
        assert int(writer_of(run)) not in (process.pid, os.getpid())
        served.json("/learn", {"records": text_records(120, 50)})
        process.kill()  # the learner notices, and ends
        process.wait(PATIENCE)
        process.stdout.close()
        wait_for(lambda: writer_of(run) is None)
        process, served = started(run)
        again = served.json("/learn", {"records": text_records(100, 100)})
        assert again == {"logged": 30, "known": 70, "records": 200, "checkpoint": False}
        assert until_saved(served, text_records(199, 1))["records"] == 200
        assert served.ask("/learn?ack=soon", {"records": [{"id": 1}]})[0] == 400
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert writer_of(run) is None
    whole = fit(write_lines(tmp_path / "all.jsonl", text_records(0, 200)), tmp_path / "whole")
    found, expected = read_checkpoint(run), read_checkpoint(whole)
    assert found.document["rows"] == 200
    for name in expected.arrays:
        if name.startswith(("state", "trend")):
            np.testing.assert_array_equal(found.arrays[name], expected.arrays[name], err_msg=name)


def test_a_server_whose_learner_dies_ends(tmp_path):
    process, served = started(tmp_path / "run")
    try:
        until_saved(served, text_records(0, 20))
        os.kill(int(writer_of(tmp_path / "run")), signal.SIGKILL)
        assert process.wait(PATIENCE) == 1
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
