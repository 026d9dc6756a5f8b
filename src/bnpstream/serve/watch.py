"""The current state of a run directory, read again and again without writing to it."""

import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

from msgspec import ValidationError, convert

from bnpstream.runs.description import RunDescription
from bnpstream.runs.overview import Run, guess_image_shape
from bnpstream.storage import RunError, checkpoint_path, is_run
from bnpstream.storage.files import writer_of
from bnpstream.storage.logs import Tail
from bnpstream.storage.tensors import read_document

FEATURES = 20
"""Words or columns per cluster."""
RECENT = 5.0
"""Seconds without progress after which a run counts as quiet."""
RATE_SECONDS = 15.0
"""Seconds over which rows per second are measured."""
POINTS = 240
"""Points of the past in the small charts, one per second while the run makes progress."""
TRACE_BYTES = 1 << 17
"""Bytes of the trace that are read when watching starts."""
SHARE_OF_LOADING = 0.2
"""Largest share of the time spent on loading checkpoints."""


class Traced(TypedDict):
    """A record of the trace."""

    time: float
    rows: int
    records: int
    rejects: NotRequired[int]
    clusters: int
    seconds: NotRequired[float]
    evidence_per_row: float | None
    novelty: NotRequired[float | None]
    fraction: NotRequired[float | None]
    lag: NotRequired[dict[str, int]]


class Happened(TypedDict):
    """An event of the lineage."""

    kind: str
    id: int
    n_observations: int
    level: NotRequired[str]


def sound(records: list[dict[str, Any]], kind: Any) -> list[dict[str, Any]]:
    """Return the records that are of a kind; others are damaged."""
    found = []
    for record in records:
        with suppress(ValidationError):
            found.append(convert(record, kind))
    return found


class Point(NamedTuple):
    """A point of the trace."""

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
    """The current state of a run."""

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
    """Id of the learning process."""
    events: dict[str, int] = field(default_factory=dict)
    """Number of births, merges, splits, deaths and retirements of clusters."""

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


class Snapshot(NamedTuple):
    """The contents of a checkpoint, ready to be shown and queried."""

    run: Run
    about: RunDescription
    version: str
    """Differs for each checkpoint."""
    saved: float
    """When it was made."""


class Watch:
    """Follows a run directory.

    Parameters
    ----------
    folder : Path
        The directory; it need not exist yet.

    Attributes
    ----------
    now : Now
        State at the last look.
    points : deque of Point
        The past, latest last.
    births : list of Birth
        Births since the previous look.
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
        """When records last arrived."""
        self._events: Counter[str] = Counter()
        self._load_after = 0.0
        self._has_looked = False

    def _tails(self) -> tuple[Tail, Tail]:
        return (
            Tail(self.folder / "trace.jsonl", TRACE_BYTES),
            Tail(self.folder / "lineage.jsonl"),
        )

    def look(self) -> None:
        """Read what was written since the last look."""
        is_cut, records = self._trace.read()
        if is_cut:  # a run continues from a checkpoint: rows after it are absorbed again
            self.points.clear()
            self._last, self._moved = {}, 0.0
        for record in sound(records, Traced):
            self._add_point(record)
        is_cut, events = self._lineage.read()
        if is_cut:
            self._events.clear()
        events = sound(events, Happened)
        own = [event for event in events if event.get("level", "cluster") == "cluster"]
        is_past = is_cut or not self._has_looked
        born = [] if is_past else [event for event in own if event["kind"] == "birth"]
        self.births = [Birth(event["id"], event["n_observations"]) for event in born]
        self._events.update(event["kind"] for event in own)
        self._has_looked = True
        self.now = self._now()

    def _add_point(self, record: dict[str, Any]) -> None:
        """Add a record of the trace to the past, at most one per second."""
        if record["records"] != self._last.get("records"):  # otherwise, only the lag has changed
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
        """Return the state of the run: from the trace, or from a later checkpoint."""
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
        """Return the number of records in the last checkpoint on disk."""
        try:
            document = read_document(checkpoint_path(self.folder))
        except RunError:  # none yet, or just being renamed
            return 0
        return int(document["rows"] + document["rejects"])

    def load(self) -> bool:
        """Load the last checkpoint if it is new and it is time; return whether it was loaded."""
        began = time.monotonic()
        if began < self._load_after:
            return False
        try:
            if not is_run(self.folder):
                raise RunError(f"{self.folder}: no run here yet")
            status = checkpoint_path(self.folder).stat()
            version = f"{status.st_mtime_ns:x}"
            if self.snapshot is not None and version == self.snapshot.version:
                return False
            run = Run(self.folder)
            about = run.describe(FEATURES, guess_image_shape(run))
        except FileNotFoundError:  # no checkpoint yet, or just being renamed
            self.problem = f"{self.folder}: no checkpoint yet"
            return False
        except OSError as error:
            self.problem = str(error)
            return False
        except RunError as error:
            self.problem = str(error)
            self._load_after = time.monotonic() + (time.monotonic() - began) / SHARE_OF_LOADING
            return False
        if self.snapshot is not None:  # the first one takes longer: modules are imported
            self._load_after = time.monotonic() + (time.monotonic() - began) / SHARE_OF_LOADING
        self.snapshot, self.problem = Snapshot(run, about, version, status.st_mtime), ""
        self.now = self._now()
        return True
