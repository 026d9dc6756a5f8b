"""``bnpstream tune``."""

import shlex
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from bnpstream.cli.errors import INTERRUPTED
from bnpstream.cli.fit import given_for, run_options
from bnpstream.cli.options import GRID
from bnpstream.cli.output import print_json
from bnpstream.cli.page import Page
from bnpstream.cli.progress import ProgressDisplay
from bnpstream.runs.model_file import parsed
from bnpstream.runs.options import OptionError, Plan
from bnpstream.runs.tune import Tuning, tune
from bnpstream.search import Point
from bnpstream.storage import files

SHOWN = 20
PICTURES = (".png", ".svg", ".pdf")
HEADS = {
    "prior": "prior",
    "concentration": "concen-\ntration",
    "discount": "discount",
    "tilt": "tilt",
    "alpha": "alpha",
}
DOUBT = 2.0
"""Standard errors below which two points count as equal."""


def run_tune(
    source: list[str] | None, out: Path | None, plot: Path | None, as_json: bool, **given: Any
) -> None:
    """Try a grid, print it best first, and save the winner."""
    plan, paths = Plan(**given_for(Plan, given)), source or []
    _check(plan, out, plot)
    values = {
        one.name: [
            text if one.name == "prior" else parsed(one.name, text)
            for text in given.pop(one.name) or []
        ]
        for one in GRID
    }
    try:
        with ProgressDisplay(quiet=given["quiet"], log_json=given["log_json"]) as progress:
            found = tune(run_options(paths, given), values, plan, progress, _Watcher(progress))
    except KeyboardInterrupt:
        typer.echo("stopped; nothing was saved", err=True)
        raise typer.Exit(INTERRUPTED) from None
    document, best = found.document(), found.shown(found.result.best_index)
    if out is not None:
        files.write_json(out, {**best, "tuning": document})
    if plot is not None:
        _draw(found, plot)
    if as_json:
        print_json({**best, "tuning": document})
    else:
        _print(document)
        _print_next(found, paths, out, plot)


def _check(plan: Plan, out: Path | None, plot: Path | None) -> None:
    """Raise OptionError, before the search, if its result could not be saved."""
    if not 0.0 < plan.held_out < 1.0:
        raise OptionError(f"--held-out {plan.held_out}: give a share between 0 and 1")
    if plan.jobs == 0:
        raise OptionError("--jobs 0: give the number of parallel jobs, or -1 for all cores")
    for name, path in (("--out", out), ("--plot", plot)):
        if path is not None and path.is_dir():
            raise OptionError(f"{name} {path}: is a directory: name a file in it")
        if path is not None and not path.parent.is_dir():
            raise OptionError(
                f"{name} {path}: the directory {path.parent} does not exist: create it first"
            )
    if plot is not None:
        if plot.suffix not in PICTURES:
            raise OptionError(f"--plot {plot}: the name must end in {', '.join(PICTURES)}")
        import bnpstream.plots  # noqa: F401  (says what is missing if it is)


class _Watcher:
    """Shows how many points are done, and the best so far."""

    def __init__(self, display: ProgressDisplay) -> None:
        self._display, self._best = display, -float("inf")

    def __call__(self, point: Point, done: int, total: int) -> None:
        self._best = max(self._best, point.score / point.scores.size)
        self._display.show(
            "trying",
            done / total,
            f"{done:,} of {total:,} points  best {self._best:,.2f} nats per row",
            {"stage": "trying", "done": done, "points": total, "best_per_row": self._best},
        )


