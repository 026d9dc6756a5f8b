"""How far reading lags behind a broker, asked in parallel with reading."""

import threading
from typing import Any

from bnpstream.sources.brokers.broker import Broker
from bnpstream.sources.protocol import JSON

SECONDS = 2.0
"""Seconds between two requests."""
PATIENCE = 1.0
"""Seconds to wait for a pending request at the end."""


class Lag:
    """Asks a broker again and again how many messages come after a position.

    It has its own thread and connection, so neither reading nor learning waits for an answer, and a
    slow learner with a full queue still sees the true lag.

    Parameters
    ----------
    broker : Broker
        A connection of its own.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._position: Any = None
        self._found: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="bnpstream-lag", daemon=True)

    def after(self, position: JSON) -> dict[str, int]:
        """Return the last answer per partition, and ask about this position from now on."""
        begins, self._position = self._position is None, position
        if begins:
            self._thread.start()
        return self._found

    def _ask(self) -> None:
        is_connected = False
        while not self._ended.is_set():
            try:
                if not is_connected:
                    self._broker.connect()
                    is_connected = True
                self._found = self._unread(self._position)
            except OSError:  # the reader reports it; until the broker is back, the lag is unknown
                is_connected, self._found = False, {}
            self._ended.wait(SECONDS)
        self._broker.close()

    def _unread(self, position: JSON) -> dict[str, int]:
        lineage, n_before = position["since"]
        counts = self._broker.unread(position["last"], lineage, position["records"] - n_before)
        spots = [list(self._broker.spot(lane, None).values()) for lane in range(len(counts))]
        return {
            "/".join(map(str, spot[:-1])): count for spot, count in zip(spots, counts, strict=True)
        }

    def close(self) -> None:
        """Stop asking."""
        self._ended.set()
        if self._position is not None:
            self._thread.join(PATIENCE)
