"""Options of a run: its model, and how its source is fed.

Nothing heavy is imported here, because --help shows these options.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from bnpstream._options import option


class OptionError(ValueError):
    """An option has an invalid value, or does not go with the others."""


@dataclass(frozen=True)
class ModelOptions:
    """Options of a model; None stands for the default."""

    prior: str | None = option(
        "Prior over partitions: dp (Dirichlet process), py (Pitman-Yor), nig (normalized inverse "
        "Gaussian), ngg (normalized generalized gamma) or stable (normalized stable).",
        "dp",
    )
    concentration: float | None = option(
        "Concentration a; larger values give more clusters.", "learnt"
    )
    discount: float | None = option(
        "Discount sigma; the number of clusters grows like n^sigma.", "learnt"
    )
    tilt: float | None = option("Tilt tau, for nig and ngg.", "1")
    likelihood: str | None = option(
        "Distribution of rows within a cluster: auto, multinomial, bursty (documents that repeat "
        "their words), gaussian, diagonal, spherical, directional (vectors of length 1), scaled "
        "(a spherical Gaussian with a scale per row), poisson, bernoulli or categorical; for "
        "texts multinomial or bursty.",
        "multinomial for counts and texts, else auto",
    )
    alpha: float | None = option("Dirichlet parameter of word counts (the base measure).", "learnt")
    threshold: float | None = option(
        "A row opens a new cluster if its probability of being new exceeds this.",
        "0.1, or the discount if that is larger",
        flag="--new-cluster-threshold",
    )
    max_responsibilities: int | None = option(
        "Largest number of existing clusters that share a row; 0 for no limit.", "4", least=0
    )
    stop_words: str | None = option(
        "Words to ignore in texts: auto (words that are uninformative in the first rows), "
        "english, none, or a file with one word per line.",
        "none",
    )
    min_count: int | None = option(
        "Ignore a word until it has occurred this many times in the stream.", "1", least=1
    )
    passes: int | None = option(
        "Passes over all rows (EP); more than one keeps all rows in memory.", "1", least=1
    )
    revisit: int | None = option("Keep this many recent rows and revisit them.", "0", least=0)
    revisits: int | None = option("Number of times to revisit each of these rows.", "1", least=1)
    merge_threshold: float | None = option(
        "Merge two clusters if the log odds in favour of merging exceed this.",
        "0 with several passes, else no merges",
    )
    split_threshold: float | None = option(
        "Split a revisited cluster if the log odds in favour of splitting exceed this.",
        "no splits",
        least=0,
    )
    max_clusters: int | None = option(
        "Largest number of clusters; at the limit, those that the model can best do without are "
        "merged or retired.",
        "no limit",
        least=2,
    )
    max_memory: str | None = option("Memory limit of the posterior, such as 512MB.", "no limit")
    prefix_rows: int | None = option(
        "Initial rows used to learn unset parameters.", "500; 100 for texts", least=1
    )
    engine: Literal["auto", "compiled", "reference"] | None = option(
        "Implementation: auto, compiled or reference (plain NumPy, slow).", "auto"
    )
    topics: int | None = option(
        "Number of topics to group the clusters into.", "found from the data", least=1
    )
    granularity: float | None = option(
        "Multiply the number of topics found: 2 for twice as many, 0.5 for half as many.", "1"
    )
    half_life: str | None = option(
        "Forget: a row counts half after this many rows or, with --time-field, after this time "
        "(7d, 36h, 90m, 30s).",
        "never forget",
    )
    staleness: int | None = None
    """Set, with `block_rows`, by --jobs: see `StreamingMixture`."""
    block_rows: int | None = None


@dataclass(frozen=True)
class Pace:
    """How a source is fed."""

    batch_rows: int = option("Records per batch.", value=1024, least=1)
    checkpoint_rows: int | None = option("Rows between two checkpoints.", "by time only", least=1)
    checkpoint_seconds: float = option(
        "Seconds between two checkpoints; longer if saving is slow.", value=10.0, least=0
    )
    max_rejects: int | None = option(
        "Stop after more invalid records than this.", "no limit", least=0
    )


@dataclass(frozen=True)
class Plan:
    """How to try a grid of settings on the first rows of a source."""

    rows: int = option("Number of initial rows to use.", value=1000, least=2)
    held_out: float = option("Share of these rows to hold out and predict.", value=0.2)
    seed: int | None = option("Hold out rows at random, with this seed.", "the last rows", least=0)
    jobs: int = option("Grid points to try in parallel; -1 for all cores.", value=1, least=-1)


SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class HalfLife(NamedTuple):
    """The number of rows, or the time, after which a row counts half."""

    value: float
    """Rows, or seconds."""
    by_time: bool


def half_life_of(text: str) -> HalfLife:
    """Return the half-life given: a number of rows, or a time with its unit.

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
            f"--half-life is {text!r}: give rows, such as 10000, or a time, such as 7d, "
            "36h, 90m or 30s"
        )
    return HalfLife(number * SECONDS.get(unit, 1.0), unit in SECONDS)


def check_times(options: ModelOptions, time_field: str | None) -> None:
    """Raise OptionError if a half-life in time lacks times, or the other way round."""
    half_life = options.half_life
    by_time = half_life is not None and half_life_of(half_life).by_time
    if by_time and time_field is None:
        raise OptionError(
            f"--half-life {half_life} is a time: also give --time-field, the field that holds it"
        )
    if time_field is not None and not by_time:
        said = "it is not given" if half_life is None else f"{half_life} counts rows"
        raise OptionError(
            f"--time-field {time_field} is used by --half-life, but {said}: "
            "give --half-life 7d, or leave --time-field out"
        )
