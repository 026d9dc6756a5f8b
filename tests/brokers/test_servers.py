"""Redis, NATS and PostgreSQL, real servers all: the same promises as those of Kafka."""

import json
import tempfile
import threading
import warnings
from pathlib import Path

import pytest
from feeds import OFTEN, QUICK, bits, check_answers, position, rejects, rows
from kafka_cluster import wait_for
from servers import KINDS, running

from bnpstream.sources import open_source
from bnpstream.sources.brokers import patience
from bnpstream.sources.options import Options
from commands import run, run_json

pytestmark = pytest.mark.filterwarnings("default:.*does not answer", "default:.*is missed;")


@pytest.fixture(scope="module", params=KINDS)
def server(request):
    """Return a server; every test has streams of its own."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running(request.param, Path(folder)) as found,
    ):
        yield found


def test_a_stream_gives_the_bits_of_a_file(server, tmp_path):
    messages = rows(90)
    feed = tmp_path / "feed.jsonl"
    feed.write_bytes(b"\n".join(messages) + b"\n")
    run("fit", feed, "--out", tmp_path / "file", *QUICK)
    server.write("one", messages)
    url = server.source_url("one")
    options = ("--out", tmp_path / "broker", *QUICK, *OFTEN, *server.columns)
    found = run_json("fit", url, *options)
    assert (found["records"], found["rejects"]) == (90, 0)
    assert bits(tmp_path / "broker") == bits(tmp_path / "file")
    server.write("one", rows(10, first=90))
    found = run_json("fit", "--out", tmp_path / "broker", "--resume", "--quiet")
    assert found["records"] == 100


def test_answers_come_once_for_every_record(server, tmp_path):
    server.write("heard", rows(60))
    server.create("told")
    url = server.source_url("heard")
    if server.scheme == "postgresql":
        server.do("DROP TABLE told")
    options = ("--to", server.url("told"), "--out", tmp_path / "run", *QUICK, *server.columns)
    run("stream", url, *options)
    pairs = server.read("told")
    assert len(pairs) == 60
    found = check_answers(pairs, 60)
    assert {answer["id"] for answer in found.values()} == {f"d{i}" for i in range(60)}
    if server.scheme == "postgresql":
        assert all(key == answer["id"] for key, answer in pairs)
        query = "SELECT id, cluster, probability FROM told"
        cells = {id_: (cluster, share) for id_, cluster, share in server.do(query)}
        for answer in found.values():
            assert cells[answer["id"]] == (answer["cluster"], answer["probability"])
    else:
        assert all(key == "/".join(map(str, a["place"].values())) for key, a in pairs)


def test_a_server_that_goes_away_costs_time_only(server, tmp_path):
    server.write("away", rows(20))
    came = []
    with warnings.catch_warnings(record=True) as told:
        options = Options(columns=("x", "y")) if server.columns else None
        url = server.source_url("away")
        with open_source(url, options, follow=True, wait=True) as source:
            batches = source.batches()
            while len(came) < 20:
                came += next(batches)[0].ids
            server.kill()
            reader = threading.Thread(target=lambda: came.extend(next(batches)[0].ids))
            reader.start()
            wait_for(lambda: any("trying again" in str(one.message) for one in told))
            server.start()
            server.write("away", rows(1, first=20))
            reader.join(300)
            source.stop()
            assert list(batches) == []
    assert len(came) == len(set(came)) == 21


def test_a_server_that_does_not_answer_is_named(server, tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "SECONDS", 0.5)
    server.write("named", rows(3))
    server.kill()
    try:
        message = run("fit", server.source_url("named"), code=1)
    finally:
        server.start()
    assert "does not answer" in message
    assert "give --wait" in message


def test_what_cannot_be_used_says_where_it_is(server, tmp_path):
    if server.scheme == "postgresql":
        server.write("poison", rows(30))
        server.do("UPDATE poison SET x = 'infinity' WHERE n = 5")
        place = {"table": "poison", "n": "5"}
    else:
        messages = rows(30)
        messages[4] = b'{"x": "no", "y": 1}'
        server.write("poison", messages)
        place = None
    options = ("--out", tmp_path / "run", *QUICK, *server.columns)
    found = run_json("fit", server.source_url("poison"), *options)
    assert (found["rows"], found["rejects"]) == (29, 1)
    (reject,) = rejects(tmp_path / "run")
    assert reject["record"] == 4
    if place is not None:
        assert reject["place"] == place
    elif server.scheme == "nats":
        assert reject["place"] == {"stream": "poison", "sequence": 5}
    else:
        assert reject["place"]["stream"] == "poison"
    assert str(server.port) in reject["source"]


def test_what_was_removed_before_it_was_read_is_refused(server, tmp_path):
    server.write("cut", rows(30))
    options = ("--out", tmp_path / "run", *QUICK, *server.columns)
    run("fit", server.source_url("cut"), *options)
    here = position(tmp_path / "run")
    resumed = ("fit", "--out", tmp_path / "run", "--resume", "--quiet")
    if server.scheme == "redis":
        with server.client as client:
            client.xtrim("cut", 0, approximate=False)
            assert run_json(*resumed)["records"] == 30  # all of it was read
            server.write("cut", rows(10, first=30))
            client.xtrim("cut", 4, approximate=False)
        expected = f"6 entries after {here['last'][0]} were removed before they were read"
    elif server.scheme == "nats":
        server.write("cut", rows(10, first=30))
        server.do(lambda stream: stream.purge_stream("cut", keep=4))
        expected = "the next message after stream cut, sequence 30 is gone"
    else:  # what was read may go, and nothing else can be told
        server.do("DELETE FROM cut")
        server.write("cut", rows(4, first=30))
        assert run_json(*resumed)["records"] == 34
        return
    message = run(*resumed, code=1)
    assert expected in message
    assert "--from earliest" in message
    assert run_json(*resumed, "--from", "earliest")["records"] == 34


def test_what_is_not_there_is_named(server, tmp_path):
    message = run("fit", server.source_url("nowhere"), code=1)
    expected = {
        "redis": "it is empty; give --follow",
        "nats": "there is no stream 'nowhere'",
        "postgresql": "there is no table \"nowhere\" with a column 'n'",
    }
    assert expected[server.scheme] in message


@pytest.mark.parametrize("server", ["redis"], indirect=True)
def test_fields_of_redis_are_an_object(server):
    with server.client as client:
        for i in range(5):
            fields = {"id": i, "size": 1.5 * i, "on": "true", "colour": "red"}
            client.xadd("fields", fields, id=f"{1000 * (i + 1)}-0")
    options = Options(time_field="@timestamp")
    with open_source(server.url("fields"), options) as source:
        assert dict(zip(source.schema.names, source.schema.types, strict=True)) == {
            "size": "number",
            "on": "truth",
            "colour": "label",
        }
        ((records, _),) = source.batches()
    assert records.ids == ["0", "1", "2", "3", "4"]
    assert records.times == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert records.rows[2].tolist() == [3.0, True, "red"]


@pytest.mark.parametrize("server", ["postgresql"], indirect=True)
def test_keys_of_tables_are_unique_and_may_be_anything(server):
    server.do("CREATE TABLE dated (at timestamptz UNIQUE, x float8, y float8)")
    for day in (3, 1, 2):
        server.do("INSERT INTO dated VALUES (%s, %s, 0)", f"2026-01-0{day} 12:00:00.5+00", day)
    options = Options(columns=("x", "y"))
    with open_source(server.url("dated") + "&key=at", options) as source:
        ((records, after),) = source.batches()
        assert records.rows[:, 0].tolist() == [1.0, 2.0, 3.0]
        server.do("INSERT INTO dated VALUES ('2026-01-04', 4, 0)")
        ((records, _),) = source.batches(start=json.loads(json.dumps(after)))
        assert records.rows[:, 0].tolist() == [4.0]
    with pytest.raises(OSError, match="column 'x' is not unique"):
        open_source(server.url("dated") + "&key=x")


@pytest.mark.parametrize("server", ["postgresql"], indirect=True)
def test_a_notification_wakes_a_reader(server):
    server.write("waking", rows(3))
    options = Options(columns=("x", "y"))
    with (
        warnings.catch_warnings(record=True) as told,
        open_source(server.source_url("waking"), options, follow=True) as source,
    ):
        batches = source.batches()
        assert len(next(batches)[0]) == 3
        source._broker.seek({0: "3"})
        server.write("waking", rows(1, first=3))
        server.do("NOTIFY waking")
        assert [one.offset for one in source._broker.read(5, 60)] == ["4"]
    assert "commits after a larger one was read is missed" in str(told[0].message)


@pytest.mark.parametrize("server", ["redis"], indirect=True)
def test_a_password_is_not_kept(server, tmp_path):
    with server.client as client:
        client.config_set("requirepass", "hush")
    try:
        given = server.url("secret").replace("://", "://:hush@")
        with server.client as client:
            client.auth("hush")
            for row in rows(30):
                client.xadd("secret", {"data": row})
        run("fit", given, "--out", tmp_path / "run", *QUICK)
        assert "hush" not in (tmp_path / "run" / "config.json").read_text()
        assert "Authentication" in run("fit", "--out", tmp_path / "run", "--resume", code=1)
        run("fit", given, "--out", tmp_path / "run", "--resume", "--quiet")
    finally:
        with server.client as client:
            client.auth("hush")
            client.config_set("requirepass", "")
