"""The API for programs: clusters, topics, lineage and predictions."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from bnpstream.runs.description import document_of
from bnpstream.runs.score import Prediction, predict_records
from bnpstream.serve.guard import MOST_BYTES, TooLargeError, answer, problem
from bnpstream.serve.records import JsonRecords
from bnpstream.serve.watch import Snapshot, Watch

MOST_ROWS = 1000
"""Most records in a request."""
LISTED = 1000
"""Clusters or events in an answer, unless the request says otherwise."""
MOST_LISTED = 10_000
PATIENCE = 30.0
"""Seconds allowed for a request body or an answer."""
MOST_WAITING = 64
"""Requests that may wait for their turn; any more are told to come again."""

T = TypeVar("T")


class RefusedError(Exception):
    """A request cannot be answered."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.response = problem(status, message)


class Answers:
    """Answers from the last checkpoint, one request at a time, outside the event loop.

    Parameters
    ----------
    watch : Watch
        Provides the checkpoint.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._worker = ThreadPoolExecutor(1, "bnpstream-answers")
        self._waiting = 0
        self._records: tuple[str, JsonRecords] | None = None
        self.warm = ""
        """The checkpoint whose loops have been compiled."""

    def close(self) -> None:
        """Shut down the worker."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def snapshot(self) -> Snapshot:
        """Return the last checkpoint; 503 if there is none yet."""
        if self._watch.snapshot is None:
            reason = self._watch.problem or "the checkpoint is being loaded"
            raise RefusedError(503, f"{reason}: try again later")
        return self._watch.snapshot

    def clusters(self, request: Request) -> Response:
        """List clusters, largest first."""
        snapshot = self.snapshot()
        about = snapshot.about
        top, topic = _whole(request, "top", LISTED), _whole(request, "topic", None)
        found = [one for one in about.clusters if topic is None or one.topic == topic]
        listed = [document_of(one, about.kind) for one in found[:top]]
        return answer(_stamped(snapshot, n_clusters=len(found), clusters=listed))

    def cluster(self, request: Request) -> Response:
        """Describe one cluster."""
        snapshot, id = self.snapshot(), request.path_params["id"]
        for one in snapshot.about.clusters:
            if one.id == id:
                return answer(_stamped(snapshot, cluster=document_of(one, snapshot.about.kind)))
        raise RefusedError(404, f"no cluster {id} now: see /lineage?id={id}")

    def topics(self, request: Request) -> Response:
        """List topics, largest first."""
        snapshot = self.snapshot()
        found = [document_of(one, snapshot.about.kind) for one in snapshot.about.topics]
        return answer(_stamped(snapshot, topics=found))

    def lineage(self, request: Request) -> Response:
        """List the events of one cluster, or of all clusters and topics, after a row."""
        snapshot = self.snapshot()
        id, after = _whole(request, "id", None), _whole(request, "after", None)
        limit = _whole(request, "limit", LISTED)
        events = [
            event
            for event in snapshot.about.events
            if (after is None or event.n_observations > after)
            and (
                id is None
                or (event.level == "cluster" and id in (event.id, event.into, *event.others))
            )
        ]
        listed = [event.record() for event in events[:limit]]
        return answer(_stamped(snapshot, n_events=len(events), events=listed))

    async def predict(self, request: Request) -> Response:
        """Return the cluster of each record."""
        return await self._answered(request, "all")

    async def novelty(self, request: Request) -> Response:
        """Return the novelty of each record: the probability that it belongs to a new cluster."""
        return await self._answered(request, "novelty")

    async def _answered(self, request: Request, what: Literal["all", "novelty"]) -> Response:
        values, snapshot = await records_of(request), self.snapshot()
        found = await self.beside(lambda: self._predicted(snapshot, values))
        if what == "novelty":
            kept = ("record", "id", "novelty", "error")
            found = [{name: one[name] for name in kept if name in one} for one in found]
        return answer(_stamped(snapshot, answers=found))

    async def beside(self, work: Callable[[], T]) -> T:
        """Run something in the worker; 503 if too many requests wait or it takes too long."""
        if self._waiting >= MOST_WAITING:
            raise RefusedError(503, "too many requests are waiting: try again in a second")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await asyncio.wait_for(loop.run_in_executor(self._worker, work), PATIENCE)
        except TimeoutError:
            raise RefusedError(503, f"no answer within {PATIENCE:g} s: send fewer") from None
        finally:
            self._waiting -= 1

    def _predicted(self, snapshot: Snapshot, values: list[Any]) -> list[dict[str, Any]]:
        """Return an answer for each record, in order."""
        if self._records is None or self._records[0] != snapshot.version:
            self._records = snapshot.version, JsonRecords(snapshot.run.schema)
        found: dict[int, dict[str, Any]] = {}
        for part, predictions in predict_records(snapshot.run, self._records[1].records(values)):
            for reject in part.rejects:
                found[reject.record] = {"record": reject.record, "error": reject.reason}
            for one in predictions:
                found[one.record] = _document(one)
        return [found[i] for i in range(len(values))]

    async def warm_up(self) -> None:
        """Answer once, so that no request has to wait for loops to compile."""
        snapshot = self._watch.snapshot
        if snapshot is not None and self.warm != snapshot.version:
            loop = asyncio.get_running_loop()
            example = [JsonRecords(snapshot.run.schema).example()]
            await loop.run_in_executor(self._worker, self._predicted, snapshot, example)
            self.warm = snapshot.version


async def records_of(request: Request) -> list[Any]:
    """Return the records of a request body, {"records": [...]}; refuse any other body."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RefusedError(415, "send JSON, with content-type: application/json")
    try:
        body = await asyncio.wait_for(request.body(), PATIENCE)
    except TimeoutError:
        raise RefusedError(408, f"the body did not arrive within {PATIENCE:g} s") from None
    except TooLargeError:
        raise RefusedError(413, f"the body is larger than {MOST_BYTES} bytes") from None
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RefusedError(400, f"not JSON: {error}") from None
    values = document.get("records") if isinstance(document, dict) else None
    if not isinstance(values, list):
        raise RefusedError(400, 'send {"records": [...]}, a list of records')
    if not 1 <= len(values) <= MOST_ROWS:
        raise RefusedError(400, f"got {len(values)} records: send 1 to {MOST_ROWS}")
    return values


def _document(one: Prediction) -> dict[str, Any]:
    others = [{"cluster": id, "probability": share} for id, share in one.alternatives]
    return one._asdict() | {"alternatives": others}


def _stamped(snapshot: Snapshot, **document: Any) -> dict[str, Any]:
    """Return a document with the version and row count of its checkpoint."""
    return {"version": snapshot.version, "rows": snapshot.about.rows, **document}


def _whole(request: Request, name: str, default: int | None) -> int | None:
    """Return a query parameter that must be a whole number."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise RefusedError(400, f"{name} is {text[:40]!r}: give a whole number")
    if name in ("top", "limit") and not 1 <= int(text) <= MOST_LISTED:
        raise RefusedError(400, f"{name} is {text}: give 1 to {MOST_LISTED}")
    return int(text)