def _print(document: dict[str, Any]) -> None:
    points, best = document["points"], document["points"][0]
    rows, held_out = document["rows"], document["held_out"]
    print(
        f"{len(points):,} grid points, fitted to {rows - held_out:,} rows, scored on {held_out:,}\n"
    )
    Page().print(_table(points[:SHOWN], [name for name in HEADS if _is_told(name, points)]))
    if len(points) > SHOWN:
        print(f"and {len(points) - SHOWN:,} more")
    per_token = best["per_token"]
    also = "" if per_token is None else f", {per_token:,.4f} per token"
    print(f"\nbest: {best['per_row']:,.2f} nats per row{also}")
    print("behind: nats below the best over all held-out rows; s.e.: in standard errors")
    close = sum(abs(p["behind"]) <= DOUBT * (p["behind_error"] or 0.0) for p in points[1:])
    if close:
        others = "other point is" if close == 1 else "other points are"
        print(f"{close:,} {others} within {DOUBT:g} standard errors of it")
    if document["rejects"]:
        print(f"{document['rejects']:,} records were invalid")


def _is_told(name: str, points: list[dict[str, Any]]) -> bool:
    """Return whether the values of a setting differ between points; the prior is always shown."""
    return name == "prior" or len({str(point["settings"].get(name)) for point in points}) > 1


def _table(points: list[dict[str, Any]], names: list[str]) -> Table:
    """Return points as a table at most 80 characters wide."""
    table = Table(box=None, pad_edge=False, collapse_padding=len(names) > 3)
    table.add_column("", no_wrap=True)
    for name in names:
        table.add_column(HEADS[name], justify="left" if name == "prior" else "right", no_wrap=True)
    for head in ("nats\nper row", "behind", "s.e.", "clusters", "seconds"):
        table.add_column(head, justify="right", no_wrap=True)
    for i, point in enumerate(points):
        table.add_row(
            "best" if i == 0 else "",
            *(_setting(point["settings"].get(name)) for name in names),
            f"{point['per_row']:,.2f}",
            "" if i == 0 else f"{-point['behind']:,.1f}",
            "" if i == 0 else _in_errors(point),
            str(point["clusters"]),
            f"{point['seconds']:.2f}",
            style="bold" if i == 0 else None,
        )
    return table


def _setting(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:,.5g}"


def _in_errors(point: dict[str, Any]) -> str:
    """Return how many standard errors a point is behind."""
    error = point["behind_error"]
    return f"{-point['behind'] / error:.1f}" if error and error == error else ""


def _print_next(found: Tuning, source: list[str], out: Path | None, plot: Path | None) -> None:
    edge = _edge(found)
    if edge is not None:
        print(f"the best concentration is the {edge} in the grid: try others with --concentration")
    if plot is not None:
        print(f"heat map: {plot}")
    if out is None:
        print("nothing was saved: give --out to save the best settings for fit --config")
        return
    paths = " ".join(shlex.quote(path) for path in source)
    print(f"next: bnpstream fit {paths} --config {shlex.quote(str(out))} --out RUN")


def _edge(found: Tuning) -> str | None:
    """Return "least" or "largest" if the best concentration is at an end of those of its prior."""
    best = found.winner
    tried = {o.concentration for o in found.options if o.prior == best.prior}
    numbers = sorted(value for value in tried if value is not None)
    if len(numbers) < 2:
        return None
    if best.concentration == numbers[-1]:
        return "largest"
    return "least" if best.concentration == numbers[0] else None


def _draw(found: Tuning, path: Path) -> None:
    """Draw the grid as a heat map."""
    from matplotlib.figure import Figure

    from bnpstream.plots import plot_grid
    from bnpstream.plots.grid import size_of_grid

    points = [found.shown(i) for i in range(len(found.options))]
    places = (
        [_panel(point) for point in points],
        [point.get("concentration", "") for point in points],
        [point.get("alpha", "") for point in points],
    )
    scores = [point.score / point.scores.size for point in found.result.points]
    figure = Figure(figsize=size_of_grid(*places), layout="constrained")
    plot_grid(*places, scores, figure)
    layout: dict[str, Any] = {"format": path.suffix[1:], "dpi": 200}
    with files.disk_errors(path):
        files.write_atomically(path, lambda partial: figure.savefig(partial, **layout))


def _panel(point: dict[str, Any]) -> str:
    """Return the title of the panel of a point: its settings except the concentration."""
    rest = [f"{name} {point[name]:g}" for name in ("discount", "tilt") if name in point]
    return ", ".join([point["prior"], *rest])
