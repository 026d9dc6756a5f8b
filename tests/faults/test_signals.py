"""Signals, pipes and growing files, with real processes."""

import json
import signal
import subprocess
import time

import pytest
from killing import command, forked, run_to_end, write_feed
from typer.testing import CliRunner

from bnpstream.cli import app
from bnpstream.storage import read_tensors

SOON, LONG = 300.0, 10.0
"""Seconds in which a process must do what it is asked to: loops may have to be compiled first."""


PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def start(*arguments):
    return forked(*arguments, **PIPES)


def wait_for(condition):
    """Wait until a condition holds."""
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def text(i):
    return json.dumps({"id": i, "text": ("rain wind snow", "bond stock yield")[i % 2]}).encode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_fit_that_follows_a_file_stops_with_a_checkpoint(tmp_path, number):
    feed, out = tmp_path / "feed.jsonl", tmp_path / "run"
    feed.write_bytes(b"\n".join(text(i) for i in range(130)) + b"\n")
    often = ("--checkpoint-rows", "1")
    process = start("fit", feed, "--out", out, "--follow", *often)
    wait_for((out / "state.safetensors").exists)
    with feed.open("ab") as file:
        file.write(text(130) + b"\n")
    wait_for(lambda: read_tensors(out / "state.safetensors").document["rows"] == 131)
    process.send_signal(number)
    output, errors = process.communicate(timeout=SOON)
    assert process.returncode == 130, errors
    assert b"interrupted" in output
    assert not read_tensors(out / "state.safetensors").document["finished"]
    run_to_end(("fit", "--out", out, "--resume"), seed=0, most_kills=0)
    assert read_tensors(out / "state.safetensors").document["rows"] == 131


def test_stream_answers_each_line_at_once(tmp_path):
    process = start("stream", "--out", tmp_path / "run", "--quiet")
    for i in range(3):
        process.stdin.write(text(i) + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert (answer["record"], answer["id"]) == (i, i)
        assert answer["provisional"]
    process.stdin.write(b"no json\n" + text(3) + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["record"] == 4
    process.stdin.write(b"\n".join(text(i) for i in range(4, 150)) + b"\n")
    process.stdin.close()
    answers = [json.loads(line) for line in process.stdout.read().splitlines()]
    assert [answer["id"] for answer in answers] == list(range(4, 150))
    assert "provisional" not in answers[-1]
    assert process.wait(SOON) == 0
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stream_closes_cleanly_while_it_waits(tmp_path, number):
    out = tmp_path / "run"
    process = start("stream", "--out", out)
    process.stdin.write(text(0) + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 0
    process.send_signal(number)
    process.wait(SOON)
    assert process.returncode == 130
    assert read_tensors(out / "state.safetensors").document["rows"] == 1
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_stream_closes_cleanly_when_nobody_reads_on(tmp_path):
    feed = tmp_path / "feed.jsonl"
    write_feed(feed, 3000, seed=1)
    with feed.open("rb") as stdin:
        words = command("stream", "--batch-rows", "16")  # whose end is an interpreter's own
        process = subprocess.Popen(words, **PIPES | {"stdin": stdin})
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait(SOON) == 130
    assert "the output was closed by its reader" in errors
    assert "Traceback" not in errors
    process.stderr.close()


def test_a_second_process_is_kept_out(tmp_path):
    out = tmp_path / "run"
    process = start("stream", "--out", out)
    process.stdin.write(text(0) + b"\n")
    process.stdin.flush()
    process.stdout.readline()
    other = start("stream", "--out", out, "--resume")
    _, errors = other.communicate(b"", timeout=SOON)
    assert other.returncode == 1
    assert f"another process (number {process.pid}) is writing" in errors.decode()
    process.stdin.close()
    assert process.wait(SOON) == 0
    process.stdout.close()
    process.stderr.close()


def test_an_interrupt_that_a_library_ignores_comes_again(tmp_path, monkeypatch):
    """Python only prints what is raised where nothing can catch it, as in a destructor."""

    class Deaf:
        def __del__(self):
            raise KeyboardInterrupt

    def interrupted(*_):
        Deaf()
        time.sleep(LONG)

    monkeypatch.setattr("bnpstream.runs.overview.Run.__init__", interrupted)
    (tmp_path / "run").mkdir()
    found = CliRunner().invoke(app, ["clusters", str(tmp_path / "run")])
    assert found.exit_code == 130
    assert "stopped" in found.stderr
