"""Standard streams that are closed, broken or narrow, and signals before a job takes them over."""

import io
import os
import signal
import sys

import pytest
import typer

from bnpstream.cli.errors import reported
from bnpstream.cli.output import prepare_streams
from bnpstream.cli.page import Page


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_streams_that_were_closed_lead_nowhere(monkeypatch, name):
    monkeypatch.setattr(sys, name, None)
    prepare_streams()
    with getattr(sys, name) as stream:
        assert stream.fileno() > 0
        if name == "stdin":
            assert stream.read() == ""
        else:
            stream.buffer.write(b"to nobody")


def test_any_word_can_be_written_to_a_terminal_that_knows_ascii_alone(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    prepare_streams()
    Page().print("snöw")
    sys.stdout.flush()
    assert sys.stdout.buffer.getvalue() == b"sn\\xf6w\n"


@pytest.mark.parametrize("error", [BrokenPipeError, KeyboardInterrupt])
def test_interrupts_are_no_failures(monkeypatch, error):
    monkeypatch.setattr("bnpstream.cli.errors.close_pipe", lambda: None)
    with pytest.raises(typer.Exit) as found, reported():
        raise error
    assert found.value.exit_code == 130


def test_a_reader_that_has_gone_is_no_failure(monkeypatch):
    monkeypatch.setattr("bnpstream.cli.errors.close_pipe", lambda: None)
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(typer.Exit) as found, reported():
        Page(file=os.fdopen(writing, "w", closefd=False)).print("to nobody")
    os.close(writing)
    assert found.value.exit_code == 130


def test_sigterm_is_heeded_before_a_job_runs():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(typer.Exit) as found, reported():
        os.kill(os.getpid(), signal.SIGTERM)
    assert found.value.exit_code == 130
    assert signal.getsignal(signal.SIGTERM) is before
