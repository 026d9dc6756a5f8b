"""Server-sent events: what an open page is told."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import orjson

MOST_DIGITS = 18
"""Of the number of an event; Python reads no numbers of thousands."""
KEPT = 256
"""Events kept for pages that have lost their connection."""
THROTTLE = 1.0
"""Least seconds between two messages to a page."""
ALIVE = 15.0
"""Seconds of silence after which a page is sent a sign of life."""
RETRY = 2000
"""Milliseconds after which a page reconnects."""


class Event(NamedTuple):
    """An event to send."""

    number: int
    name: str
    data: bytes


class Hub:
    """Keeps the last events; pages read at their own pace, so that none delays the others."""

    def __init__(self) -> None:
        self._epoch = f"{time.time_ns():x}"
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._latest: dict[str, Event] = {}
        self._number = 0
        self._news = asyncio.Event()
        self._closed = False
        self.n_streams = 0

    def publish(self, name: str, document: Any) -> None:
        """Send an event to all pages."""
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
        """Yield events as they come, starting after the last one that the page saw."""
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
        """Return the number of the last event that a page saw; -1 if it must start anew."""
        epoch, _, number = (last_id or "").partition("-")
        known = epoch == self._epoch and number.isdecimal() and len(number) <= MOST_DIGITS
        return int(number) if known and int(number) <= self._number else -1

    def _after(self, seen: int) -> bytes:
        """Return the events after one; of events that replace each other, only the last."""
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
