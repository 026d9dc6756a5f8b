"""Feeding: what the model refuses, in any batches, and when checkpoints are made."""

import json
import time

import numba
import numpy as np
import pytest

from bnpstream.engine import Stream
from bnpstream.runs.feed import Feed, TooManyRejectsError
from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.storage import read_checkpoint

HUGE = "1e308"
"""A number that no Gaussian takes."""


QUICK = {"prefix_rows": 20}


def write_table(path, cells):
    path.write_text("size\n" + "".join(f"{cell}\n" for cell in cells))
    return str(path)


def numbers(n, bad, seed=0):
    cells = [f"{x:.4f}" for x in np.random.default_rng((1, seed)).normal(size=n)]
    for i in bad:
        cells[i] = HUGE
    return cells


def feed_all(folder, paths, model=None, resume=False, **pace):
    """Feed files to a run; return the feed."""
    options = RunOptions(tuple(paths), model=model or ModelOptions(**QUICK))
    feed = start(folder, options, resume=resume)
    assert isinstance(feed, Feed)
    with feed.writer, Interrupts() as interrupts:
        assert feed.run(Pace(**pace), interrupts, lambda _: None)
    return feed


def rejects(folder):
    return [json.loads(line) for line in (folder / "rejects.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("bad", [[0], [3, 4], [19, 20, 21], [59], [0, 1, 2, 30, 57]])
def test_what_the_model_refuses_does_not_depend_on_batches(tmp_path, bad):
    cells = numbers(60, bad)
    cells[10] = "no number"
    path = write_table(tmp_path / "table.csv", cells)
    for rows in (1, 7, 1024):
        feed_all(tmp_path / f"by-{rows}", [path], batch_rows=rows)
    found = [read_checkpoint(tmp_path / f"by-{rows}") for rows in (1, 7, 1024)]
    for other in found[1:]:
        for name, array in found[0].arrays.items():
            assert array.tobytes() == other.arrays[name].tobytes(), name
        assert other.document["journal"] == found[0].document["journal"]
    log = rejects(tmp_path / "by-1")
    assert log == rejects(tmp_path / "by-7") == rejects(tmp_path / "by-1024")
    assert [reject["record"] for reject in log] == sorted([*bad, 10])
    assert [reject["line"] for reject in log] == [reject["record"] + 2 for reject in log]


def test_the_file_of_a_record_that_the_model_refuses_is_named(tmp_path):
    one = write_table(tmp_path / "one.csv", numbers(30, []))
    other = write_table(tmp_path / "other.csv", numbers(30, [1], seed=1))
    feed_all(tmp_path / "run", [one, other])
    (reject,) = rejects(tmp_path / "run")
    assert (reject["source"], reject["line"], reject["record"]) == (other, 3, 31)


def test_all_rejects_of_a_batch_count_for_the_budget(tmp_path):
    cells = numbers(60, [40, 45, 50])
    cells[30] = "no number"
    path = write_table(tmp_path / "table.csv", cells)
    assert feed_all(tmp_path / "four", [path], max_rejects=4).n_rows == 56
    with pytest.raises(TooManyRejectsError, match=r"line 52: .*1e\+308.*at most 3 may be invalid"):
        feed_all(tmp_path / "three", [path], max_rejects=3)


def test_a_first_batch_with_one_good_record_is_not_refused(tmp_path):
    path = write_table(tmp_path / "table.csv", ["no number", *numbers(60, [0, 1])])
    feed = feed_all(tmp_path / "run", [path], batch_rows=4)
    assert (feed.n_rows, feed.journal.n_rejects) == (58, 3)


def test_halved_batches_are_timed_once(tmp_path):
    path = write_table(tmp_path / "table.csv", numbers(200, range(50, 200, 7)))
    feed = feed_all(tmp_path / "run", [path])
    assert feed.seconds_in_pass <= feed.status().seconds


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compilation_is_not_in_the_time(tmp_path):
    """Loops that are not cached take longer to compile than a small file takes to learn."""
    began = time.perf_counter()
    feed = start(tmp_path / "run", RunOptions((write_table(tmp_path / "a.csv", numbers(9, [])),)))
    assert feed.seconds_compiling == 0.0
    assert numba.njit(lambda x: 2 * x)(2) == 4
    assert feed.seconds_compiling > 0.0
    assert feed.status().seconds + feed.seconds_compiling <= time.perf_counter() - began
    feed.close()


def test_sweeps_at_the_end_are_saved_at_the_pace_of_checkpoints(tmp_path, monkeypatch):
    path = write_table(tmp_path / "table.csv", numbers(60, []))
    saved = []
    original = Feed.checkpoint

    def checkpoint(feed):
        saved.append(feed.finished)
        original(feed)

    monkeypatch.setattr(Feed, "checkpoint", checkpoint)
    model = ModelOptions(**QUICK, passes=5)
    hour = {"checkpoint_seconds": 3600.0}  # compiling alone may take longer than by default
    feed_all(tmp_path / "seldom", [path], model, **hour)
    assert saved == [True]
    saved.clear()
    monkeypatch.setattr("bnpstream.runs.feed.SHARE_OF_CHECKPOINTS", np.inf)
    feed_all(tmp_path / "often", [path], model, checkpoint_seconds=0.0)
    assert len(saved) > 3


def test_no_throw_away_model_is_made_if_nobody_asks(tmp_path, monkeypatch):
    def made(model):
        raise AssertionError("a model of the prefix was made")

    monkeypatch.setattr(Stream, "_as_if_ended", made)
    path = write_table(tmp_path / "table.csv", numbers(60, []))
    assert feed_all(tmp_path / "run", [path], batch_rows=7).n_rows == 60
