"""Kafka in, Kafka out: every record once, from our offsets, and refusals that say what to do."""

import threading
import warnings
from types import SimpleNamespace

import pytest
from feeds import OFTEN, QUICK, bits, check_answers, paths, position, rejects, rows

from commands import run, run_json

pytest.importorskip("confluent_kafka", reason="no Kafka client: pip install 'bnpstream[kafka]'")
from confluent_kafka import TopicPartition
from kafka_cluster import cluster, wait_for

from bnpstream.sources import open_source
from bnpstream.sources.brokers import kafka, patience
from bnpstream.sources.options import Options
from bnpstream.storage import is_run


@pytest.fixture(scope="module")
def shared():
    """Return a cluster; every test has topics of its own."""
    with cluster() as found:
        yield found


@pytest.fixture
def impatient(monkeypatch):
    """Give up soon, but not where a machine is busy."""
    monkeypatch.setattr(patience, "SECONDS", 10.0)
    monkeypatch.setattr(kafka, "QUIET_SECONDS", 1.0)


MAY_WAIT = pytest.mark.filterwarnings("default:.*does not answer")


def test_one_partition_gives_the_bits_of_a_file(shared, tmp_path):
    messages = rows(200)
    messages[7:7] = [b"{", b'{"id": "z", "x": "no", "y": 1}']
    feed = tmp_path / "feed.jsonl"
    feed.write_bytes(b"\n".join(messages) + b"\n")
    run("fit", feed, "--out", tmp_path / "file", *QUICK)
    shared.write("one", messages[:120])
    url = shared.url("one")
    first = run_json("fit", url, "--out", tmp_path / "broker", *QUICK, *OFTEN)
    assert (first["records"], first["rejects"]) == (120, 2)
    assert paths(tmp_path / "broker") == [url]
    shared.write("one", messages[120:])
    again = run_json("fit", "--out", tmp_path / "broker", "--resume", "--quiet")
    assert again["records"] == 202
    # The end was reached once before, and topics were found there: the posterior is the same.
    here, there = bits(tmp_path / "broker"), bits(tmp_path / "file")
    assert here[0].keys() == there[0].keys()
    run("fit", url, "--out", tmp_path / "whole", *QUICK, *OFTEN)
    assert bits(tmp_path / "whole") == there
    assert position(tmp_path / "whole")["last"] == [201, -1, -1, -1]
    assert shared.committed("one") == [202, 0, 0, 0]
    where = [(one["source"], one["place"]) for one in rejects(tmp_path / "whole")]
    server = f"kafka://{shared.address}"
    assert where == [
        (server, {"topic": "one", "partition": 0, "offset": offset}) for offset in (7, 8)
    ]


def test_answers_go_to_a_topic_once_for_every_record(shared, tmp_path):
    shared.write("four", rows(300), partition=lambda i: i % 4)
    run("stream", shared.url("four"), "--to", shared.url("told"), "--out", tmp_path / "run", *QUICK)
    pairs = shared.read("told")
    assert len(pairs) == 300
    found = check_answers(pairs, 300)
    expected = {f"four/{i % 4}/{i // 4}": f"d{i}" for i in range(300)}
    assert {key: answer["id"] for key, answer in found.items()} == expected
    for key, answer in found.items():
        assert "/".join(map(str, answer["place"].values())) == key
    for partition in range(4):  # in the order of offsets
        numbers = [found[f"four/{partition}/{offset}"]["record"] for offset in range(75)]
        assert numbers == sorted(numbers)


def test_what_is_gone_is_refused_unless_the_user_decides(shared, tmp_path):
    run_url = shared.url("short")
    shared.write("short", rows(60))
    run("fit", run_url, "--out", tmp_path / "run", *QUICK)
    # The cluster keeps some 5 MB of a partition.
    shared.write("short", [b" " * 100_000 + row for row in rows(80, seed=1, first=60)])
    low, high = shared.watermarks("short")[0]
    assert 60 < low < high == 140
    resumed = ("fit", "--out", tmp_path / "run", "--resume", "--quiet")
    message = run(*resumed, code=1)
    assert "the next message after topic short, partition 0, offset 59 is gone" in message
    assert "--from earliest" in message
    found = run_json(*resumed, "--from", "earliest")
    assert found["records"] == 60 + high - low
    assert found["rejects"] == 0
    with open_source(run_url) as source:
        here = position(tmp_path / "run")
        source.check(here)
        with pytest.raises(ValueError, match="has 4 partitions, but had 5: it is a different"):
            source.check({**here, "last": [*here["last"], 7]})
        with pytest.raises(ValueError, match="ends before topic short, partition 0, offset 500"):
            source.check({**here, "last": [500, -1, -1, -1]})
        source.check({**here, "last": here["last"][:3]})  # one was added
        with pytest.raises(ValueError, match="is not a position"):
            source.check({"records": 3})


