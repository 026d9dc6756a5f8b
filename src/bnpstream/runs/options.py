"""What a user may say about a run: of its model, and of how its source is fed.

Nothing heavy is imported here, as the command line shows these options before anything runs.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from bnpstream._options import option


class OptionError(ValueError):
    """An option has a value that it cannot have, or does not go with the others."""


@dataclass(frozen=True)
class ModelOptions:
    """What a user may say about a model; None stands for the default."""

    prior: str | None = option("How clusters arise: dp, nig, ngg, stable or py.", "dp")
    concentration: float | None = option("a: more of it makes more clusters.", "learnt")
    discount: float | None = option("sigma: clusters grow like n^sigma.", "learnt")
    tilt: float | None = option("tau of nig and ngg.", "1")
    likelihood: str | None = option(
        "auto, multinomial, bursty (documents that repeat their words), gaussian, diagonal, "
        "spherical, poisson, bernoulli or categorical; of texts multinomial or bursty.",
        "multinomial for counts and texts, else auto",
    )
    alpha: float | None = option("Base measure of counts of words.", "learnt")
    threshold: float | None = option(
        "A row opens a cluster if the new one's share is larger.",
        "0.1, or the discount if that is larger",
        flag="--new-cluster-threshold",
    )
    max_responsibilities: int | None = option(
        "Most existing clusters that a row takes part in; 0 for no limit.", "4", least=0
    )
    stop_words: str | None = option(
        "Words of texts to leave out: auto (those that tell nothing about the first rows), "
        "english, none, or a file with one word per line.",
        "none",
    )
    min_count: int | None = option(
        "A word counts from this occurrence in the stream on.", "1", least=1
    )
    passes: int | None = option(
        "Passes over all rows (EP), which are kept in memory if there are several.", "1", least=1
    )
    revisit: int | None = option("Rows to keep and revisit.", "0", least=0)
    revisits: int | None = option("How often to revisit them.", "1", least=1)
    merge_threshold: float | None = option(
        "Log odds at which clusters merge.", "0 after several passes, else no merges"
    )
    split_threshold: float | None = option(
        "Log odds at which revisited clusters split.", "no splits", least=0
    )
    max_clusters: int | None = option(
        "Most clusters to keep; beyond that the cheapest to lose make room.", "no limit", least=2
    )
    max_memory: str | None = option("Most memory for the posterior, such as 512MB.", "no limit")
    prefix_rows: int | None = option(
        "Initial rows used to learn unset parameters.", "500, for texts 100", least=1
    )
    engine: Literal["auto", "compiled", "reference"] | None = option(
        "Loops: auto, compiled or reference.", "auto"
    )
    topics: int | None = option("Topics to group clusters into.", "as many as found", least=1)
    granularity: float | None = option(
        "Multiply the number of topics found: 2 for twice as many, 0.5 for half.", "1"
    )
    half_life: str | None = option(
        "Rows, or with --time-field a time (7d, 36h, 90m, 30s), after which a row counts for half.",
        "never",
    )
    staleness: int | None = None
    """With `block_rows`, what --jobs comes to: see `StreamingMixture`."""
    block_rows: int | None = None


@dataclass(frozen=True)
class Pace:
    """How a source is fed."""

    batch_rows: int = option("Records at a time.", value=1024, least=1)
    checkpoint_rows: int | None = option("Rows between two checkpoints.", "by time only", least=1)
    checkpoint_seconds: float = option(
        "Time between two checkpoints; longer where they take long.", value=10.0, least=0
    )
    max_rejects: int | None = option(
        "Stop when more records than this cannot be used.", "no limit", least=0
    )


@dataclass(frozen=True)
class Plan:
    """How a grid of settings is tried on the first rows of a source."""

    rows: int = option("First rows to use.", value=1000, least=2)
    held_out: float = option("Share of these rows to hold out and predict.", value=0.2)
    seed: int | None = option("Hold out rows at random, with this seed.", "the last rows", least=0)
    jobs: int = option("Grid points to try at a time; -1 for all cores.", value=1, least=-1)


SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class HalfLife(NamedTuple):
    """How long it takes until a row counts for half."""

    value: float
    """Rows, or seconds."""
    by_time: bool


def half_life_of(text: str) -> HalfLife:
    """Return what a user says: a number of rows, or a time with its unit.

    Examples
    --------
    >>> half_life_of("10000"), half_life_of("36h").value
    (HalfLife(value=10000.0, by_time=False), 129600.0)
    """
    unit = text[-1:]
    try:
        number = float(text[:-1] if unit in SECONDS else text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise OptionError(
            f"--half-life is {text!r}: give rows, as 10000, or a time, as 7d, 36h, 90m or 30s"
        )
    return HalfLife(number * SECONDS.get(unit, 1.0), unit in SECONDS)


def check_times(options: ModelOptions, time_field: str | None) -> None:
    """Raise OptionError if times are forgotten by and there are none, or the other way round."""
    half_life = options.half_life
    by_time = half_life is not None and half_life_of(half_life).by_time
    if by_time and time_field is None:
        raise OptionError(
            f"--half-life {half_life} is a time: give --time-field too, the field that has it"
        )
    if time_field is not None and not by_time:
        said = "it is not given" if half_life is None else f"{half_life} counts rows"
        raise OptionError(
            f"--time-field {time_field} is what --half-life goes by, but {said}: "
            "give --half-life 7d, or leave --time-field out"
        )
