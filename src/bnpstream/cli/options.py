"""Options of commands: those of the settings classes, and others that several commands share."""

import inspect
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import typer

from bnpstream._options import Told
from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.sharing import SharingOptions
from bnpstream.sources.options import Options as SourceOptions

SIMPLE = (str, int, float, bool)
"""Types that the command line reads as they are; all others are given as words."""


class Option(NamedTuple):
    """An option or an argument of a command."""

    name: str
    type: Any
    help: str
    shown: str | None = None
    """The default in words, if `default` is None."""
    flags: tuple[str, ...] = ()
    default: Any = None
    """Three dots: the option is required."""
    least: float | None = None
    is_argument: bool = False


@cache  # several commands share an option
def parameter_of(option: Option, panel: str | None = None) -> inspect.Parameter:
    """Return the parameter of a function that typer turns into an option in a panel of the help."""
    help = option.help if option.shown is None else f"{option.help}  [default: {option.shown}]"
    about: Any = typer.Argument(help=help)
    if not option.is_argument:
        flags = option.flags or (f"--{option.name.replace('_', '-')}",)
        about = typer.Option(*flags, help=help, rich_help_panel=panel, min=option.least)
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.default is ... else option.default,
        annotation=Annotated[
            option.type if option.default is not None else option.type | None, about
        ],
    )


def options_of(record: type[Any]) -> tuple[Option, ...]:
    """Return an option for each field of a settings class that has a help text."""
    hints = get_type_hints(record)
    found = []
    for field in fields(record):
        told: Told | None = field.metadata.get("told")
        if told is None:
            continue
        hint = hints[field.name]
        kind = next((one for one in get_args(hint) if one is not NoneType), hint)
        found.append(
            Option(
                field.name,
                kind if kind in SIMPLE else str,
                told.help,
                told.default,
                () if told.flag is None else (told.flag,),
                field.default,
                told.least,
            )
        )
    return tuple(found)


def named(options: Iterable[Option], *names: str) -> tuple[Option, ...]:
    """Return the options with these names."""
    return tuple(one for one in options if one.name in names)


def without(options: Iterable[Option], *names: str) -> tuple[Option, ...]:
    """Return all other options."""
    return tuple(one for one in options if one.name not in names)


def switch(name: str, help: str, *flags: str) -> Option:
    """Return a switch, off by default."""
    return Option(name, bool, help, None, flags or (f"--{name.replace('_', '-')}",), False)


RUN = Option("run", Path, "Run directory, as given to fit --out.", default=..., is_argument=True)
SOURCES = Option(
    "source",
    list[str],
    'Files, quoted patterns such as "logs/*.gz", - for standard input, or a broker, such as '
    "kafka://HOST:PORT/TOPIC.",
    is_argument=True,
)
COARSE = Option(
    "coarse", int, "Merge the clusters into this many groups for display.", "not merged", least=1
)
AS_JSON = switch("as_json", "Print JSON instead of text.", "--json")
CONFIG = Option(
    "config",
    Path,
    "JSON file with model options, as written by tune; options given here override it.",
    "none",
)
MODEL = options_of(ModelOptions)
SOURCE = options_of(SourceOptions)
FORMAT_OF_A_RUN = tuple(one._replace(shown="that of the run") for one in named(SOURCE, "format"))
FOLLOW = (
    switch("follow", "At the end of the file or topic, wait for more (like tail -f)."),
    Option(
        "start",
        str,
        "Where to start reading a broker, or to continue if messages were deleted: earliest or "
        "latest.",
        "earliest; deleted messages are an error",
        ("--from",),
    ),
    switch("wait", "If a broker does not answer, keep trying instead of stopping."),
)
TO = Option("to", str, "Send the answers to this broker.", "standard output")
PROGRESS = (
    switch("quiet", "Show no progress.", "--quiet", "-q"),
    switch("log_json", "Write progress as JSON lines to standard error."),
)
PACE = (
    Option("out", Path, "Run directory to save the model and its history in.", "not saved"),
    switch("resume", "Continue the run from its last checkpoint."),
    *options_of(Pace),
    switch("strict", "Stop at the first invalid record."),
    *PROGRESS,
)
CORES = (
    Option(
        "jobs",
        int,
        "Threads that learn blocks of rows in parallel; 2 or more need --staleness 1 or more.",
        default=1,
        least=1,
    ),
    *options_of(SharingOptions),
    Option("block_rows", int, "Rows per block, with --jobs.", "16384", least=1),
    Option(
        "dask", str, "Dask cluster: tcp://HOST:PORT, or local:2 for two local processes.", "none"
    ),
)
GRID = (
    Option("prior", list[str], "Priors to try.", "dp and nig"),
    Option(
        "concentration",
        list[str],
        'Concentrations (a) to try: numbers, or "learn".',
        'those of the paper, and "learn"',
    ),
    Option(
        "discount",
        list[str],
        'Discounts (sigma) to try: numbers, or "learn".',
        "0.25, 0.5 and 0.75",
    ),
    Option(
        "tilt", list[str], "Tilts (tau) to try; only a tau^sigma matters, so one is enough.", "1"
    ),
    Option(
        "alpha",
        list[str],
        'Dirichlet parameters of word counts to try: numbers, or "learn".',
        '0.02 to 0.5, and "learn"',
    ),
)
"""Options of a model that may be given several times."""
