"""From settings that can be written down to a model."""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from bnpstream.likelihoods import DirichletMultinomial, Likelihood
from bnpstream.priors import NAMED_PRIORS, PARAMETERS, Prior
from bnpstream.runs.mixture import Mixture
from bnpstream.sources.records import Kind

GIVEN = ("concentration", "discount", "tilt")
"""Parameters of priors that can be given, as far as a prior has them."""


@dataclass(frozen=True)
class ModelOptions:
    """What a user may say about a model; None is the default of the estimator.

    Parameters
    ----------
    prior : {"dp", "nig", "ngg", "stable", "py"}, optional
        How clusters arise; by default "dp".
    concentration, discount, tilt : float, optional
        Its parameters, as far as it has them; what is not given is learnt from the stream, a tilt
        is 1.
    likelihood : str, optional
        What rows look like in a cluster, by name.
    alpha : float, optional
        Base measure of counts of words; by default it is learnt from the stream.
    threshold : float, optional
        new_cluster_threshold.
    passes : int, optional
        Passes over all rows, which are kept in memory if there are several.
    revisit, revisits : int, optional
        Rows that are kept and looked at again, and how often.
    merge_threshold : float, optional
        Log odds at which clusters are merged.
    max_clusters : int, optional
        Clusters at most.
    max_memory : str, optional
        Memory of the posterior at most, such as "512MB".
    prefix_rows : int, optional
        Rows from which is learnt what is left open.
    engine : {"auto", "compiled", "reference"}, optional
        Loops.
    half_life : str, optional
        Rows, or a time such as "7d", after which a row counts for half; by default never.
    """

    prior: str | None = None
    concentration: float | None = None
    discount: float | None = None
    tilt: float | None = None
    likelihood: str | None = None
    alpha: float | None = None
    threshold: float | None = None
    passes: int | None = None
    revisit: int | None = None
    revisits: int | None = None
    merge_threshold: float | None = None
    max_clusters: int | None = None
    max_memory: str | None = None
    prefix_rows: int | None = None
    engine: Literal["auto", "compiled", "reference"] | None = None
    half_life: str | None = None


class OptionError(ValueError):
    """An option has a value that it cannot have, or does not go with the others."""


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


def make_prior(options: ModelOptions) -> Prior:
    """Return the prior: what is not given is learnt.

    OptionError names a parameter that it does not have.
    """
    name = options.prior or "dp"
    if name not in NAMED_PRIORS:
        raise OptionError(f"there is no prior {name!r}; there are {', '.join(NAMED_PRIORS)}")
    given = {
        parameter: float(value)
        for parameter in GIVEN
        if (value := getattr(options, parameter)) is not None
    }
    for parameter in given:
        if parameter not in PARAMETERS[name]:
            raise OptionError(
                f"--{parameter}: the prior {name} has no {parameter}; "
                f"it has {' and '.join(PARAMETERS[name])}"
            )
    guess = NAMED_PRIORS[name]
    left: Any = tuple(parameter for parameter in guess.learn if parameter not in given)
    change: Any = given
    try:
        return replace(guess, learn=left, **change)
    except ValueError as error:
        raise OptionError(str(error)) from error


SETTINGS = {
    "threshold": "new_cluster_threshold",
    "engine": "engine",
    "max_clusters": "max_clusters",
    "max_memory": "max_memory",
    "prefix_rows": "prefix_rows",
    "merge_threshold": "merge_threshold",
}
"""Options that are settings of a stream as they are."""


def make_model(options: ModelOptions, kind: Kind) -> Mixture:
    """Return a model for rows of a kind; OptionError says which setting does not fit them."""
    prior = make_prior(options)
    settings = {
        name: value
        for option, name in SETTINGS.items()
        if (value := getattr(options, option)) is not None
    } | _revisits(options)
    if options.half_life is not None:
        settings["half_life"] = half_life_of(options.half_life).value
    if kind == "documents":
        _refuse_for_documents(options)
    try:
        if kind == "documents":
            return Mixture.of_documents(prior, settings)
        return Mixture.of_columns(prior, _likelihood(options, kind), settings)
    except OptionError:
        raise
    except ValueError as error:
        raise OptionError(str(error)) from error


def _revisits(options: ModelOptions) -> dict[str, Any]:
    """Return the settings of a stream that say which rows are revisited, and how often."""
    if options.revisits is not None and options.revisit is None:
        raise OptionError("--revisits says how often the rows of --revisit are seen: give both")
    if (passes := options.passes or 1) > 1:
        if options.revisit is not None:
            raise OptionError("--passes revisits all rows and --revisit the last ones: give one")
        return {"revisit": "all", "n_revisits": passes - 1}
    if options.revisit is None:
        return {}
    often = {} if options.revisits is None else {"n_revisits": options.revisits}
    return {"revisit": options.revisit, **often}


def _likelihood(options: ModelOptions, kind: Kind) -> Likelihood | str:
    name = options.likelihood or ("multinomial" if kind == "counts" else "auto")
    if options.alpha is None:
        return name
    if name != "multinomial":
        raise OptionError(
            f"--alpha is the base measure of counts of words, and these rows are {name}: "
            "leave it out, or give --likelihood multinomial"
        )
    try:
        return DirichletMultinomial(options.alpha)
    except ValueError as error:
        raise OptionError(f"--alpha: {error}") from error


def _refuse_for_documents(options: ModelOptions) -> None:
    """Raise OptionError for what a growing vocabulary does not go with."""
    refused = {
        "--alpha": options.alpha is not None,
        "--likelihood": options.likelihood is not None,
    }
    for name, given in refused.items():
        if given:
            raise OptionError(
                f"{name} needs a fixed vocabulary, and that of texts grows: "
                "give --vocab FILE or --hash-bits 18 with it"
            )
