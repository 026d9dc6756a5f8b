"""Reading the next batches in a thread of its own while the present one is absorbed."""

import queue
import threading
from collections.abc import Generator, Iterator
from typing import TypeVar

T = TypeVar("T")

DEPTH = 4
"""Batches that may wait."""
POLL_SECONDS = 0.1


def read_ahead(items: Iterator[T], depth: int = DEPTH) -> Generator[T]:
    """Yield the same items, made by another thread a few at a time ahead.

    Examples
    --------
    >>> list(read_ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    waiting: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: T | None, error: BaseException | None) -> None:
        while not stopped.is_set():
            try:
                return waiting.put((item, error), timeout=POLL_SECONDS)
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put(item, None)
                if stopped.is_set():
                    return
            put(None, StopIteration())
        except BaseException as error:  # raised again where the items are used
            put(None, error)

    thread = threading.Thread(target=work, name="bnpstream-reader", daemon=True)
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
