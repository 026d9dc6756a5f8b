"""The commands and what they share; the numerical stack loads only when a command runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bnpstream._version import __version__
from bnpstream.cli import options as o
from bnpstream.cli.errors import reported

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
datasets = typer.Typer(no_args_is_help=True, help="Corpora: which are here, and fetching them.")
app.add_typer(datasets, name="datasets")


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
    from bnpstream.cli.output import prepare_streams

    prepare_streams()


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the run and its report.")] = Path(
        "demo-out"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Stream scikit-learn's handwritten digits once and show what was found."""
    with reported():
        from bnpstream.cli.demo import run_demo

        run_demo(out, as_json=as_json)


@app.command()
@o.takes(Model=(*o.CONFIG, *o.MODEL, *o.PASSES), Source=o.SOURCE, Run=o.PACE, Cluster=o.CLUSTER)
def fit(source: o.Sources = None, as_json: o.AsJson = False, **given: Any) -> None:
    """Absorb a source in order and keep what was learnt in a run directory.

    Ctrl-C saves a checkpoint; the same command with --resume goes on from it, to the same bits as
    if it had never stopped. With --dask, the workers of a cluster read and absorb the files.
    """
    with reported():
        from bnpstream.cli.fit import run_fit

        run_fit(source or [], given, as_json=as_json)


@app.command()
@o.takes(Model=(*o.CONFIG, *o.MODEL), Source=o.SOURCE, Run=o.PACE)
def stream(source: o.Sources = None, **given: Any) -> None:
    """Answer every record with a line of JSON, learning from it: its cluster, how sure, how novel.

    Reads JSON lines from standard input unless a source is named. Answers are written before they
    are part of a checkpoint: after a crash and --resume some records are answered twice, alike.
    Keep one line for every "record".
    """
    with reported():
        from bnpstream.cli.fit import run_stream

        run_stream(source or ["-"], given)


