"""Readers of a run directory see what its writer does, and never stand in its way."""

import os
import threading
import time

import pytest

pytest.importorskip("starlette", reason="starlette is missing: pip install 'bnpstream[serve]'")

from bnpstream.runs.options import Pace
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.serve.watch import Watch
from bnpstream.storage.directory import checkpoint_path
from bnpstream.storage.files import locked, writer_of
from bnpstream.storage.logs import JsonLines, Tail
from serving import fit, text_records, wait_for, write_lines


def test_a_tail_reads_every_record_once_across_segments(tmp_path):
    path = tmp_path / "trace.jsonl"
    tail = Tail(path)
    assert tail.read() == (False, [])
    log = JsonLines(path, rotate_bytes=50)
    found = []
    for i in range(40):
        log.append([{"i": i}])
        if i % 3 == 0:
            log.flush()
        if i % 7 == 0:
            is_cut, records = tail.read()
            assert not is_cut
            found += records
    log.close()
    found += tail.read()[1]
    assert found == [{"i": i} for i in range(40)]


def test_a_tail_notices_that_a_log_was_cut(tmp_path):
    path = tmp_path / "trace.jsonl"
    log = JsonLines(path)
    log.append([{"i": 0}])
    mark = log.sync()
    log.append([{"i": 1}, {"i": 2}])
    log.close()
    tail = Tail(path)
    assert len(tail.read()[1]) == 3
    log = JsonLines(path, mark)  # goes on from its checkpoint, and is longer than before
    log.append([{"i": 10 * i} for i in range(1, 9)])
    log.flush()
    is_cut, records = tail.read()
    assert is_cut
    assert records == [{"i": 0}, *({"i": 10 * i} for i in range(1, 9))]
    assert tail.read() == (False, [])
    log.close()


def test_a_tail_may_begin_near_the_end_and_leaves_half_lines(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(f'{{"i": {i}}}\n' for i in range(100)) + '{"i": 1')
    tail = Tail(path, most_bytes=40)
    records = tail.read()[1]
    assert records[-1] == {"i": 99}
    assert 1 <= len(records) <= 4
    with path.open("a") as file:
        file.write("00}\n")
    assert tail.read() == (False, [{"i": 100}])


def test_looking_for_a_writer_keeps_none_out(tmp_path):
    (tmp_path / "lock").touch()
    done = threading.Event()

    def look():
        while not done.is_set():
            writer_of(tmp_path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(300):
            with locked(tmp_path):
                pass
    finally:
        done.set()
        for looker in lookers:
            looker.join()


def test_a_quiet_stream_is_saved_and_seen(tmp_path):
    source = write_lines(tmp_path / "feed.jsonl", text_records(0, 130))
    feed = start(tmp_path / "run", RunOptions((str(source),), follow=True))
    interrupts = Interrupts()
    pace = Pace(checkpoint_seconds=0.0)
    done = threading.Thread(target=lambda: feed.run(pace, interrupts, lambda status: None))
    done.start()
    watch = Watch(tmp_path / "run")

    def seen():
        watch.look()
        watch.load()
        return watch.snapshot is not None and watch.snapshot.about.records

    try:
        wait_for(lambda: seen() == 130)
        write_lines(source, text_records(130, 7), "a")  # too few for anything but the quiet
        wait_for(lambda: seen() == 137)
        assert watch.now.state in ("learning", "quiet")
        assert watch.records_saved() == 137
    finally:
        interrupts.requested = True
        feed.source.stop()
        done.join()
        feed.close()
    watch.look()
    assert watch.now.rows == 137
    assert watch.now.writer is None


def test_now_is_what_the_trace_or_a_later_checkpoint_says(tmp_path):
    run = fit(write_lines(tmp_path / "feed.jsonl", text_records(0, 150)), tmp_path / "run")
    watch = Watch(run)
    watch.look()
    assert watch.births == []  # they are of the past
    assert watch.load()
    assert not watch.load()
    watch.look()
    assert (watch.now.state, watch.now.rows, watch.now.records) == ("finished", 150, 150)
    assert watch.now.events["birth"] >= 3


def traced(rows, seconds=0.0, **more):
    """Return a record of the trace, some seconds ago."""
    record = {"rows": rows, "records": rows, "clusters": 1, "evidence_per_row": None, **more}
    return record | {"seconds": 1.0, "time": time.time() - seconds}


def test_a_run_that_goes_on_from_a_checkpoint_is_seen_as_it_is(tmp_path):
    """What a killed process had traced after its last checkpoint is cut off."""
    trace, watch = tmp_path / "trace.jsonl", Watch(tmp_path)
    with locked(tmp_path):
        write_lines(trace, [traced(150), traced(170)])
        watch.look()
        assert (watch.now.state, watch.now.rows) == ("learning", 170)
        trace.write_text("")
        watch.look()
        assert (watch.now.state, watch.now.rows) == ("quiet", 0)
        write_lines(trace, [traced(150)])
        watch.look()
        assert (watch.now.state, watch.now.rows) == ("learning", 150)


def test_a_lag_that_changes_is_no_learning(tmp_path):
    trace, watch = tmp_path / "trace.jsonl", Watch(tmp_path)
    with locked(tmp_path):
        write_lines(trace, [traced(5, 60.0, lag={"news/0": 0}), traced(5, lag={"news/0": 7})])
        watch.look()
        assert (watch.now.state, watch.now.lag) == ("quiet", {"news/0": 7})


def test_a_second_checkpoint_is_loaded_at_once_and_later_ones_in_turn(tmp_path):
    source = write_lines(tmp_path / "feed.jsonl", text_records(0, 120))
    watch = Watch(fit(source, tmp_path / "run"))
    found = []
    for i in range(3):
        os.utime(checkpoint_path(watch.folder), (i, i))
        found.append(watch.load())
    assert found == [True, True, False]