def test_a_topic_that_is_not_there_is_named(shared, tmp_path):
    assert "there is no topic 'none': create it" in run("fit", shared.url("none"), code=1)
    shared.write("quiet", rows(3))
    assert "give --follow" in run("fit", shared.url("quiet"), "--from", "latest", code=1)
    assert "unknown setting 'grup'" in run("fit", shared.url("quiet") + "?grup=a", code=1)
    assert "give kafka://HOST:PORT/TOPIC" in run("fit", f"kafka://{shared.address}", code=1)
    assert "start is 'middle'" in run("fit", shared.url("quiet"), "--from", "middle", code=1)


def test_latest_begins_with_what_comes(shared, tmp_path):
    shared.write("news", rows(50))
    source = open_source(
        shared.url("news"), Options(format="jsonl"), schema_of(shared), start="latest", follow=True
    )
    with source:
        start = source.beginning()
        shared.write("news", rows(5, first=50))
        batches = source.batches(start=start)
        ids = []
        while len(ids) < 5:
            ids += next(batches)[0].ids
        assert ids == [f"d{i}" for i in range(50, 55)]
        source.stop()
        assert list(batches) == []


def schema_of(shared):
    with open_source(shared.url("news")) as source:
        return source.schema


def test_keys_headers_and_times_are_ids_and_times(shared, tmp_path):
    shared.write(
        "keyed",
        [*rows(30), b'{"x": 1, "y": 2}'],
        keys=[f"k{i}" for i in range(30)] + [None],
        headers=[[("trace", f"t{i}"), ("at", "2026-01-01T00:00:00")] for i in range(31)],
        times=[1_700_000_000_000 + 1000 * i for i in range(31)],
    )

    def first(**options):
        with open_source(shared.url("keyed"), Options(**options)) as source:
            return all_records(source)

    records = first(id_field="@key", time_field="@timestamp")
    assert records.ids == [f"k{i}" for i in range(30)]
    assert records.times == [1_700_000_000.0 + i for i in range(30)]
    assert [reject.reason for reject in records.rejects] == ["it has no @key to be its id"]
    assert sum(records.sizes) == 30
    records = first(id_field="@header.trace", time_field="@header.at")
    assert records.ids[30] == "t30"
    assert records.times[0] == 1_767_225_600.0
    assert len(first(time_field="@header.none").rejects) == 31
    with pytest.raises(ValueError, match=r"@offset: a message has only @key, @timestamp"):
        first(id_field="@offset")
    options = ("--half-life", "30s", "--time-field", "@timestamp", "--id-field", "@key")
    found = run_json("fit", shared.url("keyed"), "--out", tmp_path / "run", *QUICK, *options)
    assert (found["rows"], found["rejects"]) == (30, 1)


def all_records(source):
    """Return what all batches have: the client decides how many messages come at a time."""
    batches = [records for records, _ in source.batches()]
    lists = {
        name: [one for records in batches for one in getattr(records, name) or ()]
        for name in ("ids", "numbers", "places", "rejects", "times")
    }
    return SimpleNamespace(**lists, sizes=[len(records) for records in batches])


@pytest.mark.parametrize(
    ("values", "format", "expected", "rejected"),
    [
        ([b"some words\nof text", b"\xff\xfe", b"more"], None, "text", [1]),
        ([b"some words", b"caf\xe9 noir", b"more"], "raw", "raw", []),
        ([b'{"text": "a"}', b"{", b'{\n"text": "b"\n}'], None, "jsonl", [1]),
    ],
)
def test_values_are_json_text_or_raw(shared, values, format, expected, rejected, request):
    topic = f"values-{expected}"
    shared.write(topic, values)
    with open_source(shared.url(topic), Options(format=format)) as source:
        assert source.schema.format == expected
        records = all_records(source)
        assert [reject.record for reject in records.rejects] == rejected
        assert sum(records.sizes) == len(values) - len(rejected)
        assert [place.spot["offset"] for place in records.places] == records.numbers


def test_a_batch_of_messages_may_be_cut_anywhere(shared):
    shared.write("cut", [*rows(40), b"{", *rows(9, first=41)], partition=lambda i: i % 3)
    with open_source(shared.url("cut")) as source:
        taken = list(source.batches(7))
        assert sum(len(records) for records, _ in taken) == 49
        before = source.beginning()
        for records, after in taken:
            assert source.after(before, records) == after
            middle = (before["records"] + after["records"]) // 2
            head = records.between(before["records"], middle)
            tail = records.between(middle, after["records"])
            assert source.after(source.after(before, head), tail) == after
            before = after


