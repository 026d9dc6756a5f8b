"""Small runs, and real servers for them on free loopback ports."""

import base64
import http.client
import json
import random
import threading
import time
from contextlib import contextmanager

from bnpstream.runs.options import Pace
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start

TOPICS = ("rain wind snow hail storm sun", "bond stock yield bank rate loan", "goal team match cup")
PATIENCE = 300.0
"""Seconds: a busy machine is slow."""


def text_records(first, n):
    """Return records of three topics; record i is the same in every call."""
    return [
        {"id": f"d{i}", "text": " ".join(random.Random(i).choices(TOPICS[i % 3].split(), k=8))}
        for i in range(first, first + n)
    ]


def write_lines(path, records, mode="w"):
    with path.open(mode) as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    return path


def fit(source, out, *, resume=False):
    """Learn a file to its end."""
    feed = start(out, RunOptions((str(source),)), resume=resume)
    try:
        assert feed.run(Pace(), Interrupts(), lambda status: None)
    finally:
        feed.close()
    return out


def wait_for(condition):
    """Wait until something holds, and return it."""
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)
    return found


class Served:
    """A server, as a client sees it."""

    def __init__(self, address):
        self.host, _, self.port = address.removeprefix("http://").strip("/").rpartition(":")
        self.address = address

    def ask(self, path, body=None, headers=None, method=None):
        """Return status, headers and body of an answer."""
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=PATIENCE)
        given = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            given.setdefault("content-type", "application/json")
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, given)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def json(self, path, body=None, **more):
        status, _, data = self.ask(path, body, **more)
        assert status == 200, (status, data)
        return json.loads(data)

    @contextmanager
    def events(self, last_id=None):
        """Yield an iterator of (id, name, document)."""
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=PATIENCE)
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        connection.request("GET", "/events", headers=headers)
        answer = connection.getresponse()
        assert answer.getheader("content-type").startswith("text/event-stream")
        try:
            yield _parsed(answer)
        finally:
            answer.close()
            connection.close()


def _parsed(lines):
    event = {}
    for line in lines:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            event[name] = value
        elif "data" in event:
            yield event["id"], event["event"], json.loads(event["data"])
            event = {}


def password(token):
    """Return what a browser sends for a password."""
    return {"Authorization": "Basic " + base64.b64encode(f"me:{token}".encode()).decode()}


@contextmanager
def serving(folder, *, ready=True, **options):
    """Serve a run in a thread of this process."""
    from bnpstream.serve.app import ServeOptions, Server, Service

    addresses = []
    server = Server(Service(folder, ServeOptions(port=0, **options)), addresses.append)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        served = Served(wait_for(lambda: addresses or not thread.is_alive()) and addresses[0])
        if ready:
            wait_for(lambda: served.ask("/readyz")[0] == 200)
        yield served
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()
