"""Server-sent events: what a page is told while it is open."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import orjson

KEPT = 256
"""Events that a page which lost its connection can still get."""
THROTTLE = 1.0
"""Seconds between two messages to a page, at least."""
ALIVE = 15.0
"""Seconds after which a page is told that nothing happened."""
RETRY = 2000
"""Milliseconds after which a page connects again."""


class Event(NamedTuple):
    """Something to tell."""

    number: int
    name: str
    data: bytes


class Hub:
    """Keeps the last events; every page reads them at its own pace, so none can hold up others."""

    def __init__(self) -> None:
        self._epoch = f"{time.time_ns():x}"
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._latest: dict[str, Event] = {}
        self._number = 0
        self._news = asyncio.Event()
        self._closed = False
        self.n_streams = 0

    def publish(self, name: str, document: Any) -> None:
        """Tell all pages."""
        self._number += 1
        event = Event(self._number, name, orjson.dumps(document))
        self._kept.append(event)
        self._latest[name] = event
        news, self._news = self._news, asyncio.Event()
        news.set()

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._news.set()

    async def stream(self, last_id: str | None) -> AsyncIterator[bytes]:
        """Yield events as they come, after the one that a page saw last."""
        seen = self._seen(last_id)
        self.n_streams += 1
        try:
            yield f"retry: {RETRY}\n\n".encode()
            while not self._closed:
                news = self._news
                if message := self._after(seen):
                    seen = self._number
                    yield message
                    await asyncio.sleep(THROTTLE)
                    continue
                try:
                    await asyncio.wait_for(news.wait(), ALIVE)
                except TimeoutError:
                    yield b": nothing new\n\n"
        finally:
            self.n_streams -= 1

    def _seen(self, last_id: str | None) -> int:
        """Return the number of the event that a page saw last; -1 if it has to begin anew."""
        epoch, _, number = (last_id or "").partition("-")
        known = epoch == self._epoch and number.isdecimal() and int(number) <= self._number
        return int(number) if known else -1

    def _after(self, seen: int) -> bytes:
        """Return the events after one: of those that replace each other, the last."""
        if seen < self._number - len(self._kept):
            found = sorted(self._latest.values())
        else:
            latest = {event.number for event in self._latest.values()}
            found = [
                event
                for event in self._kept
                if event.number > seen and (event.name == "births" or event.number in latest)
            ]
        return b"".join(
            b"id: %s-%d\nevent: %s\ndata: %s\n\n"
            % (self._epoch.encode(), event.number, event.name.encode(), event.data)
            for event in found
        )