def test_a_repetition_follows_the_order_of_before(shared):
    """Whatever order another reading would have."""
    shared.write("order", rows(64), partition=lambda i: i % 4)
    with open_source(shared.url("order")) as source:
        start = source.beginning()
        last = {**start, "records": 40, "last": [9, 9, 9, 9]}
        order = [[lane, 2] for _ in range(5) for lane in (3, 1, 0, 2)]
        source.repeat([(order, last)])
        (records, after), *rest = source.batches(1024, start)
        assert after == last
        assert records.is_whole
        assert source.order(records) == order
        found = [place.spot["partition"] for place in records.places]
        assert found == [lane for lane, n in order for _ in range(n)]
        assert sum(len(more) for more, _ in rest) == 24
        source.repeat([([[0, 11]], {**last, "last": [9, 9, 9, 9]})])
        with pytest.raises(OSError, match=r": 11 messages were answered .* 10 of them are left"):
            list(source.batches(1024, start))


def test_a_consumer_that_no_longer_fetches_is_replaced(shared, monkeypatch):
    """As librdkafka's sometimes does after it was assigned partitions again."""
    monkeypatch.setattr(kafka, "QUIET_SECONDS", 0.5)
    shared.write("stuck", rows(30), partition=lambda i: i % 2)
    with open_source(shared.url("stuck"), follow=True) as source:
        batches = source.batches(10)
        came = next(batches)[0].numbers
        source._broker._consumer.pause([TopicPartition("stuck", i) for i in range(4)])
        with pytest.warns(match="it has messages, but does not deliver them"):
            came += next(batches)[0].numbers
        while len(came) < 30:
            came += next(batches)[0].numbers
        assert came == list(range(30))
        source.stop()
        assert list(batches) == []  # and none came twice


@MAY_WAIT
def test_a_broker_that_stops_for_a_while_costs_time_only(impatient):
    came = []
    with warnings.catch_warnings(record=True) as told, cluster() as own:
        own.write("news", rows(30))
        with open_source(own.url("news"), follow=True, wait=True) as source:
            batches = source.batches()
            while len(came) < 30:
                came += next(batches)[0].ids
            reader = threading.Thread(target=lambda: came.extend(next(batches)[0].ids))
            own.stop()
            reader.start()
            wait_for(lambda: told)
            own.go_on()
            own.write("news", rows(1, first=30))
            reader.join(300)
            assert came == [f"d{i}" for i in range(31)]
            source.stop()
            assert list(batches) == []
    assert str(told[0].message).endswith("trying again")


@MAY_WAIT
def test_a_broker_that_dies_leaves_a_checkpoint(tmp_path, impatient):
    with cluster() as own:
        own.write("news", rows(100))
        url = own.url("news")

        def kill():
            wait_for(lambda: is_run(tmp_path / "run") and own.committed("news")[0] == 100)
            own.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        options = ("--out", tmp_path / "run", *QUICK, "--checkpoint-rows", "1")
        message = run("fit", url, "--follow", *options, code=1)
        killer.join()
    assert "does not answer" in message
    assert "--resume, or give --wait" in message
    assert position(tmp_path / "run")["last"] == [99, -1, -1, -1]
    message = run("fit", "--out", tmp_path / "run", "--resume", code=1)
    assert f"{url}: does not answer" in message


@MAY_WAIT
def test_answers_that_nobody_takes_end_the_run(shared, tmp_path, impatient):
    shared.write("heard", rows(40))
    with cluster() as own:
        url = own.url("told")
    options = ("--to", url, "--out", tmp_path / "run", *QUICK)
    assert f"{url}: does not answer" in run("stream", shared.url("heard"), *options, code=1)


def test_settings_of_the_client_come_from_a_file(shared, tmp_path, monkeypatch):
    file = tmp_path / "client.properties"
    file.write_text("# of the client\nclient.id = somebody\nno such thing\n")
    monkeypatch.setenv(kafka.CONFIG, str(file))
    shared.write("configured", rows(3))
    with open_source(shared.url("configured")) as source:
        assert source.schema.names == ("x", "y")
    file.write_text("no.such.setting = 3\n")
    with pytest.raises(ValueError, match=r"no\.such\.setting"):
        open_source(shared.url("configured"))


def test_a_missing_client_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ImportError, match=r"pip install 'bnpstream\[kafka\]'"):
        open_source("kafka://localhost/news")
