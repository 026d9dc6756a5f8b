"""Runs on the KOS corpus: ADF and EP, Gibbs, and what this package adds."""

import time
from typing import Any

import numpy as np

from bnpstream import DirichletMultinomial, GibbsMixture, StreamingMixture
from tank2015.modelling import (
    fixed_prior,
    mixture,
    refined,
    thin,
    tuned,
    tuning_found,
    watched,
)
from tank2015.parts import KOS_ALPHA, kos_parts
from tank2015.steps import Found

PRIORS = {"dp": (100.0, 1.0), "nig": (10.0, 100.0)}
KEPT = 50
"""Last sweeps of a Gibbs chain that the paper averages over."""
WINDOW = 1000
PASSES = 10


def ordered(split: int, n_rows: int, order: int) -> tuple[Any, Any]:
    """Return the rows of a split in some order, and the held-out ones."""
    _, rows, held_out, _ = kos_parts(n_rows, split)
    return rows[np.random.default_rng(order).permutation(rows.shape[0])], held_out


def tune(prior: str, n_rows: int) -> Found:
    """Search the paper's grid on a tenth of the corpus."""
    return tuning_found(tuned(prior, kos_parts(n_rows).tuning, KOS_ALPHA))


def stream(prior: str, split: int, order: int, n_epochs: int, n_rows: int) -> Found:
    """Run ADF, looking at it on the way, and then EP."""
    rows, held_out = ordered(split, n_rows, order)
    model = mixture(fixed_prior(prior, *PRIORS[prior]), KOS_ALPHA, keep_sites=True)
    adf = watched(model, rows, held_out, thin(rows.shape[0], 10))
    return {"adf": adf, "ep": refined(model, rows, held_out, n_epochs)}


def sample(prior: str, split: int, chain: int, n_sweeps: int, n_rows: int) -> Found:
    """Run a Gibbs chain, looking at the first sweeps, some later ones and the last."""
    _, rows, held_out, _ = kos_parts(n_rows, split)
    model = GibbsMixture(
        fixed_prior(prior, *PRIORS[prior]),
        DirichletMultinomial(KOS_ALPHA),
        n_sweeps=n_sweeps,
        n_kept=n_sweeps,
        random_state=chain,
    )
    began = time.perf_counter()
    model.fit(rows)
    seconds = time.perf_counter() - began
    kept = min(KEPT, n_sweeps)
    looks = np.union1d(_some(n_sweeps), np.arange(n_sweeps - kept, n_sweeps))
    model.assignments_ = model.assignments_[:, looks]  # scoring takes as long as sweeping
    scores = model.draw_log_predictives(held_out)
    averaged = np.logaddexp.reduce(scores[-kept:], axis=0) - np.log(kept)
    return {
        "sweeps": looks + 1,
        "log_predictive": scores.sum(axis=1),
        "clusters": model.n_clusters_[0],
        "kept_log_predictive": scores[-kept:].sum(axis=1).mean(),
        "kept_clusters": model.n_clusters_[0, -kept:].mean(),
        "log_of_mean": averaged.sum(),
        "seconds_per_epoch": seconds / n_sweeps,
    }


def _some(n: int) -> Any:
    """Return positions of a chain to look at: the first ones, and then ever fewer."""
    return np.unique(
        np.concatenate([np.arange(min(20, n)), np.geomspace(1, n, 40).astype(int) - 1])
    )


def extend(method: str, prior: str, split: int, order: int, n_rows: int) -> Found:
    """Run what the paper does not have: a window, or a base measure and prior that are learnt."""
    rows, held_out = ordered(split, n_rows, order)
    model = {
        "window": lambda: mixture(fixed_prior(prior, *PRIORS[prior]), KOS_ALPHA, revisit=WINDOW),
        "learnt": lambda: StreamingMixture(prior),
        "learnt, window": lambda: StreamingMixture(prior, revisit=WINDOW),
        "learnt, EP": lambda: StreamingMixture(prior, n_passes=PASSES),
    }[method]()
    began = time.perf_counter()
    model.fit(rows)
    return {
        "log_predictive": float(model.score_samples(held_out).sum()),
        "clusters": model.n_clusters_,
        "seconds": time.perf_counter() - began,
    }


def smooth(alpha: float, order: int, n_rows: int) -> Found:
    """Run ADF with other base measures."""
    rows, held_out = ordered(0, n_rows, order)
    model = mixture(fixed_prior("nig", *PRIORS["nig"]), alpha).fit(rows)
    return {
        "log_predictive": float(model.score_samples(held_out).sum()),
        "clusters": model.n_clusters_,
    }
