"""``bnpstream fit --jobs``: threads that learn blocks of rows side by side."""

import json
import random

import pytest

from bnpstream import DocumentMixture, StreamingMixture
from bnpstream.runs.feed import Feed
from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.sources import Options
from bnpstream.storage import read_tensors
from commands import run, run_json

N, BLOCK = 1200, 150
FIXED = ("--hash-bits", 8, "--prefix-rows", 100)
GROWING = ("--prefix-rows", 100)
TIMES = ("seconds", "marks")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Return texts about ten topics, of which some records are broken."""
    path, rng = tmp_path_factory.mktemp("texts") / "texts.jsonl", random.Random(9)
    lines = []
    for _ in range(N):
        topic = 12 * rng.randrange(10)
        text = " ".join(f"w{topic + rng.randrange(12)}" for _ in range(rng.randrange(6, 25)))
        record = json.dumps({"text": text})
        lines.append(record if rng.random() > 0.02 else record[:-2])
    path.write_text("\n".join(lines) + "\n")
    return path


def kept(folder):
    """Return what a run has learnt and noted, without when."""
    tensors = read_tensors(folder / "state.safetensors")
    document = {name: x for name, x in tensors.document.items() if name not in TIMES}
    logs = [(folder / f"{name}.jsonl").read_bytes() for name in ("lineage", "rejects")]
    return document, {name: x.tobytes() for name, x in tensors.arrays.items()}, logs


@pytest.mark.parametrize("model", [FIXED, GROWING], ids=["fixed", "growing"])
def test_neither_jobs_nor_batches_matter(texts, tmp_path, model):
    options = (*model, "--block-rows", BLOCK, "-q")
    told = run_json("fit", texts, "--out", tmp_path / "two", *options, "--jobs", 2)
    assert (told["staleness"], told["block_rows"]) == (1, BLOCK)
    run("fit", texts, "--out", tmp_path / "one", *options, "--staleness", 1, "--batch-rows", 64)
    run("fit", texts, "--out", tmp_path / "many", *options, "--jobs", 3, "--batch-rows", 333)
    assert kept(tmp_path / "two") == kept(tmp_path / "one") == kept(tmp_path / "many")
    config = json.loads((tmp_path / "two" / "config.json").read_text())["model"]
    assert (config["staleness"], config["block_rows"]) == (1, BLOCK)
    loaded = (StreamingMixture if model is FIXED else DocumentMixture).load(tmp_path / "two")
    assert (loaded.staleness, loaded.block_rows, loaded.learn_threads) == (1, BLOCK, 1)
    assert loaded.n_samples_seen_ == told["rows"]


def test_passes_by_threads(texts, tmp_path):
    options = (*FIXED, "--block-rows", BLOCK, "--passes", 3, "-q")
    run("fit", texts, "--out", tmp_path / "two", *options, "--jobs", 2)
    run("fit", texts, "--out", tmp_path / "one", *options, "--staleness", 1)
    assert kept(tmp_path / "two") == kept(tmp_path / "one")


def test_the_journal_is_that_of_the_serial_pass(texts, tmp_path):
    """Where there is one block only, nothing differs but what is said of it."""
    run("fit", texts, "--out", tmp_path / "serial", *FIXED, "-q")
    run("fit", texts, "--out", tmp_path / "block", *FIXED, "--jobs", 2, "-q")
    (one, arrays, logs), (other, *rest) = kept(tmp_path / "serial"), kept(tmp_path / "block")
    assert [arrays, logs] == rest
    assert one["journal"] == other["journal"]


def test_a_run_that_was_stopped_goes_on_with_any_number_of_jobs(texts, tmp_path):
    options = (*FIXED, "--block-rows", BLOCK)
    run("fit", texts, "--out", tmp_path / "whole", *options, "--jobs", 2, "-q")
    model = ModelOptions(prefix_rows=100, staleness=1, block_rows=BLOCK)
    about = RunOptions((str(texts),), Options(hash_bits=8), model)
    for stop in (90, 500, 610):
        out = tmp_path / f"{stop}"
        feed = start(out, about)
        feed.model.learn_by(2)
        with Interrupts() as interrupts:

            def stopped(status, stop=stop, interrupts=interrupts):
                interrupts.requested = interrupts.requested or status.rows >= stop

            assert not feed.run(Pace(batch_rows=10), interrupts, stopped)
        feed.close()
        assert "cluster" in run("clusters", out)  # a throw-away model of what waits answers
        run("fit", "--out", out, "--resume", "--jobs", 3, "-q")
        assert kept(out)[1:] == kept(tmp_path / "whole")[1:]
        assert kept(out)[0]["journal"] == kept(tmp_path / "whole")[0]["journal"]


def test_progress_does_not_absorb_what_waits(texts, tmp_path, monkeypatch):
    feed = start(
        None,
        RunOptions((str(texts),), Options(hash_bits=8), ModelOptions(staleness=1, block_rows=400)),
    )
    monkeypatch.setattr(type(feed.model.stream), "answering", property(lambda self: 1 / 0))
    with Interrupts() as interrupts:
        assert feed.run(Pace(batch_rows=50), interrupts, lambda status: None)
    assert isinstance(feed, Feed)
    feed.close()


def test_what_does_not_go_together_is_refused(texts, tmp_path):
    serial = tmp_path / "serial"
    run("fit", texts, "--out", serial, *FIXED, "-q")
    said = run("fit", "--out", serial, "--resume", "--jobs", 2, code=2)
    assert "--jobs 2: this run was started without --jobs" in said
    threads = tmp_path / "threads"
    run("fit", texts, "--out", threads, *FIXED, "--jobs", 2, "-q")
    said = run("fit", "--out", threads, "--resume", "--staleness", 3, code=1)
    assert "--staleness 3: this run was started with 1" in said
    for options, part in [
        (("--jobs", 2, "--revisit", 50), "staleness=1"),
        (("--jobs", 2, "--half-life", 50), "half_life=50.0"),
        (("--jobs", 2, "--passes", 3, "--max-clusters", 9), "max_clusters=9"),
        (("--jobs", 2, "--staleness", 0), "--jobs 2"),
        (("--block-rows", 50), "--block-rows needs --jobs 2 or more"),
        (("--jobs", 2, "--dask", "local:1"), "--jobs and --block-rows set up local threads"),
    ]:
        assert part in run("fit", texts, *FIXED, *options, code=2)
