"""A stream on a cluster that is not there: when driver, network and workers would do what.

Every step of `fit_stream` is a job of one of four kinds of servers, each of which does one job at a
time: the driver's thread, Dask's scheduler, the network link of the two, and every worker. What a
job takes was measured. The order of the driver's jobs is given by the algorithm, so that the
simulation is one loop over partitions.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

WORK = ("read", "pass", "diff", "pack")
"""Steps of a worker that do not depend on how many others there are."""


@dataclass(frozen=True)
class Line:
    """Seconds or bytes that grow with something, such as the number of workers."""

    start: float
    slope: float

    @classmethod
    def through(cls, x: list[float], y: list[float]) -> "Line":
        """Return the least-squares line; one that falls is taken for a constant."""
        slope, start = np.polyfit(x, y, 1)
        return cls(float(start), float(slope)) if slope > 0 else cls(float(np.mean(y)), 0.0)

    def at(self, x: float) -> float:
        return self.start + self.slope * x

    def times(self, factor: float) -> "Line":
        return Line(factor * self.start, factor * self.slope)


@dataclass(frozen=True)
class Costs:
    """What a partition costs, in seconds and bytes.

    Parameters
    ----------
    part : int
        Rows of a partition.
    alone : float
        Read and pass: what one process, without Dask, does with it.
    work : float
        A worker's steps that are its own: read, pass, find out what changed, pack it.
    update : float
        A worker's work on one update.
    copy : Line
        The working copy and its screen, by updates since the last one.
    resolve, size : Line
        The driver's work on a change, and bytes of an update, by staleness.
    send, task, byte : float
        The driver's work on a task; the scheduler's, and for every byte that passes through it.
    bandwidth, latency : float
        Bytes a second of the link, seconds of a message.
    """

    part: int
    alone: float
    work: float
    update: float
    copy: Line
    resolve: Line
    size: Line
    send: float
    task: float
    byte: float
    bandwidth: float = 10e9 / 8
    latency: float = 0.2e-3

    @classmethod
    def of(cls, played: list[dict[str, Any]], dask: dict[str, float], send: float) -> "Costs":
        """Return the costs of partitions of one size, from the later half of a stream."""
        means = [run["steps"] for run in played]
        workers = [run["workers"] for run in played]
        staleness = [run["staleness"] for run in played]
        updates = [m["update"] / w for m, w in zip(means, workers, strict=True)]
        return cls(
            part=played[0]["part"],
            alone=float(np.mean([m["read"] + m["pass"] for m in means])),
            work=float(np.mean([sum(m[name] for name in WORK) for m in means])),
            update=float(np.mean(updates)),
            copy=Line.through(workers, [m["copy"] for m in means]),
            resolve=Line.through(staleness, [m["resolve"] for m in means]),
            size=Line.through(staleness, [m["bytes"] for m in means]),
            send=send,
            task=dask["task"],
            byte=dask["byte"],
        )

    def sparser(self, factor: float) -> "Costs":
        """Return the costs if changes had `factor` as many entries."""
        return replace(
            self,
            update=factor * self.update,
            resolve=self.resolve.times(factor),
            size=self.size.times(factor),
        )

    def larger(self, factor: float, growth: float) -> "Costs":
        """Return the costs of larger partitions, whose changes grow with a power of their rows."""
        return replace(
            self.sparser(factor**growth),
            part=round(factor * self.part),
            alone=factor * self.alone,
            work=factor * self.work,
        )


@dataclass
class Outcome:
    """How a simulated stream went."""

    rows_a_second: float
    busy: dict[str, float] = field(default_factory=dict)
    """Share of the time that a server worked; "catching up" is that part of workers."""

    @property
    def limit(self) -> str:
        """Return what holds the stream up."""
        servers = {name: self.busy[name] for name in ("driver", "scheduler", "link", "workers")}
        return max(servers, key=lambda name: servers[name])


@dataclass
class Server:
    """Does one job at a time."""

    free: float = 0.0
    worked: float = 0.0

    def do(self, ready: float, seconds: float) -> float:
        """Return when a job is done that is there from `ready` on."""
        self.free = max(self.free, ready) + seconds
        self.worked += seconds
        return self.free


def simulate(costs: Costs, workers: int, staleness: int, n: int = 0) -> Outcome:
    """Simulate a stream after its head.

    Parameters
    ----------
    costs : Costs
        What everything takes.
    workers, staleness : int
        How many, and how far they may be behind.
    n : int
        Partitions; 0: as many as are needed to forget the beginning.
    """
    n = n or 40 * max(workers, staleness)
    driver, down, up = Server(), Server(), Server()
    scheduler, receiver = Server(), Server()  # one thread that does either when there is something
    hands = [Server() for _ in range(workers)]
    versions, catching, arrived = [0] * workers, 0.0, [0.0] * n
    size, resolve = costs.size.at(staleness), costs.resolve.at(staleness)
    next_out = 0

    def hand_out(number: int, base: int) -> None:
        nonlocal catching
        chosen = min(range(workers), key=lambda w: (hands[w].free, -versions[w]))
        lacks, versions[chosen] = base - versions[chosen], base
        sent = driver.do(driver.free, costs.send)
        through = scheduler.do(sent, costs.task + lacks * size * costs.byte)
        there = down.do(through, lacks * size / costs.bandwidth) + costs.latency
        behind = lacks * costs.update + costs.copy.at(lacks)
        catching += behind
        done = hands[chosen].do(there, behind + costs.work)
        arrived[number] = up.do(done, size / costs.bandwidth) + costs.latency

    for version in range(n):
        while next_out < n:
            base = max(next_out - staleness, 0)
            if base > version:
                break
            hand_out(next_out, base)
            next_out += 1
        ready = receiver.do(arrived[version], size * costs.byte)
        driver.do(ready, resolve)
    total = driver.free
    busy = {
        "driver": driver.worked / total,
        "scheduler": (scheduler.worked + receiver.worked) / total,
        "link": max(down.worked, up.worked) / total,
        "workers": sum(hand.worked for hand in hands) / (workers * total),
        "catching up": catching / (workers * total),
    }
    return Outcome(n * costs.part / total, busy)
