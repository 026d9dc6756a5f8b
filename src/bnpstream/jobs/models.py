"""From settings that can be written down to a model."""

from dataclasses import dataclass
from typing import Any, Literal

from bnpstream.estimator import DocumentMixture, StreamingMixture
from bnpstream.estimator.base import require_whole
from bnpstream.likelihoods import DirichletMultinomial, Likelihood
from bnpstream.likelihoods.multinomial import LEARN
from bnpstream.priors import (
    GeneralizedGamma,
    PitmanYor,
    Prior,
    dirichlet_process,
    normalized_inverse_gaussian,
    normalized_stable,
)
from bnpstream.streams.records import Kind

Mixture = StreamingMixture | DocumentMixture


@dataclass(frozen=True)
class ModelOptions:
    """What a user may say about a model; None is the default of the estimator.

    Parameters
    ----------
    prior : {"dp", "nig", "ngg", "stable", "py"}, optional
        How clusters arise; by default "dp".
    concentration, discount, tilt : float, optional
        Its parameters, as far as it has them.
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


class OptionError(ValueError):
    """An option has a value that it cannot have, or does not go with the others."""


def make_prior(options: ModelOptions) -> Prior:
    """Return the prior; OptionError names a parameter that it does not have."""
    takes = {
        "dp": ("concentration",),
        "nig": ("concentration", "tilt"),
        "ngg": ("concentration", "discount", "tilt"),
        "stable": ("discount",),
        "py": ("concentration", "discount"),
    }
    name_of_prior = options.prior or "dp"
    if name_of_prior not in takes:
        raise OptionError(f"there is no prior {name_of_prior!r}; there are {', '.join(takes)}")
    given = {
        name: float(value)
        for name in ("concentration", "discount", "tilt")
        if (value := getattr(options, name)) is not None
    }
    for name in given:
        if name not in takes[name_of_prior]:
            raise OptionError(
                f"--{name}: the prior {name_of_prior} has no {name}; "
                f"it has {' and '.join(takes[name_of_prior])}"
            )
    try:
        return _prior_of(name_of_prior, given)
    except ValueError as error:
        raise OptionError(str(error)) from error


def _prior_of(name: str, given: dict[str, float]) -> Prior:
    if name == "dp":
        return dirichlet_process(given.get("concentration", 1.0))
    if name == "nig":
        return normalized_inverse_gaussian(given.get("concentration", 1.0), given.get("tilt", 1.0))
    if name == "stable":
        return normalized_stable(given.get("discount", 0.5))
    if name == "py":
        return PitmanYor(given.get("concentration", 1.0), given.get("discount", 0.5))
    return GeneralizedGamma(
        given.get("concentration", 1.0), given.get("discount", 0.5), given.get("tilt", 1.0)
    )


def make_model(options: ModelOptions, kind: Kind) -> Mixture:
    """Return an estimator for rows of a kind; OptionError says which setting does not fit them."""
    prior = make_prior(options)
    shared: dict[str, Any] = {}
    if options.engine is not None:
        shared["engine"] = options.engine
    if options.threshold is not None:
        shared["new_cluster_threshold"] = options.threshold
    if options.max_clusters is not None:
        shared["max_clusters"] = options.max_clusters
    if options.max_memory is not None:
        shared["max_memory"] = options.max_memory
    if options.prefix_rows is not None:
        shared["prefix_rows"] = options.prefix_rows
    if kind == "documents":
        _refuse_for_documents(options)
        return _checked(DocumentMixture(prior, **shared))
    if (passes := options.passes or 1) > 1:
        if options.revisit is not None:
            raise OptionError("--passes revisits all rows and --revisit the last ones: give one")
        shared |= {"revisit": "all", "n_revisits": passes - 1}
    elif options.revisit is not None:
        shared |= {"revisit": options.revisit}
        if options.revisits is not None:
            shared |= {"n_revisits": options.revisits}
    if options.revisits is not None and options.revisit is None:
        raise OptionError("--revisits says how often the rows of --revisit are seen: give both")
    if options.merge_threshold is not None:
        shared["merge_threshold"] = options.merge_threshold
    return _checked(StreamingMixture(prior, _likelihood(options, kind), **shared))


def _checked(model: Mixture) -> Mixture:
    """Return a model; OptionError names a setting that is wrong, before a row comes."""
    try:
        require_whole("prefix_rows", model.prefix_rows, 1)
        model._check_engine()
        if isinstance(model, StreamingMixture):
            model._open_likelihood()
            model._schedule(batch_fit=False)
        else:
            model._settings()
    except ValueError as error:
        raise OptionError(str(error)) from error
    return model


def _likelihood(options: ModelOptions, kind: Kind) -> Likelihood | str:
    name = options.likelihood or ("multinomial" if kind == "counts" else "auto")
    if options.alpha is None:
        return DirichletMultinomial(LEARN) if name == "multinomial" else name
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
        "--passes": (options.passes or 1) > 1,
        "--revisit": options.revisit is not None,
        "--merge-threshold": options.merge_threshold is not None,
    }
    for name, given in refused.items():
        if given:
            raise OptionError(
                f"{name} needs a fixed vocabulary, and that of texts grows: "
                "give --vocab FILE or --hash-bits 18 with it"
            )
