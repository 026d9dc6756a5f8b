"""Sources that are no files: a broker with two partitions, run by all that runs files."""

import json
import os
import signal
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from broker import TOPICS
from typer.testing import CliRunner

from bnpstream.cli import app
from bnpstream.runs import read_ahead
from bnpstream.runs.feed import TooManyRejectsError
from bnpstream.runs.options import ModelOptions, OptionError, Pace
from bnpstream.runs.overview import Run
from bnpstream.runs.score import predict, source_for
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.sources import open_source
from bnpstream.storage import RunError, read_checkpoint

NAME = "inmemory://sizes"
MODEL = ModelOptions(prefix_rows=20)
HUGE = 1e308
"""A number that no Gaussian takes."""


@pytest.fixture(autouse=True)
def registered(tmp_path, monkeypatch):
    """Register the broker as an installed package would."""
    about = tmp_path / "site" / "broker-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broker\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[bnpstream.sources]\ninmemory = broker:open_broker\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    TOPICS.clear()


@pytest.fixture
def topic():
    """Return a topic that is complete, with messages that cannot be used."""
    values = np.random.default_rng(3).normal(size=90).tolist()
    values[7], values[30], values[31] = None, HUGE, None
    TOPICS[NAME].write(values)
    return TOPICS[NAME].end()


@pytest.fixture
def whole(topic, tmp_path_factory):
    """Return the run of the whole topic, which is made once."""
    folder = tmp_path_factory.getbasetemp() / "whole topic"
    if not folder.exists():
        run(folder)
    return folder


def run(folder, *, resume=False, names=(NAME,), interrupts=None, after=lambda status: None, **pace):
    options = RunOptions(() if resume and names == (NAME,) else names, model=MODEL)
    feed = start(folder, options, resume=resume)
    with closing(feed), interrupts or Interrupts() as interrupts:
        return feed, feed.run(Pace(**pace), interrupts, after)


def interrupted_at(interrupts, n_records):
    """Return what asks for an end after so many records."""

    def after(status):
        interrupts.requested = status.records >= n_records

    return after


def bits(folder):
    found = read_checkpoint(folder)
    timeless = {k: v for k, v in found.document.items() if k not in ("seconds", "marks")}
    return {k: v.tobytes() for k, v in found.arrays.items()}, timeless


