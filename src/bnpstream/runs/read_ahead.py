"""Reads the next batches in a thread while the current one is absorbed."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any

from bnpstream.sources import Records
from bnpstream.sources.protocol import JSON
from bnpstream.sources.stack import stacked

Item = tuple[Records, JSON]

AHEAD = 4
"""Full batches that may wait."""
PATIENCE = 1.0
"""Seconds to wait for a reader after it was stopped."""


def read_ahead(
    items: Iterator[Item],
    batch_rows: int,
    stop: Callable[[], None] | None = None,
    quiet: float | None = None,
) -> Generator[Item | None]:
    """Yield batches that another thread reads; join small ones that wait.

    Parameters
    ----------
    items : iterator of (Records, position)
        Batches.
    batch_rows : int
        Most records in a joined batch.
    stop : callable, optional
        Stops `items` soon; called when no more are wanted.
    quiet : float, optional
        Seconds without a batch after which None is yielded, repeatedly.
    """
    waiting: deque[Item] = deque()
    changed = threading.Condition()
    ended: list[BaseException | None] = []
    stopped, most = False, AHEAD * batch_rows

    def work() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                with changed:
                    changed.wait_for(lambda: stopped or sum(map(_records, waiting)) < most)
                    if stopped:
                        return
                    waiting.append(item)
                    changed.notify_all()
        except BaseException as caught:  # raised again by the consumer
            error = caught
        with changed:
            ended.append(error)
            changed.notify_all()

    thread = threading.Thread(target=work, name="bnpstream-reader", daemon=True)
    thread.start()
    try:
        while True:
            with changed:
                changed.wait_for(lambda: waiting or ended, quiet)
                taken = _take(waiting, batch_rows)
                changed.notify_all()
            if taken:
                yield _joined(taken)
            elif not ended:
                yield None
            elif ended[0] is not None:
                raise ended[0]
            else:
                return
    finally:
        with changed:
            stopped = True
            changed.notify_all()
        if stop is not None:
            stop()
            thread.join(PATIENCE)


def _records(item: Item) -> int:
    return max(1, len(item[0]) + len(item[0].rejects))


def _take(waiting: "deque[Item]", batch_rows: int) -> list[Item]:
    """Return batches from the front, at least one, of together at most a full batch."""
    taken: list[Item] = []
    room = batch_rows
    while waiting and (not taken or (_records(waiting[0]) <= room and not waiting[0][0].is_whole)):
        taken.append(waiting.popleft())
        room = 0 if taken[-1][0].is_whole else room - _records(taken[-1])
    return taken


def _joined(items: list[Item]) -> Item:
    """Return several batches as one."""
    if len(items) == 1:
        return items[0]
    parts = [records for records, _ in items]
    rows = stacked([part.rows for part in parts if len(part) > 0])
    names = ("numbers", "ids", "excerpts", "rejects", "times", "places")
    rest: dict[str, Any] = {
        name: [one for part in parts for one in getattr(part, name)] for name in names
    }
    return Records(rows, **rest), items[-1][1]
