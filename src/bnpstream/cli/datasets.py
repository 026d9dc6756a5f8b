"""``bnpstream datasets``: list corpora, and download them."""

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from bnpstream.cli.errors import INTERRUPTED
from bnpstream.cli.output import print_json
from bnpstream.cli.page import Page
from bnpstream.cli.progress import ProgressDisplay
from bnpstream.datasets import data_directory, fetch
from bnpstream.datasets.catalogue import CORPORA, UCI
from bnpstream.datasets.download import Step
from bnpstream.datasets.fetch import Fetched, FetchedFile
from bnpstream.datasets.local import VARIABLE


def run_list(as_json: bool) -> None:
    """Print what is known about each corpus."""
    found = [_describe(name) for name in CORPORA]
    if as_json:
        print_json(found)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for corpus in found:
        table.add_row(corpus["name"], f"{corpus['megabytes']:,.1f} MB", corpus["what"])
        here = corpus["folder"] is not None
        table.add_row("", "", corpus["folder"] if here else f"not found; {corpus['get']}")
    Page().print(table)
    print(f"\ndata directory: {data_directory()}")


def _describe(name: str) -> dict[str, Any]:
    corpus, folder = CORPORA[name], data_directory() / name
    here = all((folder / file.name).is_file() for file in corpus.files)
    return {
        "name": name,
        "what": corpus.what,
        "megabytes": corpus.megabytes,
        "folder": str(folder) if here else None,
        "get": corpus.origin or f"bnpstream datasets fetch {name}",
    }


def run_fetch(
    name: str, to: Path | None, base_url: str | None, as_json: bool, **shown: bool
) -> None:
    """Download a corpus; print what was verified and how to use it."""
    try:
        with ProgressDisplay(**shown) as display:
            fetched = fetch(name, to, base_url or UCI, partial(_show, display))
    except KeyboardInterrupt:
        typer.echo(
            "stopped; run the same command again to continue the download",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    # `find` does not look there: tell the user what to set.
    elsewhere = fetched.folder.parent.resolve() != data_directory().resolve()
    if as_json:
        print_json(_document(name, fetched, elsewhere))
    else:
        _print(name, fetched, elsewhere)


def _show(display: ProgressDisplay, step: Step) -> None:
    """Show the progress of a download."""
    of = "" if step.total is None else f" of {step.total / 1e6:,.1f}"
    display.show(
        f"{step.stage} {step.file}",
        step.done / step.total if step.total else None,
        f"{step.done / 1e6:,.1f}{of} MB",
        step._asdict(),
    )


def _document(name: str, fetched: Fetched, elsewhere: bool) -> dict[str, Any]:
    return {
        "name": name,
        "folder": str(fetched.folder),
        "files": [{**file._asdict(), "path": str(file.path)} for file in fetched.files],
        "set": {VARIABLE: str(fetched.folder.parent)} if elsewhere else None,
    }


def _print(name: str, fetched: Fetched, elsewhere: bool) -> None:
    for file in fetched.files:
        print(f"{file.path}: {_story(file)}, {file.n_bytes / 1e6:,.1f} MB")
        if file.hash_known:
            print("  verified: sha256 matches")
        else:
            print("  no published sha256 to compare with;")
            print("  verified: complete, with the documents, words and lines that UCI states")
            print(f"  sha256 {file.sha256}")
    if elsewhere:
        print(f"to use it: export {VARIABLE}={shlex.quote(str(fetched.folder.parent))}")
    print(f"in Python: bnpstream.datasets.load_{name}()")


def _story(file: FetchedFile) -> str:
    if file.resumed_from is None:
        return "already there"
    if file.resumed_from:
        return f"downloaded, continuing after {file.resumed_from:,} bytes"
    return "downloaded"