def rejects(folder):
    return [json.loads(line) for line in (folder / "rejects.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("batch_rows", [1, 7, 1024])
@pytest.mark.parametrize("stops", [[5], [21, 33, 34]])
def test_a_run_that_was_interrupted_ends_with_the_same_bits(tmp_path, whole, batch_rows, stops):
    for n_records in stops:
        interrupts, resume = Interrupts(), (tmp_path / "parts").exists()
        after = interrupted_at(interrupts, n_records)
        run(tmp_path / "parts", resume=resume, interrupts=interrupts, after=after, batch_rows=3)
    feed, done = run(tmp_path / "parts", resume=True, batch_rows=batch_rows)
    assert done
    assert (feed.records, feed.n_rows) == (90, 87)
    assert feed.position == {"records": 90, "offsets": [45, 45]}
    assert bits(tmp_path / "parts") == bits(whole)
    assert rejects(tmp_path / "parts") == rejects(whole)
    assert feed.source.closed


def test_positions_are_committed_when_they_are_on_disk(tmp_path, topic):
    on_disk = []
    topic.on_commit = lambda position: on_disk.append(
        read_checkpoint(tmp_path / "run").document["position"]
    )
    run(tmp_path / "run", batch_rows=10, checkpoint_rows=1, checkpoint_seconds=3600)
    assert on_disk == topic.committed
    offsets = [position["offsets"] for position in topic.committed]
    assert offsets[-1] == [45, 45]
    assert len(offsets) > 5
    assert offsets == sorted(offsets)


def test_rejects_say_where_they_are(tmp_path, topic):
    run(tmp_path / "run")
    found = [(one["record"], one["place"], one["reason"][:22]) for one in rejects(tmp_path / "run")]
    assert found == [
        (7, {"partition": 1, "offset": 3}, "no number"),
        (30, {"partition": 0, "offset": 15}, "column 0 is 1e+308: ce"),
        (31, {"partition": 1, "offset": 15}, "no number"),
    ]
    assert {one["source"] for one in rejects(tmp_path / "run")} == {NAME}
    assert not any("line" in one for one in rejects(tmp_path / "run"))
    with pytest.raises(TooManyRejectsError, match=r"sizes, partition 1, offset 15: no number"):
        run(tmp_path / "strict", max_rejects=1)


def test_a_source_that_cannot_go_on_says_so(tmp_path, topic):
    interrupts, out = Interrupts(), tmp_path / "run"
    _, done = run(out, batch_rows=30, interrupts=interrupts, after=interrupted_at(interrupts, 1))
    assert not done
    with pytest.raises(RunError, match=r"reads inmemory://sizes, not inmemory://others \(paths\)"):
        run(out, resume=True, names=("inmemory://others",))
    topic.low[1] = 40
    with pytest.raises(RunError, match=r"cannot continue .*partition 1 begins at offset 40, .*15"):
        run(out, resume=True)
    topic.low.append(0)
    with pytest.raises(RunError, match="has 3 partitions, and had 2: begin another run"):
        run(out, resume=True)


def test_several_passes_need_a_source_that_can_be_read_again(tmp_path, topic):
    options = RunOptions((NAME,), model=ModelOptions(passes=2))
    with pytest.raises(OptionError, match=r"--passes 2 .*sizes cannot be read again"):
        start(tmp_path / "run", options)
    assert not (tmp_path / "run").exists()
    found = CliRunner().invoke(app, ["fit", NAME, "--passes", "2"])
    assert (found.exit_code, "inmemory://sizes cannot be read again" in found.stderr) == (2, True)


def test_a_source_that_waits_is_woken_and_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(read_ahead, "PATIENCE", 60.0)
    topic = TOPICS[NAME]
    topic.write(np.random.default_rng(0).normal(size=40).tolist())

    def ask():
        while topic.n_readers == 0 or not (seen and seen[-1].records == 40):
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    seen = []
    thread = threading.Thread(target=ask)
    thread.start()
    feed, done = run(tmp_path / "run", after=seen.append)  # the source waits until it is woken
    thread.join()
    assert not done
    assert topic.n_readers == 0
    assert topic.committed == [feed.position] == [{"records": 40, "offsets": [20, 20]}]
    topic.write([0.5, 0.25])
    topic.end()
    feed, done = run(tmp_path / "run", resume=True)
    assert (done, feed.records) == (True, 42)


def test_a_batch_may_be_cut_anywhere(topic):
    source = open_source(NAME)
    [(batch, end)] = source.batches(1024)
    for number in range(91):
        head = batch.between(0, number)
        position = source.after(source.beginning(), head)
        assert position["records"] == number
        rest = [records for records, _ in source.batches(1024, position)]
        numbers = [n for part in [head, *rest] for n in part.numbers]
        assert numbers == batch.numbers
        assert sum(len(part.rejects) for part in [head, *rest]) == len(batch.rejects)
    assert position == end


def test_commands_take_what_is_registered(tmp_path, topic):
    out = tmp_path / "run"
    options = ["--prefix-rows", "20"]
    found = CliRunner().invoke(app, ["fit", NAME, "--out", str(out), "--json", *options])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["records"] == 90
    config = json.loads((out / "config.json").read_text())
    assert config["source"]["paths"] == [NAME]
    fitted = Run(out)
    assert fitted.describe().records == 90
    with source_for(fitted, [NAME]) as source:
        parts = list(predict(fitted, source))
    assert sum(len(found) for _, found in parts) == 87
    refused = [str(reject.place) for records, _ in parts for reject in records.rejects]
    assert f"{NAME}, partition 0, offset 15" in refused


def test_unknown_schemes_name_the_known_ones():
    there = "inmemory://, kafka://, nats://, postgresql://, redis://"
    message = rf"nothing reads letters://; known are {there}: .*that reads letters://"
    with pytest.raises(ValueError, match=message):
        open_source("letters://alpha")
    with pytest.raises(ValueError, match="sources of several kinds"):
        open_source([NAME, "a.txt"])


def test_files_are_opened_without_looking_for_others(tmp_path, monkeypatch):
    def asked(**group):
        raise AssertionError("entry points were asked for")

    monkeypatch.setattr("importlib.metadata.entry_points", asked)
    (tmp_path / "a.txt").write_text("some words\n")
    open_source(str(tmp_path / "a.txt")).close()
    with pytest.raises(AssertionError, match="asked for"):
        open_source(NAME)
