"""The server: its routes, and the task that watches the run."""

import asyncio
import signal
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from bnpstream.runs.options import OptionError
from bnpstream.serve.alerts import AlertOptions, Alerts
from bnpstream.serve.api import PATIENCE, Answers, RefusedError, records_of
from bnpstream.serve.events import Hub
from bnpstream.serve.guard import Guard, TooLargeError, answer, is_loopback, problem
from bnpstream.serve.inbox import Inbox
from bnpstream.serve.learner import Learner
from bnpstream.serve.metrics import Metrics
from bnpstream.serve.openapi import openapi
from bnpstream.serve.pages import Pages, now_document
from bnpstream.serve.watch import Watch
from bnpstream.storage import RunError

LOOK_SECONDS = 1.0
"""Seconds between two looks at the run directory."""
MOST_STREAMS = 200
"""Most pages that may be open at a time."""
MOST_CONNECTIONS = 512
ACK_SECONDS = 0.2
"""Seconds between two looks for a checkpoint that a request waits for."""
SHOWN_BIRTHS = 20
"""Most new clusters reported to a page at a time."""
UNLESS = {"/predict": "--api", "/novelty": "--api", "/learn": "--learn"}
"""Options that paths need."""
TYPES = {"style.css": "text/css", "script.js": "text/javascript"}


@dataclass(frozen=True)
class ServeOptions:
    """Options of a server."""

    host: str = "127.0.0.1"
    port: int = 8765
    api: bool = False
    learn: bool = False
    token: str | None = None
    log_json: bool = False
    alerts: AlertOptions = field(default_factory=AlertOptions)

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and not self.token:
            raise OptionError(
                f"--host {self.host} can be reached from other machines: give --token too, or set "
                "BNPSTREAM_TOKEN"
            )


