"""Alerts: a young cluster has grown large, or the novelty of the stream has risen."""

import sys
import time
import urllib.request
from collections import deque
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import numpy as np
import orjson

from bnpstream.runs.description import name_of
from bnpstream.runs.options import SECONDS, OptionError, half_life_of
from bnpstream.serve.watch import Birth, Snapshot, Watch

HISTORY, LEAST = 1000, 60
"""Points of the trace whose novelty is kept, and the least number needed before any alert."""
IN_A_ROW = 5
"""Points above the usual novelty that make an alert; a single one does not."""
TRIES, TIMEOUT = 3, 5.0


@dataclass(frozen=True)
class AlertOptions:
    """When to alert, and where to."""

    size: float | None = None
    """Rows that a cluster must reach within `within` of its birth."""
    within: str = "1d"
    novelty: float | None = None
    """Quantile of the stream's own past novelty."""
    webhook: str | None = None

    def __post_init__(self) -> None:
        if self.within[-1:] not in SECONDS:
            raise OptionError(
                f"--alert-within is {self.within!r}: give a time, such as 90s, 30m or 1d"
            )
        if self.novelty is not None and not 0.0 < self.novelty < 1.0:
            raise OptionError(f"--alert-novelty is {self.novelty}: give a quantile, such as 0.99")
        if self.webhook is not None and urlsplit(self.webhook).scheme not in ("http", "https"):
            raise OptionError(f"--webhook is {self.webhook!r}: give a URL, http:// or https://")

    @property
    def seconds(self) -> float:
        """Return the time within which a cluster must reach its size."""
        return half_life_of(self.within).value


class Alerts:
    """Looks for new clusters and novelty worth an alert; ignores clusters that existed before.

    Parameters
    ----------
    options : AlertOptions
        When to alert.
    """

    def __init__(self, options: AlertOptions) -> None:
        self.options = options
        self._born: dict[int, float] = {}
        self._past: deque[float] = deque(maxlen=HISTORY)
        self._out = 0
        self._moved = 0.0

    def births(self, births: list[Birth], now: float) -> None:
        """Record clusters that were born."""
        if self.options.size is not None:
            self._born |= {birth.id: now for birth in births}

    def grown(self, snapshot: Snapshot, now: float) -> list[dict[str, Any]]:
        """Return an alert for every young cluster that has grown large."""
        found = []
        limit = self.options.seconds
        self._born = {id: born for id, born in self._born.items() if now - born <= limit}
        for cluster in snapshot.about.clusters:
            if cluster.id in self._born and cluster.size >= (self.options.size or np.inf):
                age = now - self._born.pop(cluster.id)
                found.append(
                    {
                        "alert": "cluster",
                        "cluster": cluster.id,
                        "topic": cluster.topic,
                        "label": name_of(cluster, snapshot.about.kind),
                        "size": cluster.size,
                        "seconds": round(age, 1),
                    }
                )
        return found

    def strange(self, watch: Watch) -> list[dict[str, Any]]:
        """Return an alert if the novelty of the stream has exceeded its quantile."""
        point = watch.points[-1] if watch.points else None
        quantile = self.options.novelty
        if quantile is None or point is None or point.novelty is None or point.time <= self._moved:
            return []
        self._moved = point.time
        usual = np.quantile(self._past, quantile) if len(self._past) >= LEAST else np.inf
        self._out = self._out + 1 if point.novelty > usual else 0
        self._past.append(point.novelty)
        if self._out != IN_A_ROW:
            return []
        about = {"novelty": point.novelty, "quantile": quantile, "usual": float(usual)}
        return [{"alert": "novelty", **about}]

    def send(self, alert: dict[str, Any]) -> None:
        """Write an alert as a line to standard output, and post it to the webhook, if any."""
        data = orjson.dumps(alert)
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.flush()
        if self.options.webhook is None:
            return
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.options.webhook, data, headers)
        for attempt in range(TRIES):
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT):
                    return
            except OSError as error:
                problem = str(error)
                if isinstance(error, HTTPError):
                    error.close()
                time.sleep(2.0**attempt)
        line = {"time": time.time(), "event": "webhook failed", "error": problem}
        sys.stderr.buffer.write(orjson.dumps(line) + b"\n")
        sys.stderr.flush()
