"""Tries a grid of settings on the first records of a source."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any, NamedTuple

from bnpstream import estimators
from bnpstream.likelihoods.multinomial import LEARN
from bnpstream.priors import PARAMETERS
from bnpstream.runs.feed import Feed
from bnpstream.runs.journal import Journal
from bnpstream.runs.mixture import Mixture, make_model, make_prior
from bnpstream.runs.model_file import written
from bnpstream.runs.options import ModelOptions, OptionError, Pace, Plan, half_life_of
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, versions
from bnpstream.runs.status import Status
from bnpstream.search import GridResult, Point, distinct, grid_search
from bnpstream.search.grids import ALPHAS, CONCENTRATIONS, strengths
from bnpstream.sources import Records, Source, open_source
from bnpstream.sources.records import Kind
from bnpstream.sources.stack import stacked

PRIORS = ("dp", "nig")
DISCOUNTS = (0.25, 0.5, 0.75)
"""Default values for priors with a free discount; that of nig is .5."""

Values = dict[str, list[Any]]
"""Names of settings with their values; a name without values stands for the defaults."""


class Tuning(NamedTuple):
    """Result of a grid."""

    options: list[ModelOptions]
    """Settings of each point."""
    result: GridResult
    """Scores of the same points."""
    kind: Kind
    """Kind of rows."""
    rejects: int
    """Invalid records among the first ones."""
    about: dict[str, Any]
    """Source, plan, versions and time."""

    @property
    def winner(self) -> ModelOptions:
        """Return the settings that predict best."""
        return self.options[self.result.best_index]

    def document(self) -> dict[str, Any]:
        """Return everything as JSON, points best first."""
        rest = self.result.table()
        names = [name for name in rest[0] if not name.startswith("param_")]
        return {
            "kind": self.kind,
            "rows": self.result.n_train + self.result.n_held_out,
            "held_out": self.result.n_held_out,
            "held_out_tokens": self.result.n_tokens,
            "rejects": self.rejects,
            **self.about,
            "points": [
                {"settings": self.shown(i), **{name: record[name] for name in names}}
                for i, record in zip(self.result.order(), rest, strict=True)
            ],
        }

    def shown(self, i: int) -> dict[str, Any]:
        """Return the settings of a point; parameters learnt from the stream are marked."""
        options = self.options[i]
        learnt = list(make_prior(options).learn)
        if options.alpha is None and _has_alpha(options, self.kind):
            learnt.append("alpha")
        return {"prior": options.prior} | dict.fromkeys(learnt, LEARN) | written(options)


def tune(
    options: RunOptions,
    values: Values,
    plan: Plan,
    on_batch: Callable[[Status], None],
    on_point: Callable[[Point, int, int], None],
) -> Tuning:
    """Try settings on the first records of a source.

    Parameters
    ----------
    options : RunOptions
        The source, and the settings that all points share.
    values : dict
        Settings that vary, see `options_grid`.
    plan : Plan
        How to try them.
    on_batch, on_point : callable
        Called after each batch that is read; and after each point, with the number done and the
        number of all.
    """
    half_life = options.model.half_life
    if half_life is not None and half_life_of(half_life).by_time:
        raise OptionError(
            f"--half-life {half_life} is a time, but tune does not use the times of records: "
            "give rows, such as 10000, or leave it out and give it to fit"
        )
    began = time.perf_counter()
    with open_source(list(options.paths), options.source) as source:
        kind = source.schema.kind
        points = options_grid(options.model, values, kind)
        models = [make_model(point, kind, source.schema.ngrams) for point in points]
        rows, rejects = read_prefix(source, points[0], plan.rows, on_batch)
    estimator = getattr(estimators, models[0].estimator)(**models[0].parameters)
    varied = [name for name in ("prior", "likelihood") if name in models[0].parameters]
    grid = [{name: [model.parameters[name]] for name in varied} for model in models]
    result = grid_search(
        estimator,
        rows,
        grid,
        n_prefix=plan.rows,
        held_out=plan.held_out,
        seed=plan.seed,
        n_jobs=plan.jobs,
        on_point=on_point,
    )
    about = {
        "source": source.identity(),
        "seed": plan.seed,
        "seconds": time.perf_counter() - began,
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return Tuning(points, result, kind, rejects, about)


def options_grid(base: ModelOptions, values: Values, kind: Kind) -> list[ModelOptions]:
    """Return a grid of settings without duplicate priors.

    Parameters
    ----------
    base : ModelOptions
        Settings that all points share.
    values : dict
        Values of "prior", "concentration", "discount", "tilt" and "alpha". A prior only varies
        the parameters that it has.
    kind : Kind
        Kind of rows: the defaults of alpha are for word counts.
    """
    priors = values.get("prior") or list(PRIORS)
    for name in priors:
        if name not in PARAMETERS:
            make_prior(ModelOptions(prior=name))  # raises for an unknown name
    for name in ("concentration", "discount", "tilt"):
        if values.get(name) and not any(name in PARAMETERS[prior] for prior in priors):
            raise OptionError(f"--{name}: none of the priors {', '.join(priors)} has a {name}")
    candidates = [
        replace(base, prior=prior, **parameters)
        for prior in priors
        for parameters in _parameters(prior, values)
    ]
    alphas = values.get("alpha")
    if not alphas:
        alphas = _usual(ALPHAS) if _has_alpha(base, kind) else [None]
    return [
        replace(point, alpha=alpha)
        for point in distinct(candidates, make_prior)
        for alpha in dict.fromkeys(alphas)
    ]


def _has_alpha(options: ModelOptions, kind: Kind) -> bool:
    """Return whether rows are word counts over a fixed vocabulary."""
    return options.likelihood == "multinomial" or (kind == "counts" and options.likelihood is None)


def _usual(values: tuple[Any, ...]) -> list[float | None]:
    """Return values for options; None means learnt."""
    return [None if value == LEARN else value for value in values]


def _parameters(prior: str, values: Values) -> Iterator[dict[str, Any]]:
    """Yield the parameters to try with a prior."""
    has = PARAMETERS[prior]
    tilts = (values.get("tilt") if "tilt" in has else None) or [None]
    discounts = (values.get("discount") or list(DISCOUNTS)) if "discount" in has else [None]
    for discount in discounts:
        concentrations: list[Any] = values.get("concentration") or _usual(CONCENTRATIONS)
        if "concentration" not in has:
            concentrations = [None]
        elif "tilt" in has and not values.get("tilt") and not values.get("concentration"):
            sigma = 0.5 if discount is None else discount
            concentrations = [*strengths(sigma), None]  # at tilt 1: those of the paper's grid
        for concentration, tilt in product(concentrations, tilts):
            yield {"concentration": concentration, "discount": discount, "tilt": tilt}


def read_prefix(
    source: Source, options: ModelOptions, n_rows: int, on_batch: Callable[[Status], None]
) -> tuple[Any, int]:
    """Return the rows of the first batches that the model accepts, and the number it rejects.

    There are as many rows as wanted, or a few more, if the source has them.
    """
    plain = replace(options, passes=None, revisit=None, revisits=None)
    model = make_model(plain, source.schema.kind, source.schema.ngrams)
    feed = Feed(model, source, Journal(source.schema.names), source.beginning())
    enough = Interrupts()  # signals stop it at once: there is nothing to save
    parts: list[Any] = []

    def after(status: Status) -> None:
        on_batch(status)
        enough.requested = feed.n_rows >= n_rows

    def keep(records: Records, model: Mixture) -> None:
        parts.append(records.rows)

    feed.run(Pace(min(n_rows, Pace().batch_rows)), enough, after, keep)
    if not parts:
        raise ValueError(f"{source}: no valid records")
    return stacked(parts), feed.journal.n_rejects