class Service:
    """Handles all requests about one run.

    Parameters
    ----------
    folder : Path
        The run directory.
    options : ServeOptions
        The user's options.
    """

    def __init__(self, folder: Path, options: ServeOptions) -> None:
        self.options = options
        self.watch, self.hub = Watch(folder), Hub()
        self.pages, self.answers = Pages(self.watch), Answers(self.watch)
        self.metrics = Metrics(self.watch, self.hub)
        self.alerts = Alerts(options.alerts)
        self.inbox = Inbox(folder) if options.learn else None
        self.learner: Learner | None = None
        self.failure = ""
        """Why the server had to stop."""
        self._told: dict[str, Any] = {}

    def app(self) -> Guard:
        """Return the application."""
        routes = [
            self._route("/", self._home),
            self._route("/style.css", self._asset),
            self._route("/script.js", self._asset),
            self._route("/topic-{id:int}", self._page),
            self._route("/cluster-{id:int}", self._page),
            self._route("/search", self._search),
            self._route("/events", self._events),
            self._route("/now", self._now),
            self._route("/clusters", self.answers.clusters),
            self._route("/clusters/{id:int}", self.answers.cluster),
            self._route("/topics", self.answers.topics),
            self._route("/lineage", self.answers.lineage),
            self._route("/healthz", self._healthz),
            self._route("/readyz", self._readyz),
            self._route("/metrics", self._metrics),
            self._route("/openapi.json", self._openapi),
        ]
        if self.options.api:
            routes.append(self._route("/predict", self.answers.predict, "POST"))
            routes.append(self._route("/novelty", self.answers.novelty, "POST"))
        if self.inbox is not None:
            routes.append(self._route("/learn", self._learn, "POST"))
        made = Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={
                RefusedError: lambda request, error: error.response,
                TooLargeError: lambda request, error: problem(413, "the body is too large"),
                HTTPException: _http_problem,
            },
        )
        return Guard(made, self.options.token, log=self.options.log_json)

    def _route(self, path: str, handle: Callable[[Request], Any], method: str = "GET") -> Route:
        """Return a route that counts its requests; slow handlers run outside the event loop."""

        async def counted(request: Request) -> Response:
            began, status = time.perf_counter(), 500
            try:
                if asyncio.iscoroutinefunction(handle):
                    response: Response = await handle(request)
                else:
                    response = await run_in_threadpool(handle, request)
                status = response.status_code
                return response
            except RefusedError as error:
                status = error.response.status_code
                raise
            finally:
                self.metrics.note(path, status, time.perf_counter() - began)

        return Route(path, counted, methods=[method])

    def _home(self, request: Request) -> Response:
        return HTMLResponse(self.pages.home())

    def _page(self, request: Request) -> Response:
        snapshot, id = self.answers.snapshot(), request.path_params["id"]
        is_topic = request.url.path.rpartition("/")[2].startswith("topic")
        page = (self.pages.topic if is_topic else self.pages.cluster)(snapshot, id)
        if page is None:
            raise RefusedError(404, f"no {'topic' if is_topic else 'cluster'} {id}")
        return HTMLResponse(page)

    def _search(self, request: Request) -> Response:
        query = request.query_params.get("q", "")[:200]
        return HTMLResponse(self.pages.search(self.answers.snapshot(), query))

    def _asset(self, request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        headers = {"cache-control": "no-cache"}
        return Response(self.pages.assets[name], media_type=TYPES[name], headers=headers)

    async def _events(self, request: Request) -> Response:
        if self.hub.n_streams >= MOST_STREAMS:
            raise RefusedError(503, f"{MOST_STREAMS} pages are open already: close one")
        stream = self.hub.stream(request.headers.get("last-event-id"))
        headers = {"x-accel-buffering": "no"}
        if request.method == "HEAD":  # of a stream that never ends
            return Response(media_type="text/event-stream", headers=headers)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def _now(self, request: Request) -> Response:
        return answer(now_document(self.watch))

    async def _healthz(self, request: Request) -> Response:
        return answer({"state": "runs"})

    async def _readyz(self, request: Request) -> Response:
        if self.watch.snapshot is None:
            return problem(503, self.watch.problem or "no checkpoint has been loaded yet")
        if self.options.api and not self.answers.warm:
            return problem(503, "getting ready for the first answer")
        return answer({"state": "ready"})

    def _metrics(self, request: Request) -> Response:
        return Response(generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def _openapi(self, request: Request) -> Response:
        return answer(openapi(with_predict=self.options.api, with_learn=self.options.learn))

    async def _learn(self, request: Request) -> Response:
        """Append records to the log; answer when they are on disk, or in a checkpoint."""
        assert self.inbox is not None
        ack = request.query_params.get("ack", "logged")
        if ack not in ("logged", "checkpoint"):
            raise RefusedError(400, f"ack is {ack[:40]!r}: give logged or checkpoint")
        values = await records_of(request)
        try:
            logged = await asyncio.to_thread(self.inbox.append, values)
        except RunError as error:
            raise RefusedError(503, str(error)) from error
        is_in = ack == "logged" or await self._until_saved(logged.behind)
        document = {
            "logged": logged.new,
            "known": logged.known,
            "records": logged.behind,
            "checkpoint": ack == "checkpoint" and is_in,
        }
        return answer(document, 200 if is_in else 202)

    async def _until_saved(self, behind: int) -> bool:
        """Wait until a checkpoint has this many records; return whether one did in time."""
        until = time.monotonic() + PATIENCE
        while await asyncio.to_thread(self.watch.records_saved) < behind:
            if time.monotonic() > until:
                return False
            await asyncio.sleep(ACK_SECONDS)
        return True

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        if self.inbox is not None:
            self.learner = Learner(self.watch.folder, self.inbox.path)
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            self.answers.close()
            if self.learner is not None:
                await asyncio.to_thread(self.learner.stop)

    async def _follow(self) -> None:
        """Look at the run directory again and again, and publish what is new."""
        while True:
            if self.learner is not None and self.learner.ended is not None:
                self.failure = f"the learning process exited with status {self.learner.ended}"
                signal.raise_signal(signal.SIGTERM)
                return
            try:
                await self._look()
            except Exception:  # a dashboard goes on: the next look may succeed
                traceback.print_exc(file=sys.stderr)
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        watch, alerts = self.watch, self.alerts
        await asyncio.to_thread(watch.look)
        alerts.births(watch.births, time.time())
        if watch.births:
            latest = [birth._asdict() for birth in watch.births[-SHOWN_BIRTHS:]]
            self.hub.publish("births", {"births": latest})
        found = alerts.strange(watch)
        if await asyncio.to_thread(watch.load):
            assert watch.snapshot is not None
            self.hub.publish("checkpoint", {"version": watch.snapshot.version})
            found += alerts.grown(watch.snapshot, time.time())
            if self.options.api:
                await self.answers.warm_up()
        now = watch.now.document()
        if now != self._told:
            self._told = now
            self.hub.publish("now", now_document(watch))
        for alert in found:
            stamp = {"run": str(watch.folder), "rows": watch.now.rows, "time": time.time()}
            await asyncio.to_thread(alerts.send, alert | stamp)


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = str(error.detail)
    if error.status_code == 404:
        option = UNLESS.get(request.url.path)
        message = f"needs bnpstream serve {option}" if option else "see /openapi.json"
        message = f"nothing here: {message}"
    response = problem(error.status_code, message)
    response.headers.update(error.headers or {})
    return response


class Server(uvicorn.Server):
    """A server that closes its event streams before it waits for other requests.

    Parameters
    ----------
    service : Service
        The application to serve.
    started : callable
        Called with the address once the server listens.
    """

    def __init__(self, service: Service, started: Callable[[str], None]) -> None:
        options = service.options
        self._service, self._tell = service, started
        super().__init__(
            uvicorn.Config(
                service.app(),
                options.host,
                options.port,
                log_level="warning",
                access_log=False,
                ws="none",
                server_header=False,
                limit_concurrency=MOST_CONNECTIONS,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=5,
            )
        )

    async def startup(self, sockets: Any = None) -> None:
        """Start to listen, and report the address."""
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._tell(f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/")

    async def shutdown(self, sockets: Any = None) -> None:
        """Shut down."""
        self._service.hub.close()
        await super().shutdown(sockets)
