"""What ``bnpstream reproduce`` does: experiments run, their claims printed."""

from pathlib import Path
from typing import Any

import typer
from rich.markup import escape
from rich.table import Table

from bnpstream.cli.errors import INTERRUPTED, USAGE, fail
from bnpstream.cli.output import print_json
from bnpstream.cli.page import Page
from bnpstream.cli.progress import ProgressDisplay
from tank2015.running import EXPERIMENTS, LONG, reproduce

ALL = "all"


def run(
    name: str,
    out: Path | None,
    small: bool,
    full: bool,
    jobs: int,
    docword: Path | None,
    vocab: Path | None,
    as_json: bool,
) -> None:
    """Run one experiment, or all."""
    names = EXPERIMENTS if name == ALL else (name,)
    if not set(names) <= set(EXPERIMENTS):
        known = ", ".join(EXPERIMENTS)
        fail(f"there is no experiment {name!r}: give one of {known}, or {ALL}", USAGE)
    if full:
        names = tuple(f"{one}-full" for one in names if f"{one}-full" in LONG)
        if not names:
            known = ", ".join(one.removesuffix("-full") for one in LONG)
            fail(f"{name} has nothing that takes longer: --full belongs to {known} or {ALL}", USAGE)
    given = {}
    if docword is not None or vocab is not None:
        if name != "nyt" or docword is None or vocab is None:
            fail("--docword and --vocab belong to nyt, and to each other", USAGE)
        given = {"docword": str(docword), "vocab": str(vocab)}
    if out is None:
        if small or given:
            fail("results of other data than the committed ones need a place: give --out", USAGE)
        out = Path(__file__).parent
    found = []
    try:
        with ProgressDisplay(quiet=as_json) as display:
            for number, one in enumerate(names):

                def tell(progress: Any, number: int = number) -> None:
                    share = progress.done / progress.total
                    overall = (number + share) / len(names)
                    numbers = f"{progress.done}/{progress.total}  {progress.step}"
                    display.show(progress.experiment, overall, numbers, progress._asdict())

                ways = {"small": small, "n_jobs": jobs, "given": given}
                found.append(reproduce(one, out, **ways, tell=tell))
    except KeyboardInterrupt:
        typer.echo("stopped; the same command goes on from the last finished step", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json([{key: one[key] for key in one if key != "steps"} for one in found])
        return
    _print(found, out)


def _print(found: list[dict[str, Any]], out: Path) -> None:
    table = Table(box=None, pad_edge=False)
    for header in ("claim", "found", "verdict"):
        table.add_column(header, overflow="fold")
    page = Page()
    for one in found:
        for claim in one["claims"]:
            table.add_row(escape(claim["text"]), escape(claim["ours"]), claim["verdict"])
    page.print(table)
    for one in found:
        page.print(f"{one['experiment']}: {len(one['steps'])} steps, {_history(one)}")
    page.print(f"page: {out / 'README.md'}", soft_wrap=True)


def _history(one: dict[str, Any]) -> str:
    """Say how a run compares with what was there before."""
    said = f"{one['seconds']:.0f} s"
    if one["resumed"]:
        said += f", {one['resumed']} of them by an earlier run"
    if one["changed"] is None:
        return said
    if not one["changed"]:
        return f"{said}; all numbers are those that were there before"
    return f"{said}; {len(one['changed'])} steps have other numbers: {one['changed'][0]} ..."
