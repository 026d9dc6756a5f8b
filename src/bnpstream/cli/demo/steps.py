"""Steps of all demos: cluster a source as a run, write its report, print where both are."""

import importlib.util
from pathlib import Path
from typing import Any

from rich.console import Console

from bnpstream.cli.progress import ProgressDisplay
from bnpstream.runs.description import RunDescription
from bnpstream.runs.feed import Feed
from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start


def stream_into(folder: Path, source: Path, model: ModelOptions, pace: Pace) -> Feed:
    """Cluster a source as ``bnpstream fit`` would."""
    feed = start(folder, RunOptions((str(source),), model=model))
    assert feed.writer is not None
    with feed.writer, Interrupts() as interrupts, ProgressDisplay() as progress:
        feed.run(pace, interrupts, progress)
    return feed


def report(described: RunDescription, out: Path, console: Console) -> str | None:
    """Write the report; if packages for it are missing, say what to install."""
    missing = [name for name in ("matplotlib", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        console.print(
            f"No report: {missing[0]} is missing; pip install 'bnpstream[report]'", markup=False
        )
        return None
    from bnpstream.report import write_report

    return str(write_report(described, out / "report.html"))


def print_paths(result: dict[str, Any], console: Console) -> None:
    """Print the paths of the run and its report."""
    for name in ("run", "report"):
        if result[name] is not None:
            console.print(f"{name}: {result[name]}", soft_wrap=True, markup=False)
