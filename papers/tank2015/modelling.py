"""What experiments have in common: priors by name, streams that are watched, labelled baselines."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bnpstream import (
    DirichletMultinomial,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
)
from bnpstream.inference.gibbs import chain_at
from bnpstream.kernels.passes.steps import NEGLIGIBLE
from bnpstream.mixture import Model
from bnpstream.mixture.predict import log_joint
from bnpstream.plots.style import BLUE, GREEN, ORANGE, PURPLE
from bnpstream.priors import Prior
from bnpstream.search import GridResult, grid_search, paper_grid
from tank2015.steps import Found

THRESHOLD = 0.5
"""Epsilon, which the paper does not give; NIG needs .5 at least, and DP gets the same."""

SMALL_CLUSTER = 10.0
"""Documents below which a cluster is small."""

NAMES = {"dp": "DP", "nig": "NIG"}
LINES = {"dp": "--", "nig": "-", "truth": ":"}
COLOURS = {"dp": BLUE, "nig": ORANGE, "truth": PURPLE, "ours": GREEN}
PAPER_CONCENTRATIONS = (1.0, 10.0, 100.0, 1000.0)


def fixed_prior(kind: str, concentration: float, tilt: float = 1.0) -> Prior:
    """Return a prior by its name, "dp" or "nig"."""
    if kind == "dp":
        return dirichlet_process(concentration)
    return normalized_inverse_gaussian(concentration, tilt)


def mixture(prior: Prior, alpha: float, **settings: Any) -> StreamingMixture:
    """Return the paper's model: a fixed prior and a fixed symmetric base measure."""
    given = {"new_cluster_threshold": THRESHOLD, "tol": 0.0, "max_responsibilities": None}
    given |= settings
    return StreamingMixture(prior, DirichletMultinomial(alpha), **given)


def tuned(kind: str, rows: Any, alpha: float, held_out: float = 0.2) -> GridResult:
    """Search the paper's grid for a prior on some rows, as its supplement says."""
    discount = {"dp": 0.0, "nig": 0.5}[kind]
    grid = paper_grid((discount,), None, PAPER_CONCENTRATIONS)
    model = mixture(fixed_prior(kind, 1.0), alpha)
    return grid_search(model, rows, grid, n_prefix=rows.shape[0], held_out=held_out)


def tuning_found(result: GridResult) -> Found:
    """Return the numbers of a grid search: strengths a tau^sigma, their scores, and the best."""
    strengths = [point.parameters["prior"].concentration for point in result.points]
    return {
        "strengths": strengths,
        "scores": [point.score for point in result.points],
        "clusters": [point.n_clusters for point in result.points],
        "best": strengths[result.best_index],
    }


def watched(model: StreamingMixture, rows: Any, held_out: Any, marks: Sequence[int]) -> Found:
    """Stream rows once; score the held-out ones whenever so many have been absorbed."""
    curve: Found = {"rows": list(marks), "log_predictive": [], "clusters": [], "small": []}
    seconds, start = 0.0, 0
    for mark in marks:
        began = time.perf_counter()
        model.partial_fit(rows[start:mark])
        seconds += time.perf_counter() - began
        start = mark
        add_scores(curve, model, held_out)
    return curve | {"seconds_in_pass": seconds}


def add_scores(curve: Found, model: StreamingMixture, held_out: Any) -> None:
    """Add how a model predicts now, its clusters, and how many of them are small."""
    curve["log_predictive"].append(float(model.score_samples(held_out).sum()))
    curve["clusters"].append(model.n_clusters_)
    curve["small"].append(int((model.state_.masses < SMALL_CLUSTER).sum()))


def refined(
    model: StreamingMixture, rows: Any, held_out: Any, n_epochs: int, every: int = 1
) -> Found:
    """Revisit all rows, some epochs at a time; the model has absorbed them and kept their sites."""
    curve: Found = {"log_predictive": [], "clusters": [], "small": []}
    seconds = 0.0
    for done in range(1, n_epochs, every):
        began = time.perf_counter()
        model.refine(rows, n_passes=min(every, n_epochs - done))
        seconds += time.perf_counter() - began
        add_scores(curve, model, held_out)
    return curve | {"seconds_per_epoch": seconds / max(n_epochs - 1, 1)}


def labelled_log_predictive(
    prior: Prior, alpha: float, rows: Any, labels: Any, held_out: Any
) -> float:
    """Return how a model predicts that was told the true clusters of the rows."""
    model = Model(prior, DirichletMultinomial(alpha).bound([]).settled(rows).informed(rows))
    assignments = np.unique(labels, return_inverse=True)[1]
    state = chain_at(model, model.likelihood.encode(rows), assignments, np.nan).state
    log_weights = np.log(prior.predictive_rule(state.masses))
    batch = model.likelihood.encode(held_out)
    kernel = model.kernel_arguments(batch)
    joint = log_joint(model, state, batch, kernel, log_weights, log_cut=NEGLIGIBLE)
    return float(logsumexp(joint, axis=1).sum())


def thin(n: int, count: int) -> list[int]:
    """Return about so many numbers up to n, evenly spread, n the last.

    Examples
    --------
    >>> thin(100, 4)
    [25, 50, 75, 100]
    """
    return sorted({round(n * (i + 1) / count) for i in range(count)})
