"""Progress on standard error: a bar for people, JSON lines for machines, or nothing."""

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from bnpstream.runs.status import Status

if TYPE_CHECKING:
    from rich.progress import Progress

EVERY = 0.5
"""Seconds between two JSON lines."""


class ProgressDisplay:
    """Shows the progress of a job.

    Parameters
    ----------
    quiet : bool
        Show nothing. No bar is shown either if standard error is not a terminal.
    log_json : bool
        Write JSON lines instead.
    """

    def __init__(self, *, quiet: bool = False, log_json: bool = False) -> None:
        self._log_json = log_json and not quiet
        self._last = 0.0
        self._bar: Progress | None = None
        if not quiet and not log_json and sys.stderr.isatty():
            self._bar = _bar()
            self._task = self._bar.add_task("starting", total=None, numbers="")

    def __enter__(self) -> "ProgressDisplay":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, status: Status) -> None:
        """Show a status."""
        self.show(status.stage, status.fraction, _numbers(status), plain(status))

    def show(
        self, stage: str, fraction: float | None, numbers: str, document: dict[str, Any]
    ) -> None:
        """Show progress: `numbers` in the bar on a terminal, `document` as a line of JSON."""
        if self._bar is not None:
            self._bar.update(
                self._task,
                description=stage,
                total=None if fraction is None else 1.0,
                completed=fraction or 0.0,
                numbers=numbers,
            )
        elif self._log_json and time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            sys.stderr.buffer.write(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))
            sys.stderr.flush()


def _bar() -> "Progress":
    """Return a progress bar; its parts are slow to import."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[numbers]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _numbers(status: Status) -> str:
    rejects = f"  {status.rejects:,} rejects" if status.rejects else ""
    known = status.evidence_per_row == status.evidence_per_row
    evidence = f"  {status.evidence_per_row:,.1f} nats per row" if known else ""
    parts = ""
    if status.partitions is not None:
        of = "" if status.partitions.total is None else f" of {status.partitions.total:,}"
        parts = f"{status.partitions.done:,}{of} partitions  "
    return (
        f"{parts}{status.rows:,} rows  {status.rows_per_second:,.0f}/s  "
        f"{status.clusters:,} clusters{evidence}{rejects}"
    )


def plain(status: Status) -> dict[str, Any]:
    """Return a status as JSON; unknown values are null."""
    document = {key: None if value != value else value for key, value in status._asdict().items()}
    if status.partitions is not None:
        document["partitions"] = asdict(status.partitions)
    return document
