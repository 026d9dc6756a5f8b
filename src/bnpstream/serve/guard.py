"""Checks on every request, before anything else looks at it: token, host, size."""

import binascii
import hmac
import ipaddress
import sys
import time
from base64 import b64decode
from hashlib import sha256
from typing import Any

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 4 << 20
"""Largest request body, in bytes."""
MOST_CHARACTERS = 1000
"""Longest path."""
OPEN = ("/healthz", "/readyz")
"""Paths that need no token: they reveal nothing about the data."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
        "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached only from this machine.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Passes on the requests that are allowed, and refuses the others.

    Parameters
    ----------
    app : ASGI application
        The application behind it.
    token : str or None
        Secret that requests must send, as "Authorization: Bearer TOKEN" or as the password that
        a browser asks for. Without a token, only requests addressed to this machine are
        answered, so that a page of another site cannot read the data through the browser.
    log : bool
        Write a line of JSON for every request to standard error.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, log: bool = False) -> None:
        self._app, self._log = app, log
        self._digest = None if token is None else sha256(token.encode()).digest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal(scope, receive, sent)
            else:
                await self._app(scope, _limited(receive), sent)
        finally:
            if self._log:
                self._write(scope, status, time.perf_counter() - began)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if len(scope["path"]) > MOST_CHARACTERS:  # numbers in it are read before anybody looks
            return problem(414, f"the path is longer than {MOST_CHARACTERS} characters")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > MOST_BYTES:
            return problem(413, f"the body has {length} bytes; at most {MOST_BYTES} are allowed")
        if self._digest is None:
            host = headers.get("host", "")
            name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
            if not is_loopback(name.strip("[]")):
                return problem(
                    421, "without --token, only requests addressed to localhost are answered"
                )
        elif scope["path"] not in OPEN and not self._knows(headers.get("authorization", "")):
            refused = problem(401, "send the token: Authorization: Bearer TOKEN")
            refused.headers["www-authenticate"] = (
                'Basic realm="bnpstream: the token is the password"'
            )
            return refused
        return None

    def _knows(self, authorization: str) -> bool:
        """Return whether a request has the token; compares in constant time."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = b64decode(given, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                given = ""
        elif scheme.lower() != "bearer":
            given = ""
        found = sha256(given.encode("utf-8", "surrogateescape")).digest()
        return hmac.compare_digest(found, self._digest or b"")

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        line: dict[str, Any] = {
            "time": round(time.time(), 3),
            "event": "request",
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(1000 * seconds, 1),
        }
        sys.stderr.buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        sys.stderr.flush()


class TooLargeError(Exception):
    """A body is larger than allowed."""


def _limited(receive: Receive) -> Receive:
    """Return a `receive` that stops after the largest size allowed."""
    n_bytes = 0

    async def limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > MOST_BYTES:
            raise TooLargeError
        return message

    return limited


def answer(document: Any, status: int = 200) -> Response:
    """Return a document as JSON."""
    return Response(orjson.dumps(document), status, media_type="application/json")


def problem(status: int, message: str) -> Response:
    """Return an error as JSON: what is wrong, and what to do."""
    return answer({"error": message}, status)
