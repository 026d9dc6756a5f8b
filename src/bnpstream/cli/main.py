"""The commands and their options; the numerical stack loads only when a command runs."""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from bnpstream._version import __version__
from bnpstream.cli import options as o
from bnpstream.cli.errors import reported
from bnpstream.cli.options import Option, switch
from bnpstream.runs.options import Plan

STYLE: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None}  # rich loads slowly
app = typer.Typer(pretty_exceptions_enable=False, **STYLE)
datasets = typer.Typer(help="Corpora: which are here, and fetching them.", **STYLE)
app.add_typer(datasets, name="datasets")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"bnpstream {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Cluster an endless stream: one pass, as many clusters as the data ask for."""
    from bnpstream.cli.output import prepare_streams

    prepare_streams()


class PanelledCommand(TyperCommand):
    """A command whose help lists its options in panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write what the arguments and the options are, panel by panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            usual = "Arguments" if one.param_type_name == "argument" else "Options"
            record = one.get_help_record(ctx)
            if record is not None:
                panels.setdefault(getattr(one, "rich_help_panel", None) or usual, []).append(record)
        for name, records in panels.items():
            with formatter.section(name):
                formatter.write_dl(records)


def command(
    name: str,
    module: str,
    help: str,
    *own: Option,
    to: typer.Typer = app,
    **panels: tuple[Option, ...],
) -> None:
    """Add a command, which a function "run_NAME" runs.

    Parameters
    ----------
    name : str
        What it is called.
    module : str
        Where in this room the function is.
    help : str
        What it does; the first paragraph is shown in the list of commands.
    *own : Option
        What it takes.
    to : Typer
        The group that it is in.
    **panels : tuple of Option
        What else it takes, by the heading under which the help lists it.
    """

    def run(**given: Any) -> None:
        with reported():
            getattr(import_module(f"bnpstream.cli.{module}"), f"run_{name}")(**given)

    parameters = [o.parameter_of(one) for one in own]
    parameters += [o.parameter_of(one, panel) for panel, group in panels.items() for one in group]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    to.command(name, help=help, short_help=help.split("\n\n")[0], cls=PanelledCommand)(run)


command(
    "demo",
    "demo",
    "Stream scikit-learn's handwritten digits once and show what was found.",
    Option("out", Path, "Folder for the run and its report.", default=Path("demo-out")),
    switch("as_json", "Print one JSON document.", "--json"),
)
command(
    "fit",
    "fit",
    "Absorb a source in order and keep what was learnt in a run directory.\n\n"
    "Ctrl-C saves a checkpoint; the same command with --resume goes on from it, to the same bits "
    "as if it had never stopped. With --jobs, threads learn blocks of rows side by side; with "
    "--dask, the workers of a cluster read and absorb the files.",
    o.SOURCES,
    o.AS_JSON,
    Model=(o.CONFIG, *o.MODEL),
    Source=(*o.SOURCE, o.FOLLOW),
    Run=o.PACE,
    Cores=o.CORES,
)
command(
    "stream",
    "fit",
    "Answer every record with a line of JSON, learning from it: cluster, topic, how sure, how new."
    "\n\nReads JSON lines from standard input unless a source is named. Answers are written before "
    "they are part of a checkpoint: after a crash and --resume some records are answered twice, "
    'alike. Keep one line for every "record".',
    o.SOURCES,
    Model=(o.CONFIG, *o.without(o.MODEL, "passes")),
    Source=(*o.SOURCE, o.FOLLOW),
    Run=o.PACE,
)
command(
    "tune",
    "tune",
    "Try priors and base measures on the first rows of a source; keep what predicts best.\n\n"
    "Every point of the grid learns most of the rows in one pass and predicts the others. Options "
    "of the grid may be given several times. fit --config uses the best point, from the first row "
    "on.",
    o.SOURCES,
    Option("out", Path, "JSON file for fit --config.", "nothing is kept"),
    *o.options_of(Plan),
    Option("plot", Path, "Heat map, as .png, .svg or .pdf.", "none"),
    o.AS_JSON,
    Grid=o.GRID,
    Model=o.without(o.MODEL, *(one.name for one in o.GRID)),
    Source=o.SOURCE,
    Run=o.PROGRESS,
)
command(
    "evaluate",
    "inspect",
    "Score records with a run: log predictive likelihood, perplexity, agreement with labels.",
    o.RUN,
    o.SOURCES,
    Option("labels", Path, "File with a label per line, one for every record.", "none"),
    o.COARSE,
    o.AS_JSON,
    Source=o.named(o.SOURCE, "format"),
)
command(
    "predict",
    "inspect",
    "Say where records belong, without learning from them.",
    o.RUN,
    o.SOURCES,
    o.COARSE,
    o.AS_JSON,
    Source=o.named(o.SOURCE, "format"),
)
command(
    "clusters",
    "inspect",
    "List topics, and the clusters in each: weight, size, words, exemplars.",
    o.RUN,
    Option("id", int, "One cluster, with exemplars.", "all"),
    Option("top", int, "Only the heaviest clusters.", "all", least=1),
    Option("words", int, "Words or columns of a cluster.", default=8, least=1),
    o.COARSE,
    o.AS_JSON,
)
command(
    "lineage",
    "inspect",
    "List births, merges, splits, deaths and retirements of clusters and topics.",
    o.RUN,
    Option("id", int, "What became of one cluster.", "all"),
    o.AS_JSON,
)
command(
    "report",
    "inspect",
    "Write one HTML page about a run that needs no network.",
    o.RUN,
    Option("out", Path, "HTML file.", "report.html in the run directory"),
    Option("image", str, "Rows are images: HEIGHTxWIDTH, such as 8x8.", "guessed"),
)
command(
    "serve",
    "serve",
    "Show a run in the browser while it grows, and after; answer programs.\n\n"
    "A process of its own that only reads the run directory: it cannot disturb what learns. "
    "/metrics is for Prometheus, /openapi.json says what programs can ask.",
    o.RUN,
    Option(
        "host",
        str,
        "Address to listen on; others than this machine need --token.",
        default="127.0.0.1",
    ),
    Option("port", int, "Port; 0 for a free one.", default=8765, least=0),
    switch("api", "Answer POST /predict and /novelty by the last checkpoint."),
    switch("learn", "Learn what is posted to /learn, in a process of its own."),
    Option(
        "token",
        str,
        "What requests have to know: a bearer token, or a password.",
        "$BNPSTREAM_TOKEN, or none",
    ),
    switch("log_json", "Write a line of JSON per request to standard error."),
    Alerts=(
        Option("alert_size", float, "Alert when a new cluster has so many rows.", "never", least=0),
        Option("alert_within", str, "Time it has for that, from its birth on.", default="1d"),
        Option(
            "alert_novelty",
            float,
            "Alert when the stream's novelty is beyond this quantile of its own past.",
            "never",
        ),
        Option("webhook", str, "Address that alerts are posted to.", "standard output only"),
    ),
)
command(
    "bench",
    "bench",
    "Time reading, parsing, the pass and a checkpoint on this machine.",
    o.SOURCES,
    Option("rows", int, "Documents to draw if no source is named.", default=20_000, least=1),
    o.AS_JSON,
)
command(
    "warmup",
    "warmup",
    "Compile the loops that streams need, once, so that later commands begin at once.\n\n"
    "For images and supervisors. Loops are kept on disk for this machine: where, NUMBA_CACHE_DIR "
    "says. What was compiled before is not compiled again.",
    Option("kind", list[str], "Streams: text, counts or rows; may be given several times.", "all"),
    o.AS_JSON,
)
command(
    "reproduce",
    "reproduce",
    "Run the paper's experiments again: figures, tables, and whether its claims hold.\n\n"
    "Needs a checkout, where the scripts are. What an interrupted run has finished is not run "
    "again.",
    Option("name", str, "bars, powerlaw, kos, nyt, beyond, or all.", default=..., is_argument=True),
    Option("out", Path, "Folder for page and results.", "the checkout's"),
    switch("small", "Less data, in little time."),
    Option("jobs", int, "Steps at a time; -1 for all cores.", default=-1, least=-1),
    Option("docword", Path, "For nyt: the UCI file, docword.nytimes.txt.gz.", "as found"),
    Option("vocab", Path, "Its words, vocab.nytimes.txt.", "as found"),
    o.AS_JSON,
)
command(
    "list",
    "datasets",
    "List corpora: what they are, how large, where they are here, how to get them.",
    o.AS_JSON,
    to=datasets,
)
command(
    "fetch",
    "datasets",
    "Download a corpus from the UCI repository and check it; go on where that was interrupted.\n\n"
    "The data directory is $BNPSTREAM_DATA, or shared/data beside a checkout, or the user's cache.",
    Option("name", str, "kos or nytimes.", default=..., is_argument=True),
    Option("to", Path, "Directory for its folder.", "the data directory"),
    Option("base_url", str, "Address of a copy.", "UCI's", ("--from",)),
    o.AS_JSON,
    to=datasets,
    Progress=o.PROGRESS,
)