@app.command()
@o.takes(
    Grid=o.GRID,
    Model=(*o.without(o.MODEL, *(one.name for one in o.GRID)), *o.PASSES),
    Source=o.without(o.SOURCE, "follow"),
    Run=o.named(o.PACE, "quiet", "log_json"),
)
def tune(
    source: o.Sources = None,
    out: Annotated[Path | None, typer.Option(help="JSON file for fit --config.")] = None,
    rows: Annotated[int, typer.Option(help="First rows to use.", min=2)] = 1000,
    held_out: Annotated[float, typer.Option(help="Share to predict: the last of them.")] = 0.2,
    seed: Annotated[
        int | None, typer.Option(help="Predict rows anywhere among them.", min=0)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Points at a time; -1 for all cores.", min=-1)] = 1,
    plot: Annotated[Path | None, typer.Option(help="Heat map, as .png, .svg or .pdf.")] = None,
    as_json: o.AsJson = False,
    **given: Any,
) -> None:
    """Try priors and base measures on the first rows of a source; keep what predicts best.

    Every point of the grid learns most of the rows in one pass and predicts the others. Options of
    the grid may be given several times. fit --config uses the best point, from the first row on.
    """
    with reported():
        from bnpstream.cli.tune import Outputs, run_tune

        plan = {"rows": rows, "held_out": held_out, "seed": seed, "n_jobs": jobs}
        run_tune(source or [], given, plan, Outputs(out, plot, as_json))


@app.command()
@o.takes(Source=(o.FORMAT,))
def evaluate(
    run: o.Run,
    source: o.Sources = None,
    labels: Annotated[
        Path | None, typer.Option(help="File with a label a line, one for every record.")
    ] = None,
    coarse: o.Coarse = None,
    as_json: o.AsJson = False,
    **given: Any,
) -> None:
    """Score records with a run: log predictive likelihood, perplexity, agreement with labels."""
    with reported():
        from bnpstream.cli.inspect import run_evaluate

        run_evaluate(run, source or ["-"], labels, given["format"], coarse, as_json=as_json)


@app.command()
@o.takes(Source=(o.FORMAT,))
def predict(
    run: o.Run,
    source: o.Sources = None,
    coarse: o.Coarse = None,
    as_json: o.AsJson = False,
    **given: Any,
) -> None:
    """Say where records belong, without learning from them."""
    with reported():
        from bnpstream.cli.inspect import run_predict

        run_predict(run, source or ["-"], given["format"], coarse, as_json=as_json)


@app.command()
def clusters(
    run: o.Run,
    id: Annotated[int | None, typer.Option("--id", help="One cluster, with exemplars.")] = None,
    top: Annotated[int | None, typer.Option(help="Only the heaviest.", min=1)] = None,
    words: Annotated[int, typer.Option(help="Words or columns of a cluster.", min=1)] = 8,
    coarse: o.Coarse = None,
    as_json: o.AsJson = False,
) -> None:
    """List clusters: weight, size, words by probability and by lift, exemplars."""
    with reported():
        from bnpstream.cli.inspect import run_clusters

        run_clusters(run, id, top, words, coarse, as_json=as_json)


@app.command()
def lineage(
    run: o.Run,
    id: Annotated[int | None, typer.Option("--id", help="What became of one cluster.")] = None,
    as_json: o.AsJson = False,
) -> None:
    """List births, merges, deaths and retirements of clusters."""
    with reported():
        from bnpstream.cli.inspect import run_lineage

        run_lineage(run, id, as_json=as_json)


@app.command()
def report(
    run: o.Run,
    out: Annotated[
        Path | None, typer.Option(help="HTML file; by default report.html in the run directory.")
    ] = None,
    image: Annotated[
        str | None, typer.Option(help="Rows are images: HEIGHTxWIDTH, such as 8x8.")
    ] = None,
) -> None:
    """Write one HTML page about a run that needs no network."""
    with reported():
        from bnpstream.cli.inspect import run_report

        run_report(run, out, image)


@app.command()
def bench(
    source: o.Sources = None,
    rows: Annotated[
        int, typer.Option(help="Documents to draw if no source is named.", min=1)
    ] = 20_000,
    as_json: o.AsJson = False,
) -> None:
    """Time reading, parsing, the pass and a checkpoint on this machine."""
    with reported():
        from bnpstream.cli.bench import run_bench

        run_bench(source, rows, as_json=as_json)


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="bars, powerlaw, kos, nyt, beyond, or all.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for page and results; by default the checkout's.")
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="Less data, in little time.")] = False,
    jobs: Annotated[int, typer.Option(help="Steps at a time; -1 for all cores.", min=-1)] = -1,
    docword: Annotated[
        Path | None, typer.Option(help="For nyt: the UCI file, docword.nytimes.txt.gz.")
    ] = None,
    vocab: Annotated[Path | None, typer.Option(help="Its words, vocab.nytimes.txt.")] = None,
    as_json: o.AsJson = False,
) -> None:
    """Run the paper's experiments again: figures, tables, and whether its claims hold.

    Needs a checkout, where the scripts are. What an interrupted run has finished is not run again.
    """
    with reported():
        from bnpstream.cli.reproduce import run_reproduce

        run_reproduce(name, out, small=small, jobs=jobs, files=(docword, vocab), as_json=as_json)


@datasets.command("list")
def list_datasets(as_json: o.AsJson = False) -> None:
    """List corpora: what they are, how large, where they are here, how to get them."""
    with reported():
        from bnpstream.cli.datasets import run_list

        run_list(as_json=as_json)


@datasets.command("fetch")
@o.takes(Progress=o.named(o.PACE, "quiet", "log_json"))
def fetch_dataset(
    name: Annotated[str, typer.Argument(help="kos or nytimes.")],
    to: Annotated[
        Path | None, typer.Option(help="Directory for its folder; by default the data directory.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--from", help="Address of a copy; by default UCI's.")
    ] = None,
    as_json: o.AsJson = False,
    **given: Any,
) -> None:
    """Download a corpus from the UCI repository and check it; go on where that was interrupted.

    The data directory is $BNPSTREAM_DATA, or shared/data beside a checkout, or the user's cache.
    """
    with reported():
        from bnpstream.cli.datasets import run_fetch

        run_fetch(name, to, base_url, given, as_json=as_json)
