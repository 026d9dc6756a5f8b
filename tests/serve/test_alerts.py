"""Alerts: of young clusters that grow, and of streams that become strange; posted for real."""

import json
import threading
from collections import deque
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytest.importorskip("starlette", reason="starlette is missing: pip install 'bnpstream[serve]'")

from bnpstream.runs.options import OptionError
from bnpstream.serve.alerts import IN_A_ROW, LEAST, AlertOptions, Alerts
from bnpstream.serve.watch import Birth, Point, Snapshot, Watch
from run_examples import small_run


def snapshot(**sizes):
    run = small_run()
    clusters = [replace(one, size=sizes.get(f"c{one.id}", 0.5)) for one in run.clusters]
    return Snapshot(None, replace(run, clusters=clusters), "1", 0.0)


def test_a_young_cluster_that_grows_in_time_is_told_once():
    alerts = Alerts(AlertOptions(size=50, within="10m"))
    alerts.births([Birth(7, 1), Birth(12, 301)], now=1000.0)
    assert alerts.grown(snapshot(c7=49.0, c2=500.0), 1100.0) == []
    (alert,) = alerts.grown(snapshot(c7=50.0, c2=500.0), 1200.0)
    assert (alert["cluster"], alert["size"], alert["seconds"]) == (7, 50.0, 200.0)
    assert alert["label"].startswith("rain")
    assert alerts.grown(snapshot(c7=60.0), 1300.0) == []
    assert alerts.grown(snapshot(c12=60.0), 1601.0) == []  # too late


def points(alerts, values, start=0.0):
    """Return after which of the values there was an alert."""
    watch, found = Watch.__new__(Watch), []
    watch.points = deque()
    for i, value in enumerate(values):
        watch.points.append(Point(start + i, i, 1, 1.0, -1.0, value))
        found += [i] * len(alerts.strange(watch))
        assert alerts.strange(watch) == []  # the same moment says nothing new
    return found


def test_novelty_beyond_its_own_quantile_is_told_once_until_it_is_back():
    usual = [0.1 + 0.01 * (i % 7) for i in range(200)]
    alerts = Alerts(AlertOptions(novelty=0.95))
    assert points(alerts, usual, 1.0) == []
    assert points(alerts, [0.5] * 3 + [0.1], 1000.0) == []  # too short
    assert points(alerts, [0.5] * 8, 2000.0) == [IN_A_ROW - 1]
    assert points(alerts, [0.1, *[0.9] * 8], 3000.0) == [IN_A_ROW]


def test_there_is_no_alert_before_the_stream_is_known():
    assert points(Alerts(AlertOptions(novelty=0.5)), [0.1] * (LEAST - 1) + [0.2], 1.0) == []


@pytest.mark.parametrize(
    "wrong", [{"within": "5"}, {"within": ""}, {"novelty": 1.0}, {"webhook": "file:///etc/passwd"}]
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        AlertOptions(**wrong)


def test_alerts_are_written_and_posted_until_they_arrive(capfdbinary, monkeypatch):
    came, codes = [], [500, 200]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            came.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(codes[len(came) - 1])
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/hook"
        Alerts(AlertOptions(webhook=address)).send({"alert": "cluster", "cluster": 7})
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert came == [{"alert": "cluster", "cluster": 7}] * 2
    assert json.loads(capfdbinary.readouterr().out) == came[0]
