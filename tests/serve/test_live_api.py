"""What programs ask a server: the answers of the library, within limits, for those who may ask."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("starlette", reason="starlette is missing: pip install 'bnpstream[serve]'")

from bnpstream.runs.options import OptionError
from bnpstream.runs.overview import Run
from bnpstream.runs.score import predict, source_for
from bnpstream.serve.api import MOST_ROWS, Answers, RefusedError
from bnpstream.serve.app import ServeOptions
from bnpstream.serve.guard import MOST_BYTES
from bnpstream.serve.records import JsonRecords
from bnpstream.serve.watch import Watch
from bnpstream.sources import Schema
from serving import fit, password, serving, text_records, wait_for, write_lines


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_lines(tmp_path_factory.mktemp("feed") / "feed.jsonl", text_records(0, 300))


@pytest.fixture(scope="module")
def run(source):
    return fit(source, source.parent / "run")


@pytest.fixture(scope="module")
def served(run):
    with serving(run, api=True) as served:
        yield served


def test_predictions_are_those_of_the_library(run, served, tmp_path):
    asked = [*text_records(300, 20), {"text": 5}, {"text": "zebra okapi"}]
    source = write_lines(tmp_path / "asked.jsonl", asked)
    fitted = Run(run)
    expected = {one.record: one for _, found in predict(fitted, source_for(fitted, [str(source)]))
                for one in found}  # fmt: skip
    answer = served.json("/predict", {"records": asked})
    assert answer["rows"] == 300
    assert [one["record"] for one in answer["answers"]] == list(range(22))
    for one in answer["answers"]:
        if one["record"] == 20:
            assert "string" in one["error"]
            continue
        same = expected[one["record"]]
        assert (one["cluster"], one["topic"], one["id"]) == (same.cluster, same.topic, same.id)
        assert one["probability"] == same.probability
        assert one["novelty"] == same.novelty
    news = served.json("/novelty", {"records": asked})["answers"]
    assert [one.get("novelty") for one in news] == [one.get("novelty") for one in answer["answers"]]
    assert news[21]["novelty"] > 10 * news[0]["novelty"]


def test_a_text_may_be_sent_bare(served):
    bare, whole = (
        served.json("/predict", {"records": [record]})["answers"][0]
        for record in ("rain wind", {"text": "rain wind"})
    )
    assert bare == whole


def test_lists_are_those_of_the_run(run, served):
    about = Run(run).describe(20)
    clusters = served.json("/clusters")
    assert [one["id"] for one in clusters["clusters"]] == [one.id for one in about.clusters]
    assert clusters["clusters"][0]["exemplars"]
    first = about.clusters[0].id
    assert served.json(f"/clusters/{first}")["cluster"] == clusters["clusters"][0]
    assert len(served.json("/clusters?top=1")["clusters"]) == 1
    topic = about.topics[0]
    listed = served.json(f"/clusters?topic={topic.id}")["clusters"]
    assert [one["id"] for one in listed] == topic.clusters
    assert [one["id"] for one in served.json("/topics")["topics"]] == [t.id for t in about.topics]
    lineage = served.json("/lineage")
    assert lineage["n_events"] == len(about.events)
    for after in (0, 2):
        later = served.json(f"/lineage?after={after}")["events"]
        assert len(later) == sum(event.n_observations > after for event in about.events)
        assert all(event["n_observations"] > after for event in later)
    assert served.json(f"/lineage?id={first}")["events"][0]["kind"] == "birth"


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/predict", b"{", {"content-type": "application/json"}, 400),
        ("/predict", b"[]", {"content-type": "application/json"}, 400),
        ("/predict", b"[" * 5000, {"content-type": "application/json"}, 400),
        ("/predict", {"records": []}, None, 400),
        ("/predict", {"records": ["a"] * (MOST_ROWS + 1)}, None, 400),
        ("/predict", b'{"records": ["a"]}', {"content-type": "text/plain"}, 415),
        ("/predict", None, None, 405),
        ("/clusters?top=0", None, None, 400),
        ("/clusters?top=1e3", None, None, 400),
        ("/clusters/999999", None, None, 404),
        ("/learn", {"records": [{"id": 1}]}, None, 404),
        ("/../../etc/passwd", None, None, 404),
        ("/style.css/../config.json", None, None, 404),
        ("/config.json", None, None, 404),
        ("/clusters", None, {"host": "evil.example"}, 421),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused(served, path, body, headers, status):
    found, _, data = served.ask(path, body, headers)
    assert found == status
    assert json.loads(data)["error"]


def test_long_bodies_are_not_read(served):
    given = {"content-type": "application/json", "content-length": str(MOST_BYTES + 1)}
    assert served.ask("/predict", b"{}", given)[0] == 413

    def pieces():
        for _ in range(MOST_BYTES // 65536 + 2):
            yield b" " * 65536

    import http.client

    connection = http.client.HTTPConnection(served.host, int(served.port), timeout=60)
    headers = {"content-type": "application/json"}
    connection.request("POST", "/predict", pieces(), headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_token_is_asked_for(run):
    with serving(run, token="open sesame") as guarded:
        assert guarded.ask("/healthz")[0] == 200
        wrong = [{"Authorization": one} for one in ("Bearer open", "Basic %%", "open sesame")]
        for headers in (None, password("wrong"), *wrong):
            status, given, _ = guarded.ask("/clusters", headers=headers)
            assert status == 401
            assert given["www-authenticate"].startswith("Basic")
        for headers in ({"Authorization": "Bearer open sesame"}, password("open sesame")):
            assert guarded.ask("/clusters", headers=headers)[0] == 200
            named = headers | {"host": "dashboards.example"}
            assert guarded.ask("/metrics", headers=named)[0] == 200


def test_other_machines_need_a_token():
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(OptionError, match="--token"):
            ServeOptions(host=host)
        ServeOptions(host=host, token="secret")
    ServeOptions(host="::1")


def test_a_new_checkpoint_answers(source, tmp_path):
    own = write_lines(tmp_path / "own.jsonl", text_records(0, 120))
    run = fit(own, tmp_path / "run")
    with serving(run, api=True) as served:
        assert served.json("/predict", {"records": ["rain"]})["rows"] == 120
        write_lines(own, text_records(120, 30), "a")
        fit(own, run, resume=True)
        wait_for(lambda: served.json("/predict", {"records": ["rain"]})["rows"] == 150)


def test_the_description_names_all_that_is_answered(served):
    described = served.json("/openapi.json")
    assert {"/predict", "/novelty", "/clusters", "/topics", "/lineage"} <= set(described["paths"])
    assert "/learn" not in described["paths"]
    for path, methods in described["paths"].items():
        method = next(iter(methods)).upper()
        body = {"records": ["rain"]} if method == "POST" else None
        status, _, data = served.ask(path.replace("{id}", "0"), body)
        assert str(status) in methods[method.lower()]["responses"], (path, data)


def test_metrics_are_those_of_the_run_and_do_not_grow_with_it(run, served, tmp_path):
    text = served.ask("/metrics")[2].decode()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")
    about = Run(run).describe(1)
    assert float(values["bnpstream_rows_total"]) == 300
    assert float(values["bnpstream_clusters"]) == about.n_clusters
    births = sum(event.kind == "birth" for event in about.cluster_events)
    assert float(values['bnpstream_cluster_events_total{kind="birth"}']) == births
    assert float(values['bnpstream_state{state="finished"}']) == 1
    assert not any('cluster="' in name or "topic=" in name for name in values)


@pytest.mark.parametrize(
    ("schema", "value", "shape"),
    [
        (Schema("text", "documents"), {"text": "a b"}, None),
        (Schema("uci", "counts", 3, ("a", "b", "c")), {"counts": {"b": 2}}, (1, 3)),
        (Schema("npz", "counts", 8), {"counts": {"b": 2}}, (1, 8)),
        (Schema("npy", "table", 2, types=("number",) * 2), {"vector": [1, 2.5]}, (1, 2)),
        (Schema("csv", "table", 2, ("a", "b"), ("number", "label"), {"header": "1"}),
         {"a": 1, "b": "x"}, (1, 2)),
        (Schema("jsonl", "table", 1, ("id",), ("number",)), {"id": 4}, (1, 1)),
    ],
)  # fmt: skip
def test_records_of_any_run_can_be_sent_as_json(schema, value, shape):
    records = JsonRecords(schema).records([value, {"nothing": 1}, 7])
    assert records.numbers == [0]
    assert [reject.record for reject in records.rejects] == [1, 2]
    assert shape is None or records.rows.shape == shape
    example = JsonRecords(schema).example()
    assert not JsonRecords(schema).records([example]).rejects


def test_refusals_say_what_to_do(served, run):
    status, _, data = served.ask("/learn", {"records": []})
    assert (status, json.loads(data)["error"]) == (
        404,
        "nothing here: needs bnpstream serve --learn",
    )
    assert b"/openapi.json" in served.ask("/nothing")[2]
    serve = [sys.executable, "-m", "bnpstream", "serve", str(run), "--port", str(served.port)]
    ended = subprocess.run(serve, capture_output=True, text=True)  # browsers run a loop in this one
    assert ended.returncode == 1
    assert f"--port {served.port}: cannot listen on 127.0.0.1: try another" in ended.stderr


def test_a_server_without_a_checkpoint_says_so(run):
    answers = Answers(Watch(run))  # it has not looked yet
    with pytest.raises(RefusedError) as refused:
        answers.snapshot()
    assert b"the checkpoint is being loaded: try again later" in refused.value.response.body
    answers.close()
