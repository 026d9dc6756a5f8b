"""What a run directory says now: read again and again by a process that never writes to it."""

import time
from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bnpstream.runs.description import RunDescription
from bnpstream.runs.overview import Run, guess_image_shape
from bnpstream.storage import RunError, checkpoint_path, is_run
from bnpstream.storage.files import writer_of
from bnpstream.storage.logs import Tail
from bnpstream.storage.tensors import read_document

FEATURES = 20
"""Words or columns of every cluster."""
RECENT = 5.0
"""Seconds after which a run that has not moved is quiet."""
RATE_SECONDS = 15.0
"""Over which rows per second are counted."""
POINTS = 240
"""Of the past that small charts show, a second each while the run moves."""
TRACE_BYTES = 1 << 17
"""Of the trace that is read when watching begins."""
SHARE_OF_LOADING = 0.2
"""Largest share of the time that may go into loading checkpoints."""


class Point(NamedTuple):
    """A moment of a run."""

    time: float
    rows: int
    clusters: int
    rows_per_second: float
    evidence_per_row: float | None
    novelty: float | None


class Birth(NamedTuple):
    """A cluster that was born."""

    id: int
    row: int


@dataclass(frozen=True)
class Now:
    """Where a run stands."""

    state: str = "empty"
    """"learning", "quiet" (a process waits for records), "finished", "stopped", or "empty"."""
    rows: int = 0
    records: int = 0
    rejects: int = 0
    clusters: int = 0
    rows_per_second: float = 0.0
    evidence_per_row: float | None = None
    """Moving mean of one-step-ahead log predictives."""
    novelty: float | None = None
    """Moving mean of the probability that a row opens a cluster."""
    fraction: float | None = None
    lag: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    checkpoint_time: float | None = None
    writer: int | None = None
    """Process that learns."""
    events: dict[str, int] = field(default_factory=dict)
    """How many births, merges, splits, deaths and retirements of clusters there were."""

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


class Snapshot(NamedTuple):
    """What a checkpoint holds, ready to be shown and asked."""

    run: Run
    about: RunDescription
    version: str
    """Another one for every checkpoint."""
    saved: float
    """When it was made."""


class Watch:
    """Follows a run directory.

    Parameters
    ----------
    folder : Path
        The directory; it may not be there so far.

    Attributes
    ----------
    now : Now
        As of the last look.
    points : deque of Point
        The past, the last at the end.
    births : list of Birth
        Those since the look before.
    snapshot : Snapshot or None
        The last checkpoint that could be loaded.
    problem : str
        Why there is none, or why a later one could not be loaded.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = Now()
        self.points: deque[Point] = deque(maxlen=POINTS)
        self.births: list[Birth] = []
        self.snapshot: Snapshot | None = None
        self.problem = ""
        self._trace, self._lineage = self._tails()
        self._last: dict[str, Any] = {}
        self._moved = 0.0
        """When records came last."""
        self._events: Counter[str] = Counter()
        self._load_after = 0.0
        self._has_looked = False

    def _tails(self) -> tuple[Tail, Tail]:
        return (
            Tail(self.folder / "trace.jsonl", TRACE_BYTES),
            Tail(self.folder / "lineage.jsonl"),
        )

    def look(self) -> None:
        """Take in what was written since the last look."""
        is_cut, records = self._trace.read()
        if is_cut:  # a run goes on from a checkpoint: what came after it is to be done again
            self.points.clear()
            self._last, self._moved = {}, 0.0
        for record in records:
            self._add_point(record)
        is_cut, events = self._lineage.read()
        if is_cut:
            self._events.clear()
        own = [event for event in events if event.get("level", "cluster") == "cluster"]
        is_past = is_cut or not self._has_looked
        born = [] if is_past else [event for event in own if event["kind"] == "birth"]
        self.births = [Birth(event["id"], event["n_observations"]) for event in born]
        self._events.update(event["kind"] for event in own)
        self._has_looked = True
        self.now = self._now()

    def _add_point(self, record: dict[str, Any]) -> None:
        """Add a record of the trace to the past, at most one a second."""
        if record["records"] != self._last.get("records"):  # else, only the lag has changed
            self._moved = record["time"]
        self._last = record
        before = [p for p in self.points if p.time >= record["time"] - RATE_SECONDS][:1]
        rate = 0.0
        if before and record["time"] > before[0].time:
            rate = max(0.0, record["rows"] - before[0].rows) / (record["time"] - before[0].time)
        point = Point(
            record["time"],
            record["rows"],
            record["clusters"],
            rate,
            record["evidence_per_row"],
            record.get("novelty"),
        )
        if self.points and point.time - self.points[-1].time < 1.0 and len(self.points) > 1:
            self.points.pop()
        self.points.append(point)

    def _now(self) -> Now:
        """Return where the run stands: by the trace, or by a checkpoint that is later."""
        last, saved = self._last, self.snapshot
        writer = writer_of(self.folder)
        if writer is not None:
            state = "learning" if time.time() - self._moved < RECENT else "quiet"
        elif saved is None:
            state = "stopped" if last else "empty"
        else:
            state = "finished" if saved.about.finished else "stopped"
        told = Now(
            state=state,
            rows=last.get("rows", 0),
            records=last.get("records", 0),
            rejects=last.get("rejects", 0),
            clusters=last.get("clusters", 0),
            rows_per_second=self.points[-1].rows_per_second if state == "learning" else 0.0,
            evidence_per_row=last.get("evidence_per_row"),
            novelty=last.get("novelty"),
            fraction=last.get("fraction"),
            lag=last.get("lag", {}),
            seconds=last.get("seconds", 0.0),
            checkpoint_time=None if saved is None else saved.saved,
            writer=int(writer) if writer is not None and writer.isdecimal() else None,
            events=dict(self._events),
        )
        if saved is None or saved.about.records <= told.records:
            return told
        about = saved.about
        evidence = about.bin_evidence[-1] if about.bin_evidence else None
        return Now(
            **asdict(told)
            | {
                "rows": about.rows,
                "records": about.records,
                "rejects": about.rejects,
                "clusters": about.n_clusters,
                "evidence_per_row": evidence
                if told.evidence_per_row is None
                else told.evidence_per_row,
                "seconds": about.seconds,
            }
        )

    def records_saved(self) -> int:
        """Return how many records the last checkpoint has, as it is on disk."""
        try:
            document = read_document(checkpoint_path(self.folder))
        except RunError:  # none so far, or renamed at this moment
            return 0
        return int(document["rows"] + document["rejects"])

    def load(self) -> bool:
        """Load the last checkpoint if it is another one and it is time; return whether it was."""
        began = time.monotonic()
        if began < self._load_after:
            return False
        try:
            if not is_run(self.folder):
                raise RunError(f"{self.folder}: there is no run so far")
            status = checkpoint_path(self.folder).stat()
            version = f"{status.st_mtime_ns:x}"
            if self.snapshot is not None and version == self.snapshot.version:
                return False
            run = Run(self.folder)
            about = run.describe(FEATURES, guess_image_shape(run))
        except FileNotFoundError:  # no checkpoint so far, or one that is renamed at this moment
            self.problem = f"{self.folder}: has no checkpoint so far"
            return False
        except RunError as error:
            self.problem = str(error)
            self._load_after = time.monotonic() + (time.monotonic() - began) / SHARE_OF_LOADING
            return False
        self.snapshot, self.problem = Snapshot(run, about, version, status.st_mtime), ""
        self._load_after = time.monotonic() + (time.monotonic() - began) / SHARE_OF_LOADING
        self.now = self._now()
        return True
