"""The pages that people see, as they leave the server; and the events that keep them fresh."""

import json
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="starlette is missing: pip install 'bnpstream[serve]'")

from bnpstream.runs.overview import Run
from bnpstream.serve.events import Hub
from bnpstream.serve.river import HEIGHT, Series, river_of
from run_examples import small_run
from serving import fit, serving, text_records, wait_for, write_lines

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    records = [{"id": f"{EVIL}{i}", "words": [EVIL, "\u202e\x00" + "ab"[i % 2] * 2]
                + ["xyz"[i % 3]] * 5} for i in range(150)]  # fmt: skip
    return fit(write_lines(folder / "feed.jsonl", records), folder / "run <i>")


@pytest.fixture(scope="module")
def served(run):
    with serving(run) as served:
        yield served


def test_pages_escape_what_data_say(run, served):
    first = Run(run).describe(1).clusters[0]
    for path in ("/", f"/cluster-{first.id}", f"/topic-{first.topic}", "/search?q=%3Cscript%3E"):
        status, headers, data = served.ask(path)
        page = data.decode()
        assert status == 200
        assert "&lt;script&gt;" in page, path
        assert "<script>alert" not in page
        assert not any(c in page for c in "\x00\u202e"), path
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert page.count("<script") == 1


def test_serving_leaves_the_directory_alone(run):
    def looked():
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in run.iterdir()}

    before = looked()
    with serving(run, api=True) as served:
        for path in ("/", "/clusters", "/lineage", "/metrics", "/search?q=x"):
            assert served.ask(path)[0] == 200
    assert looked() == before


def test_searches_find_words_records_and_numbers(run, served):
    about = Run(run).describe(20)
    for cluster in about.clusters[:3]:
        record = quote(str(cluster.exemplars[0].id) if cluster.exemplars else "")
        for query in (cluster.id, quote(cluster.lifted[0].name.upper()), record):
            page = served.ask(f"/search?q={query}")[2].decode()
            assert not query or f'id="cluster-{cluster.id}"' in page
    assert "0 clusters" in served.ask("/search?q=nothing-like-it")[2].decode()
    assert "0 clusters" in served.ask("/search")[2].decode()


def test_a_cluster_that_never_was_is_not_found(served):
    for path in ("/cluster-99999", "/topic-99999", "/cluster-x", "/cluster--1"):
        assert served.ask(path)[0] == 404


def test_a_run_without_a_checkpoint_says_so(run, tmp_path):
    folder = tmp_path / "begun"
    folder.mkdir()
    for name in ("config.json", "features.json"):
        (folder / name).write_bytes((run / name).read_bytes())
    with serving(folder, ready=False) as served:
        wait_for(lambda: b"no checkpoint" in served.ask("/")[2])
        assert served.ask("/readyz")[0] == 503
        assert served.ask("/clusters")[0] == 503


def test_events_tell_of_new_checkpoints_and_go_on_where_they_stopped(tmp_path):
    source = write_lines(tmp_path / "feed.jsonl", text_records(0, 120))
    run = fit(source, tmp_path / "run")
    with serving(run) as served:
        with served.events() as events:
            names = {}
            while {"now", "checkpoint"} - set(names):
                id, name, document = next(events)
                names[name] = id, document
            assert names["now"][1]["rows"] == 120
        last = max((id for id, _ in names.values()), key=lambda id: int(id.split("-")[1]))
        write_lines(source, text_records(120, 30), "a")
        fit(source, run, resume=True)
        wait_for(lambda: served.json("/now")["rows"] == 150)
        with served.events(last) as events:
            seen = {}
            while seen.get("now", {}).get("rows") != 150 or "checkpoint" not in seen:
                _, name, document = next(events)
                seen[name] = document
            assert seen["checkpoint"]["version"] != names["checkpoint"][1]["version"]


def test_requests_that_never_end_or_hold_endless_numbers(tmp_path):
    run = fit(write_lines(tmp_path / "feed.jsonl", text_records(0, 30)), tmp_path / "run")
    digits = "9" * 5000
    with serving(run) as served:
        assert served.ask("/events", method="HEAD")[0] == 200
        for path in (f"/clusters/{digits}", f"/topic-{digits}", f"/cluster-{digits}"):
            assert served.ask(path)[0] == 414
        with served.events() as events:
            epoch = next(events)[0].split("-")[0]
        with served.events(f"{epoch}-{digits}") as events:
            assert next(events)[0].startswith(epoch)


def told(hub, seen):
    return [line for line in hub._after(seen).decode().splitlines() if line.startswith("data")]


def test_a_hub_replays_what_was_missed_and_no_more():
    hub = Hub()
    hub.publish("now", {"n": 1})
    hub.publish("births", {"id": 1})
    hub.publish("now", {"n": 2})
    hub.publish("births", {"id": 2})
    known = hub._seen(f"{hub._epoch}-1")
    assert known == 1
    assert told(hub, known) == ['data: {"id":1}', 'data: {"n":2}', 'data: {"id":2}']
    assert told(hub, 4) == []
    for strange in (None, "", "0-1", f"{hub._epoch}-9", f"{hub._epoch}-x", f"{hub._epoch}-²"):
        assert hub._seen(strange) == -1
    for n in range(1000):
        hub.publish("now", {"n": n})
    assert told(hub, known)[-1] == 'data: {"n":999}'
    assert len(told(hub, known)) == 2  # the last of each: the others are gone


def test_a_river_fills_its_banks():
    run = small_run()
    series = [Series(f"cluster-{one.id}", f"name {one.id}", one.trend) for one in run.clusters]
    river = river_of(run, series, "clusters")
    assert [band.name for band in river.bands] == ["name 7", "name 2", "name 12"]
    for at in range(4):
        assert sum(band.shares[at] for band in river.bands) == pytest.approx(1.0)
    total = sum(sum(one.trend) for one in run.clusters)
    for band, cluster in zip(river.bands, run.clusters, strict=True):
        assert band.share == pytest.approx(sum(cluster.trend) / total)
    assert river.bands[-1].path.endswith(f"0 {HEIGHT}Z")
    assert [(verb, count) for verb, count, _ in river.strips] == [
        ("born", 5), ("merged", 1), ("died", 1)]  # fmt: skip


def test_the_river_of_a_part_is_as_wide_as_the_part():
    run = small_run()
    two, twelve = run.clusters[1:]
    series = [Series("a", "a", two.trend), Series("b", "b", twelve.trend)]
    river = river_of(run, series, "clusters", {two.id})
    assert river.bands[0].shares == pytest.approx([0.0, 0.5, 0.4, 0.6])
    assert river.bands[1].shares == pytest.approx([0.0, 0.0, 0.2, 0.3])
    # The last bin is the widest, 0.9; the first has no width, in the middle.
    assert river.bands[0].path.startswith(f"M0 {HEIGHT // 2}L")
    assert river.bands[0].path.endswith(f"L0 {HEIGHT // 2}Z")
    assert f"L3 {HEIGHT}L" in river.bands[1].path
    assert [(verb, count) for verb, count, _ in river.strips] == [("born", 1), ("merged", 1)]


def test_many_bands_share_the_last():
    run = small_run()
    series = [Series(f"cluster-{i}", f"name {i}", [1, 1, 1, 1]) for i in range(20)]
    river = river_of(run, series, "clusters")
    assert len(river.bands) == 9
    assert river.bands[-1].name == "12 others"
    assert river.bands[-1].share == pytest.approx(12 / 20)
    assert json.dumps(river.words)
