"""Options that several commands share, in groups."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

Run = Annotated[Path, typer.Argument(help="Run directory: what --out of fit or stream named.")]
Sources = Annotated[
    list[str] | None,
    typer.Argument(help='Files, quoted patterns such as "logs/*.gz", or - for standard input.'),
]
Coarse = Annotated[int | None, typer.Option(help="Merge clusters into so many, to look at.", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Shared(NamedTuple):
    """An option: name of the parameter, its type, its help; None is the default."""

    name: str
    type: Any
    help: str
    flags: tuple[str, ...] = ()
    default: Any = None
    least: int | None = None


FORMAT = Shared(
    "format",
    str,
    "uci, lda-c, svmlight, mtx, npz, csv, tsv, parquet, arrow, jsonl or text; by default guessed "
    "from name and content.",
)
SOURCE = (
    FORMAT,
    Shared("vocab", str, "File with a word a line: names of columns, words of texts."),
    Shared("n_features", int, "Columns, where the format does not say.", least=1),
    Shared("id_field", str, "Field or column with a record's id."),
    Shared("text_field", str, "Field or column with a text."),
    Shared("counts_field", str, "Field with words, or with counts of words."),
    Shared("time_field", str, "Field or column with a record's time, for --half-life 7d."),
    Shared("columns", str, "Columns to use, separated by commas."),
    Shared("hash_bits", int, "Texts as counts over 2^N columns; else their vocabulary grows."),
    Shared("delimiter", str, "Between the fields of a CSV line."),
    Shared("header", bool, "Whether a CSV file begins with names.", ("--header/--no-header",)),
    Shared("follow", bool, "At the end of the file wait for more.", ("--follow",), False),
)
MODEL = (
    Shared("prior", str, "dp (default), nig, ngg, stable or py."),
    Shared("concentration", float, "a: more is more clusters; by default learnt."),
    Shared("discount", float, "sigma: clusters grow like n^sigma; by default learnt."),
    Shared("tilt", float, "tau of nig and ngg, by default 1."),
    Shared(
        "likelihood",
        str,
        "auto, multinomial, gaussian, diagonal, spherical, poisson, bernoulli or categorical.",
    ),
    Shared("alpha", float, "Base measure of counts of words; by default learnt."),
    Shared(
        "threshold",
        float,
        "A row opens a cluster if the new one's share is larger.",
        ("--new-cluster-threshold",),
    ),
    Shared("revisit", int, "Rows that are kept and looked at again.", least=0),
    Shared("revisits", int, "How often they are looked at again.", least=1),
    Shared("merge_threshold", float, "Log odds at which clusters merge."),
    Shared("max_clusters", int, "Clusters at most: the least costly make room.", least=2),
    Shared("max_memory", str, "Memory of the posterior at most, such as 512MB."),
    Shared("prefix_rows", int, "Rows from which is learnt what is left open.", least=1),
    Shared("engine", str, "auto, compiled or reference."),
    Shared(
        "half_life",
        str,
        "Rows, or with --time-field a time (7d, 36h, 90m, 30s), after which a row counts for half.",
    ),
)
CONFIG = (Shared("config", Path, "JSON file of these options, as tune writes; they override it."),)
PASSES = (Shared("passes", int, "Passes over all rows (EP), which are kept in memory.", least=1),)
CLUSTER = (
    Shared("dask", str, "Dask cluster: tcp://HOST:PORT, or local:2 for two processes here."),
    Shared(
        "staleness",
        int,
        "Partitions that another one need not wait for, by default 1: one more is worked on at a "
        "time.",
        least=0,
    ),
)
PACE = (
    Shared("out", Path, "Run directory, where all that was learnt is kept.", ("--out",)),
    Shared("resume", bool, "Go on from the last checkpoint.", ("--resume",), False),
    Shared("checkpoint_rows", int, "Rows between two checkpoints.", least=1),
    Shared("checkpoint_seconds", float, "Time between two checkpoints.", (), 10.0, least=0),
    Shared("batch_rows", int, "Records at a time.", (), 1024, least=1),
    Shared("strict", bool, "Stop at the first record that cannot be used.", ("--strict",), False),
    Shared("max_rejects", int, "Stop when more records than this cannot be used.", least=0),
    Shared("quiet", bool, "No progress.", ("--quiet", "-q"), False),
    Shared("log_json", bool, "Progress as JSON lines on standard error.", ("--log-json",), False),
)

GRID = (
    Shared("prior", list[str], "Priors to try; by default dp and nig."),
    Shared("concentration", list[str], 'Values of a; by default those of the paper, and "learn".'),
    Shared("discount", list[str], 'Values of sigma for ngg, stable and py; "learn" is one.'),
    Shared("tilt", list[str], "Values of tau; only a tau^sigma matters, so one, 1, is enough."),
    Shared("alpha", list[str], 'Base measures of counts of words; "learn" is one.'),
)
"""Options of `MODEL` that may be given several times."""


def named(options: tuple[Shared, ...], *names: str) -> tuple[Shared, ...]:
    """Return some options, by name."""
    return tuple(one for one in options if one.name in names)


def without(options: tuple[Shared, ...], *names: str) -> tuple[Shared, ...]:
    """Return all other options."""
    return tuple(one for one in options if one.name not in names)


def takes(**groups: tuple[Shared, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, which takes them as keywords, the options of some groups.

    Parameters
    ----------
    **groups : tuple of Shared
        From the heading under which the help lists a group to its options.
    """

    def give(command: Callable[..., None]) -> Callable[..., None]:
        own = [
            parameter
            for parameter in inspect.signature(command).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        shared = [_parameter(one, panel) for panel, group in groups.items() for one in group]
        command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
        return command

    return give


def _parameter(one: Shared, panel: str) -> inspect.Parameter:
    flags = one.flags or (f"--{one.name.replace('_', '-')}",)
    option = typer.Option(*flags, help=one.help, rich_help_panel=panel, min=one.least)
    kind = one.type if one.default is not None else one.type | None
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=one.default,
        annotation=Annotated[kind, option],
    )
