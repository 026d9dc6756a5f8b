"""NATS JetStream: messages of a stream from a sequence number on; answers to a subject."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import nats
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from bnpstream.sources.brokers.address import Address
from bnpstream.sources.brokers.broker import Answer, Bounds, Broker, DownError, Message, Outlet
from bnpstream.sources.protocol import JSON, LostError

T = TypeVar("T")

ANSWER_SECONDS = 5.0
IDLE_SECONDS = 300.0
"""Seconds without requests after which the server removes a consumer."""


async def _ignore(error: Exception) -> None:
    """Ignore an error; the next request will meet it again."""


class _Link:
    """A connection in a thread, and the meaning of its errors."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None

    def connect(self) -> None:
        """Connect or reconnect."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_run, args=(self._loop,), name="bnpstream-nats", daemon=True
            )
            self._thread.start()
        self._hang_up()
        self._client = self.ask(
            nats.connect(
                f"nats://{self.address.hosts}",
                user=self.address.user,
                password=self.address.password,
                connect_timeout=int(ANSWER_SECONDS),
                allow_reconnect=False,
                error_cb=_ignore,
            )
        )
        self.stream: Any = self._client.jetstream(timeout=ANSWER_SECONDS)

    def ask(self, request: Coroutine[Any, Any, T], seconds: float = ANSWER_SECONDS) -> T:
        """Return the result of a request."""
        assert self._loop is not None
        waiting = asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(request, 2 * seconds), self._loop
        )
        try:
            return waiting.result()
        except NotFoundError as error:
            raise LostError(f"{self.address}: there is no stream {self.address.name!r}") from error
        except NoStreamResponseError as error:
            raise LostError(f"{self.address}: no stream has this subject: create one") from error
        except APIError as error:
            raise LostError(f"{self.address}: {error.description}") from error
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise DownError(str(error) or type(error).__name__) from error

    @property
    def is_closed(self) -> bool:
        """Return whether the server has closed the connection."""
        return bool(self._client.is_closed)

    def _hang_up(self) -> None:
        if self._client is not None:
            with suppress(DownError, LostError):
                self.ask(self._client.close())
            self._client = None

    def close(self) -> None:
        """Close the connection and end its thread."""
        self._hang_up()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop = None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, then cancel what still runs in it."""
    loop.run_forever()
    loop.run_until_complete(_end_others())
    loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class Messages(Broker):
    """Messages of a stream, which is a single lane; an offset is a sequence number.

    Messages are pulled on request and not acknowledged. The server numbers what it delivers; if a
    number is missing or late, reading restarts after the last message that came in order. The
    consumer on the server has no name and lives as long as it is used.
    """

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._link = _Link(address)
        self._pull: Any = None
        self._delivered, self._has_gap = 0, False
        self._until: int | None = None
        self._is_over = False

    def connect(self) -> None:
        """Connect or reconnect."""
        self._link.connect()

    def _about(self) -> Any:
        return self._link.ask(self._link.stream.stream_info(self.address.name))

    def bounds(self) -> list[Bounds]:
        """Return the first and the last sequence number."""
        state = self._about().state
        return [Bounds(max(0, min(state.first_seq - 1, state.last_seq)), state.last_seq)]

    def lineage(self, start: str) -> JSON:
        """Return when the stream was created."""
        return str(self._about().created)

    def missing(self, lane: int, last: JSON, bounds: Bounds, lineage: JSON, n_read: int) -> str:
        """Return why reading cannot continue."""
        made = self.lineage("")
        if made != lineage:
            return f"it was created at {made}, and the stream that was read at {lineage}"
        return super().missing(lane, last, bounds, lineage, n_read)

    def seek(self, last: dict[int, JSON], until: dict[int, JSON] | None = None) -> None:
        """Create a consumer that starts after a sequence number."""
        self._until = None if until is None else until[0]
        self._is_over = self._until is not None and last[0] >= self._until
        if self._is_over:
            return
        wanted = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=last[0] + 1,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=IDLE_SECONDS,
            mem_storage=True,
        )
        link, name = self._link, self.address.name
        self._delivered, self._has_gap = 0, False
        made = link.ask(link.stream.add_consumer(name, wanted))
        self._pull = link.ask(link.stream.pull_subscribe_bind(consumer=made.name, stream=name))

    def read(self, n: int, seconds: float) -> list[Message] | None:
        """Pull messages."""
        if self._is_over:
            return None
        if self._has_gap:
            raise DownError("messages were lost or reordered on their way")
        fetched: list[Any] = self._link.ask(self._fetch(n, seconds))
        if not fetched and self._until is not None:  # the last messages were removed
            self._is_over = self._link.ask(self._pull.consumer_info()).num_pending == 0
        found = self._in_order(fetched)
        if self._until is not None and found and found[-1].offset >= self._until:
            self._is_over = True
            return [one for one in found if one.offset <= self._until]
        return found

    async def _fetch(self, n: int, seconds: float) -> list[Any]:
        if self._link.is_closed:
            raise nats.errors.ConnectionClosedError
        try:
            found: list[Any] = await self._pull.fetch(n, timeout=seconds)
        except nats.errors.TimeoutError:
            return []
        return found

    def _in_order(self, fetched: list[Any]) -> list[Message]:
        """Return messages up to the first one delivered out of order."""
        found: list[Message] = []
        for one in fetched:
            if one.metadata.sequence.consumer != self._delivered + 1:
                self._has_gap = True
                break
            self._delivered += 1
            found.append(self._message(one))
        return found

    def _message(self, one: Any) -> Message:
        about = one.metadata
        if not self.has_details:
            return Message(0, about.sequence.stream, one.data)
        return Message(
            0,
            about.sequence.stream,
            one.data,
            one.subject,
            about.timestamp.timestamp(),
            one.headers,
        )

    def spot(self, lane: int, offset: Any) -> dict[str, JSON]:
        """Return stream and sequence number."""
        return {"stream": self.address.name, "sequence": offset}

    def close(self) -> None:
        """Disconnect."""
        self._link.close()


class Answers(Outlet):
    """Answers to a subject of a stream; the server drops answers whose key it already has."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._link = _Link(address)

    def connect(self) -> None:
        """Connect or reconnect."""
        self._link.connect()

    def send(self, answers: Sequence[Answer]) -> None:
        """Publish answers, and wait until all are stored."""
        self._link.ask(self._publish(answers), 2 * ANSWER_SECONDS)

    async def _publish(self, answers: Sequence[Answer]) -> None:
        publish, subject = self._link.stream.publish, self.address.name
        await asyncio.gather(
            *(publish(subject, line, headers={"Nats-Msg-Id": key}) for key, line in answers)
        )

    def close(self) -> None:
        """Disconnect."""
        self._link.close()
