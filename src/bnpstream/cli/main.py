"""The commands and their options; the numerical stack loads only when a command runs."""

import inspect
import platform
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from bnpstream._version import __version__
from bnpstream.cli import options as o
from bnpstream.cli.errors import heard, reported
from bnpstream.cli.options import Option, switch
from bnpstream.runs.options import Plan

STACK = ("numpy", "scipy", "numba", "scikit-learn", "matplotlib", "pyarrow", "dask", "river")
"""Packages whose versions belong in a bug report."""
STYLE: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None}  # slow to import
app = typer.Typer(pretty_exceptions_enable=False, **STYLE)
datasets = typer.Typer(help="List and download public text corpora.", **STYLE)
app.add_typer(datasets, name="datasets")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"bnpstream {__version__}")
        typer.echo(f"Python {platform.python_version()}, {platform.platform()}")
        for name in STACK:
            with suppress(PackageNotFoundError):
                typer.echo(f"{name} {installed(name)}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the versions of bnpstream and of its dependencies, and exit.",
        ),
    ] = False,
) -> None:
    """Cluster a stream in one pass, with as many clusters as the data call for."""
    from bnpstream.cli.output import prepare_streams

    prepare_streams()
    context.with_resource(heard())


class PanelledCommand(TyperCommand):
    """A command whose help lists its options in panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options, panel by panel."""
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
    """Add a command that runs the function "run_NAME".

    Parameters
    ----------
    name : str
        Name of the command.
    module : str
        Module of the function, in this room.
    help : str
        Help; the first paragraph is shown in the list of commands.
    *own : Option
        Its options.
    to : Typer
        Group of commands that it belongs to.
    **panels : tuple of Option
        Further options, by the heading of their panel.
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
    "Cluster example data, print what was found and write a report.\n\n"
    "text: descriptions of functions of the installed NumPy, SciPy and scikit-learn, with default "
    "settings. digits: scikit-learn's handwritten digits, with settings chosen by hand.",
    Option("name", str, "text or digits.", default="text", is_argument=True),
    Option("out", Path, "Folder for the run and its report.", default=Path("demo-out")),
    switch("as_json", "Print one JSON document.", "--json"),
)
command(
    "fit",
    "fit",
    "Cluster the records of a source and save the model in a run directory.\n\n"
    "Ctrl-C saves a checkpoint. The same command with --resume continues from it, and the result "
    "is identical, bit for bit, to that of an uninterrupted run. --jobs learns blocks of rows in "
    "parallel threads; --dask distributes the files over the workers of a Dask cluster.",
    o.SOURCES,
    o.AS_JSON,
    Model=(o.CONFIG, *o.MODEL),
    Source=(*o.SOURCE, *o.FOLLOW),
    Run=o.PACE,
    Cores=o.CORES,
)
command(
    "stream",
    "fit",
    "Cluster records as they arrive; answer each with a JSON line: cluster, probability, novelty."
    "\n\nReads JSON lines from standard input unless a source is given. Answers are written before "
    "the checkpoint that covers them, so after a crash and --resume some records are answered a "
    'second time, identically: keep one line per "record".',
    o.SOURCES,
    o.TO,
    Model=(o.CONFIG, *o.without(o.MODEL, "passes")),
    Source=(*o.SOURCE, *o.FOLLOW),
    Run=o.PACE,
)
command(
    "tune",
    "tune",
    "Try a grid of priors and base measures on the first rows; keep what predicts best.\n\n"
    "Each grid point learns most of these rows in one pass and is scored on the rest. Grid "
    "options may be given several times. fit --config applies the best settings.",
    o.SOURCES,
    Option("out", Path, "Save the best settings as JSON, for fit --config.", "not saved"),
    *o.options_of(Plan),
    Option("plot", Path, "Save a heat map of the grid: .png, .svg or .pdf.", "none"),
    o.AS_JSON,
    Grid=o.GRID,
    Model=o.without(o.MODEL, *(one.name for one in o.GRID)),
    Source=o.SOURCE,
    Run=o.PROGRESS,
)
command(
    "evaluate",
    "inspect",
    "Score records with a saved run: log predictive, perplexity, agreement with labels.",
    o.RUN,
    o.SOURCES,
    Option("labels", Path, "File with the true labels, one line per record.", "none"),
    Option("label_field", str, "Field or column with the true label of the record.", "none"),
    o.COARSE,
    o.AS_JSON,
    Source=o.FORMAT_OF_A_RUN,
)
command(
    "predict",
    "inspect",
    "Assign records to the clusters of a saved run, without learning from them.\n\n"
    "probability: of the cluster, if the record belongs to one of the clusters found so far. "
    "novelty: probability that it belongs to none of them. novelty_quantile (vectors and tables): "
    "share of the last rows of the stream that were less surprising.",
    o.RUN,
    o.SOURCES,
    o.COARSE,
    o.AS_JSON,
    Source=o.FORMAT_OF_A_RUN,
)
command(
    "clusters",
    "inspect",
    "List the topics of a run and their clusters: weight, size, words, typical records.",
    o.RUN,
    Option("id", int, "Show one cluster in detail, with typical records.", "all clusters"),
    Option(
        "topic", int, "Show one topic, with all its clusters and typical records.", "all topics"
    ),
    Option("top", int, "Number of topics to show, largest first.", "all", least=1),
    Option(
        "per_topic",
        int,
        "Number of clusters to show per topic, largest first.",
        "3; all with --topic or --json",
        least=1,
    ),
    Option("words", int, "Words or columns to show per cluster.", default=8, least=1),
    o.COARSE,
    o.AS_JSON,
)
command(
    "lineage",
    "inspect",
    "List the history of clusters and topics: births, merges, splits, deaths, retirements.",
    o.RUN,
    Option("id", int, "Show the history of one cluster.", "all"),
    o.AS_JSON,
)
command(
    "report",
    "inspect",
    "Write a self-contained HTML report about a run.",
    o.RUN,
    Option("out", Path, "Path of the HTML file.", "report.html in the run directory"),
    Option("image", str, "Show rows as images: HEIGHTxWIDTH, such as 8x8.", "guessed"),
)
command(
    "serve",
    "serve",
    "Show a live page about a run in the browser; answer HTTP requests.\n\n"
    "The server is a separate process that only reads the run directory, so it cannot disturb "
    "learning. "
    "/metrics is for Prometheus; /openapi.json describes the API.",
    o.RUN,
    Option(
        "host",
        str,
        "Address to listen on; any other than this machine needs --token.",
        default="127.0.0.1",
    ),
    Option("port", int, "Port; 0 for a free one.", default=8765, least=0),
    switch("api", "Also answer POST /predict and /novelty, from the last checkpoint."),
    switch("learn", "Learn the records posted to /learn, in a separate process."),
    Option(
        "token",
        str,
        "Secret that requests must send, as bearer token or password.",
        "$BNPSTREAM_TOKEN, or none",
    ),
    switch("log_json", "Log requests as JSON lines to standard error."),
    Alerts=(
        Option(
            "alert_size",
            float,
            "Alert when a new cluster reaches this many rows.",
            "never",
            least=0,
        ),
        Option("alert_within", str, "How soon after its birth it must do so.", default="1d"),
        Option(
            "alert_novelty",
            float,
            "Alert when novelty exceeds this quantile of its own past, such as 0.99.",
            "never",
        ),
        Option("webhook", str, "URL to post alerts to.", "standard output only"),
    ),
)
command(
    "bench",
    "bench",
    "Measure speed on this machine: reading, learning, saving.",
    o.SOURCES,
    Option("rows", int, "Documents to generate if no source is given.", default=20_000, least=1),
    o.AS_JSON,
)
command(
    "warmup",
    "warmup",
    "Compile the inner loops ahead of time, so that later commands start without delay.\n\n"
    "Useful in container images and before a service starts. Compiled code is cached on disk, in "
    "NUMBA_CACHE_DIR if that is set, and is not compiled again.",
    Option("kind", list[str], "Kind of input: text, counts or rows; repeatable.", "all"),
    o.AS_JSON,
)
command(
    "reproduce",
    "reproduce",
    "Reproduce the paper's experiments: figures, tables, and whether its claims hold.\n\n"
    "Needs a source checkout, which has the scripts. An interrupted run continues where it "
    "stopped.",
    Option("name", str, "bars, powerlaw, kos, nyt, beyond, or all.", default=..., is_argument=True),
    Option("out", Path, "Folder for the page and the results.", "papers/tank2015 of the checkout"),
    switch("small", "Use less data, for a quick check."),
    switch("full", "Run what takes hours instead: powerlaw and kos, with more runs and grids."),
    Option("jobs", int, "Steps to run in parallel; -1 for all cores.", default=-1, least=-1),
    Option("docword", Path, "For nyt: path of docword.nytimes.txt.gz.", "the data directory"),
    Option("vocab", Path, "For nyt: path of vocab.nytimes.txt.", "the data directory"),
    o.AS_JSON,
)
command(
    "list",
    "datasets",
    "List known corpora: what they are, their size, where they are, how to get them.",
    o.AS_JSON,
    to=datasets,
)
command(
    "fetch",
    "datasets",
    "Download a corpus from the UCI repository and verify it.\n\n"
    "An interrupted download continues where it stopped. The data directory is $BNPSTREAM_DATA if "
    "that is set, else shared/data beside a checkout, else the user's cache.",
    Option("name", str, "kos or nytimes.", default=..., is_argument=True),
    Option("to", Path, "Directory to create the corpus folder in.", "the data directory"),
    Option("base_url", str, "Base URL of a mirror.", "the UCI repository", ("--from",)),
    o.AS_JSON,
    to=datasets,
    Progress=o.PROGRESS,
)
