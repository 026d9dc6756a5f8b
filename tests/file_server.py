"""A real HTTP server for files, with the vices of real ones, that records what it is asked for."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """What a server has, how it behaves, and what it was asked for."""

    files: dict[str, bytes]
    ranges: bool = True
    """Whether it sends parts of files."""
    if_range: bool = True
    """Whether it looks at If-Range."""
    etag: str | None = '"1"'
    last_modified: str | None = None
    status: int = 200
    encoding: str | None = None
    drop_after: int | None = None
    """Bytes of a file after which it closes the connection."""
    stall_after: int | None = None
    """Bytes of a file after which it sends nothing until it is closed."""
    url: str = ""
    requests: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    """File, Range and If-Range of every request."""
    sent: int = 0
    """Bytes of files."""
    stalled: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(**options):
    """Serve files on a free port of this machine."""
    served = Served(**options)

    class Handler(_Handler):
        server_knows = served

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}/data/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        served.closed.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_knows: Served

    def do_GET(self):
        served = self.server_knows
        name = self.path.rpartition("/")[2]
        asked, condition = self.headers["Range"], self.headers["If-Range"]
        served.requests.append((name, asked, condition))
        if served.status != 200 or name not in served.files:
            return self._answer(404 if served.status == 200 else served.status, b"")
        body = served.files[name]
        marks = (None, served.etag, served.last_modified)
        if not asked or not served.ranges or (served.if_range and condition not in marks):
            return self._answer(200, body)
        first = int(asked.removeprefix("bytes=").removesuffix("-"))
        if first >= len(body):
            return self._answer(416, b"")
        place = f"bytes {first}-{len(body) - 1}/{len(body)}"
        return self._answer(206, body[first:], place)

    def _answer(self, status, body, place=None):
        served = self.server_knows
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in {
            "Content-Range": place,
            "ETag": served.etag,
            "Last-Modified": served.last_modified,
            "Content-Encoding": served.encoding,
        }.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        stop = served.drop_after if served.stall_after is None else served.stall_after
        part = body[:stop]
        self.wfile.write(part)
        self.wfile.flush()
        served.sent += len(part)
        if len(part) < len(body):
            if served.stall_after is not None:
                served.stalled.set()
                served.closed.wait()
            self.close_connection = True

    def log_message(self, *arguments):
        pass
