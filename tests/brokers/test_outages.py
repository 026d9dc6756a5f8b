"""Brokers that go away, on either side of a stream: nothing is lost, nothing is told twice."""

import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from feeds import bits, position, rows
from kafka_cluster import cluster, wait_for
from processes import Command, Stream, file_bits
from servers import free_port, running

from bnpstream.runs.read_ahead import AHEAD, read_ahead
from bnpstream.sources import open_source
from bnpstream.sources.options import Options
from bnpstream.storage import has_checkpoint

SCHEMES = ("kafka", "redis", "nats", "postgresql")
TROUBLE = "does not answer"
FOLLOWS = ("--follow", "--checkpoint-seconds", "0.2")


@contextmanager
def broker(scheme):
    """Run a broker that nobody else uses."""
    if scheme == "kafka":
        pytest.importorskip(
            "confluent_kafka", reason="no Kafka client: pip install 'bnpstream[kafka]'"
        )
        with cluster() as found:
            try:
                yield found
            finally:
                found.go_on()
        return
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running(scheme, Path(folder)) as found,
    ):
        yield found


def saved(stream):
    """Return how many records the last checkpoint has."""
    return position(stream.out)["records"] if has_checkpoint(stream.out) else 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_source_that_is_away_at_the_start_and_in_the_middle_is_waited_for(scheme, tmp_path):
    with broker(scheme) as source, broker("redis") as target:
        source.write("news", rows(50))
        stream = Stream(tmp_path, source, target, "news")
        source.stop()
        command = stream.start("--wait", *FOLLOWS)
        wait_for(lambda: TROUBLE in command.said())
        source.go_on()
        wait_for(lambda: saved(stream) == 50)
        source.stop()
        wait_for(lambda: command.said().count(TROUBLE) == 2)
        source.go_on()
        source.write("news", rows(100)[50:])
        wait_for(lambda: saved(stream) == 100)
        command.end()
        stream.start().wait()  # to its end, as the file
        stream.check(100)
    assert bits(stream.out) == file_bits(tmp_path, 100, 0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_destination_that_is_away_is_waited_for(scheme, tmp_path):
    with broker("redis") as source, broker(scheme) as target:
        source.write("news", rows(50))
        stream = Stream(tmp_path, source, target, "news")
        command = stream.start("--wait", *FOLLOWS)
        wait_for(lambda: saved(stream) == 50)
        target.stop()
        source.write("news", rows(100)[50:])
        wait_for(lambda: TROUBLE in command.said())
        target.go_on()
        wait_for(lambda: saved(stream) == 100)
        command.end()
        stream.check(100)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_without_wait_the_run_ends_and_goes_on_later(scheme, side, tmp_path):
    """After 30 seconds."""
    with broker(scheme) as own, broker("redis") as other:
        source, target = (own, other) if side == "source" else (other, own)
        source.write("news", rows(50))
        stream = Stream(tmp_path, source, target, "news")
        command = stream.start(*FOLLOWS)
        wait_for(lambda: saved(stream) == 50)
        own.stop()
        if side == "target":
            source.write("news", rows(100)[50:])
        command.wait(1)
        assert "continue later with --resume, or give --wait" in command.said()
        assert saved(stream) == 50
        own.go_on()
        if side == "source":
            source.write("news", rows(100)[50:])
        stream.start().wait()
        stream.check(100)
    assert bits(stream.out) == file_bits(tmp_path, 100, 0)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_outage_of_a_minute_costs_a_minute(scheme, tmp_path):
    with broker(scheme) as own:
        own.write("news", rows(50))
        stream = Stream(tmp_path, own, own, "news")
        command = stream.start("--wait", *FOLLOWS)
        wait_for(lambda: saved(stream) == 50)
        own.stop()
        threading.Event().wait(60)
        assert command.code is None
        own.go_on()
        own.write("news", rows(100)[50:])
        wait_for(lambda: saved(stream) == 100)
        command.end()
        stream.check(100)


def test_a_second_writer_is_refused_and_readers_are_not(tmp_path):
    with broker("redis") as own:
        own.write("news", rows(50))
        stream = Stream(tmp_path, own, own, "news")
        command = stream.start(*FOLLOWS)
        wait_for(lambda: saved(stream) == 50)
        second = Command(tmp_path / "second", "fit", "--out", stream.out, "--resume", "--quiet")
        second.wait(1)
        assert "another process" in second.said()
        Command(tmp_path / "reader", "clusters", stream.out).wait()
        own.write("news", rows(60)[50:])
        wait_for(lambda: saved(stream) == 60)
        command.end()
        stream.check(60)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_slow_learner_reads_only_so_far_ahead(scheme):
    n, few = 2000, 16
    with broker(scheme) as own:
        own.write("news", rows(n))
        options = Options(columns=("x", "y")) if own.columns else None
        with open_source(own.source_url("news"), options) as source:
            asked = []
            read = source._broker.read

            def counted(most, seconds):
                found = read(most, seconds)
                asked.append(len(found or ()))
                return found

            source._broker.read = counted
            batches = read_ahead(source.batches(few), few, source.stop)
            came = len(next(batches)[0])
            before = -1
            while before != len(asked):  # as long as it reads on by itself
                before = len(asked)
                threading.Event().wait(1.0)
            assert sum(asked) <= came + (AHEAD + 1) * few
            while came < n:
                came += len(next(batches)[0])
            batches.close()


@pytest.mark.filterwarnings("default:.*is missed;")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_lag_is_told_by_partition(scheme, tmp_path):
    with broker(scheme) as own:
        own.write("news", rows(50))
        options = Options(columns=("x", "y")) if own.columns else None
        with open_source(own.source_url("news"), options, follow=True) as source:
            start = source.beginning()
            wait_for(lambda: sum(source.lag(start).values()) == 50)
            _, after = next(source.batches(20))
            left = 50 - after["records"]
            names = [f"news/{i}" for i in range(4)] if scheme == "kafka" else ["news"]
            wait_for(lambda: list(source.lag(after).values()) == [left, *(0 for _ in names[1:])])
            assert list(source.lag(after)) == names
            own.stop()
            wait_for(lambda: source.lag(after) == {})
            own.go_on()
            own.write("news", rows(7))
            wait_for(lambda: source.lag(after) and source.lag(after)[names[0]] == left + 7)
        with open_source(own.source_url("news"), options) as source:  # it has an end
            assert source.lag(source.beginning()) == {}


def test_messages_that_nats_loses_or_reorders_are_asked_for_again():
    with broker("nats") as own:
        own.write("news", rows(60))
        with open_source(own.source_url("news")) as source:
            fetch = source._broker._fetch

            def spoilt(spoil):
                async def fetched(n, seconds):
                    found = await fetch(n, seconds)
                    if len(found) > 5 and spoil:
                        spoil.pop()(found)
                    return found

                return fetched

            def lose_last(found):
                found.clear()

            def lose(found):
                del found[3]

            def swap(found):
                found[2], found[4] = found[4], found[2]

            def double(found):
                found.insert(2, found[1])

            spoil = [lose, swap, double, lose_last]
            source._broker._fetch = spoilt(spoil)
            with pytest.warns(match="were lost or reordered on their way"):
                came = [place.spot["sequence"] for r, _ in source.batches(10) for place in r.places]
            assert spoil == []
            assert came == list(range(1, 61))


def test_a_broker_that_never_was_there_is_named(tmp_path):
    """Without waiting for anything: there is a time limit for it."""
    command = Command(
        tmp_path / "log", "fit", f"redis://127.0.0.1:{free_port()}/news", "--wait", "--quiet"
    )
    wait_for(lambda: TROUBLE in command.said())
    command.end()
    assert "stopped" in command.said()
