"""Metrics for Prometheus, of the run and of this server; never one per cluster."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bnpstream.serve.events import Hub
from bnpstream.serve.watch import Watch

MOST_PARTITIONS = 1000
"""Most partitions whose lag is reported; the others are added up as "others"."""


class RunMetrics(Collector):
    """Collects the metrics of a run.

    Parameters
    ----------
    watch : Watch
        The run.
    hub : Hub
        Counts the open pages.
    """

    def __init__(self, watch: Watch, hub: Hub) -> None:
        self._watch, self._hub = watch, hub

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics known."""
        now, snapshot = self._watch.now, self._watch.snapshot
        for name, help, count in (
            ("rows", "Rows absorbed.", now.rows),
            ("records", "Records read, including rejects.", now.records),
            ("rejects", "Invalid records.", now.rejects),
        ):
            yield CounterMetricFamily(f"bnpstream_{name}", help, value=count)
        changes = CounterMetricFamily(
            "bnpstream_cluster_events",
            "Births, merges, splits, deaths and retirements.",
            labels=["kind"],
        )
        for kind in ("birth", "merge", "split", "death", "retire"):
            changes.add_metric([kind], now.events.get(kind, 0))
        yield changes
        states = GaugeMetricFamily("bnpstream_state", "1 for the current state.", labels=["state"])
        for state in ("empty", "learning", "quiet", "stopped", "finished"):
            states.add_metric([state], float(state == now.state))
        yield states
        lag = GaugeMetricFamily(
            "bnpstream_source_lag",
            "Unread part of the source: records of a broker, bytes of files.",
            labels=["partition"],
        )
        named = sorted(now.lag.items())
        for partition, behind in named[:MOST_PARTITIONS]:
            lag.add_metric([partition], behind)
        if named[MOST_PARTITIONS:]:
            lag.add_metric(["others"], sum(behind for _, behind in named[MOST_PARTITIONS:]))
        yield lag
        resident = None if now.writer is None else resident_bytes(now.writer)
        for name, help, value in (
            ("clusters", "Clusters.", now.clusters),
            ("topics", "Topics.", None if snapshot is None else len(snapshot.about.topics)),
            ("rows_per_second", "Rows absorbed per second, recently.", now.rows_per_second),
            ("evidence_per_row", "Moving mean log predictive, in nats.", now.evidence_per_row),
            ("novelty", "Moving mean of the novelty.", now.novelty),
            ("checkpoint_timestamp_seconds", "Time of the last checkpoint.", now.checkpoint_time),
            ("learner_resident_bytes", "Memory of the learning process.", resident),
            ("event_streams", "Open pages.", self._hub.n_streams),
        ):
            if value is not None:
                yield GaugeMetricFamily(f"bnpstream_{name}", help, value=value)


class Metrics:
    """All metrics, including those of requests.

    Parameters
    ----------
    watch, hub
        As in `RunMetrics`.
    """

    def __init__(self, watch: Watch, hub: Hub) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(RunMetrics(watch, hub))
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "bnpstream_requests", "Requests answered.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "bnpstream_request_seconds", "Time per request.", ["route"], registry=self.registry,
            buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0, 10.0),
        )  # fmt: skip

    def note(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)


def resident_bytes(process: int) -> int | None:
    """Return the memory of a process on this machine, if known."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), None)
