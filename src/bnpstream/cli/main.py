"""The commands and what they share."""

from pathlib import Path
from typing import Annotated

import typer

from bnpstream._version import __version__

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"bnpstream {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Cluster an endless stream: one pass, as many clusters as the data ask for."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("demo-out"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Stream scikit-learn's handwritten digits once and show what was found."""
    from bnpstream.cli.demo import run_demo  # the numerical stack loads only when needed

    run_demo(out, as_json=as_json)
