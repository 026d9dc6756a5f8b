"""The exact update of q(theta) against the mean field one, on small sets and on enumerable ones."""

from functools import cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from bnpstream import DirichletMultinomial, dirichlet_process, normalized_inverse_gaussian
from bnpstream.datasets import bars, powerlaw_documents
from bnpstream.inference import adf, exact
from bnpstream.inference.response import Settings
from bnpstream.mixture import MixtureState, Model
from bnpstream.mixture.predict import log_joint
from bnpstream.plots.style import GREEN, PURPLE, tidy
from bnpstream.priors import Prior
from tank2015.differences import ahead, beyond_noise, from_zero, signed, text_of
from tank2015.exact_update import (
    UPDATES,
    ProjectedState,
    match_logarithms,
    mean_logarithms,
)
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

FIELD, *OTHERS = UPDATES
SETS = {
    "bars": "bars, 50 counts an image",
    "short bars": "bars, 10 counts an image",
    "power law": "power law, 50 words a document",
    "short power law": "power law, 10 words a document",
}
STYLES = {"exact": (GREEN, "o"), "moments": (PURPLE, "s")}
SOLVED = 1e-6
"""Difference of E[log theta_w] below which they are equal."""


class Few(NamedTuple):
    """Documents short enough that every possible one can be predicted, and their model."""

    n_words: int
    length: int
    alpha: float
    prior: Prior


FEW = {
    "4 words": Few(4, 3, 0.5, dirichlet_process(1.0)),
    "clear clusters": Few(3, 6, 0.1, dirichlet_process(1.0)),
    "6 words, NIG": Few(6, 2, 0.1, normalized_inverse_gaussian(1.0)),
    "blurred clusters": Few(3, 2, 2.0, dirichlet_process(3.0)),
}


def _streamed(update: str, model: Model, alpha: float, rows: Any, settings: Settings) -> Any:
    """Return the posterior of rows after one pass in NumPy."""
    batch = model.likelihood.encode(rows)
    project = UPDATES[update]
    n_words = batch.n_statistics - 1
    state = (
        MixtureState(n_words + 1) if project is None else ProjectedState(n_words, alpha, project)
    )
    for _ in adf.run(model, state, batch, settings):
        pass
    return state


def _log_predictive(model: Model, state: MixtureState, rows: Any) -> Any:
    return logsumexp(log_joint(model, state, model.likelihood.encode(rows), None), axis=1)


def solve(seed: int, n_words: int) -> Found:
    """Return how closely the exact update's equations are solved, for a row at random."""
    rng = np.random.default_rng(seed)
    b, q = rng.gamma(1.0, size=n_words) + 0.1, rng.random()
    x = rng.multinomial(50, rng.dirichlet(np.full(n_words, 0.3))).astype(float)
    wanted = q * mean_logarithms(b + x) + (1.0 - q) * mean_logarithms(b)
    return {"residual": np.abs(mean_logarithms(match_logarithms(b, x, q)) - wanted).max()}


def enumerate_few(kind: str, seed: int, n_rows: int) -> Found:
    """Return KL from the exact predictive of the next document to that of every update."""
    n_words, length, alpha, prior = FEW[kind]
    model = Model(prior, DirichletMultinomial(alpha))
    shape = {"n_words": n_words, "document_length": length, "alpha": alpha}
    rows = powerlaw_documents(n_rows, discount=0.0, seed=seed, **shape).counts
    batch = model.likelihood.encode(rows)
    documents = np.array(
        [
            np.bincount(words, minlength=n_words)
            for words in combinations_with_replacement(range(n_words), length)
        ]
    )
    new = model.likelihood.encode(documents)
    truth = exact.log_predictive(model, batch, exact.run(model, batch), new)
    all_kept = Settings(new_cluster_threshold=0.0, min_responsibility=0.0)
    return {
        update: float(
            np.exp(truth)
            @ (
                truth
                - _log_predictive(model, _streamed(update, model, alpha, rows, all_kept), documents)
            )
        )
        for update in UPDATES
    }


@cache
def _set(name: str, seed: int, n_rows: int) -> tuple[Any, Any, float]:
    """Return rows, as many held-out ones, and alpha."""
    length = 10 if name.startswith("short") else 50
    if name.endswith("bars"):
        drawn = bars(2 * n_rows, n_counts=length, baseline=0.5, seed=seed)
        return drawn.counts[:n_rows], drawn.counts[n_rows:], 0.5
    drawn = powerlaw_documents(2 * n_rows, document_length=length, seed=seed)
    order = np.random.default_rng(seed).permutation(2 * n_rows)
    return drawn.counts[order[:n_rows]], drawn.counts[order[n_rows:]], 0.75


def update_words(data: str, update: str, seed: int, n_rows: int) -> Found:
    """Stream a small set with NIG; predict as many other rows."""
    rows, held_out, alpha = _set(data, seed, n_rows)
    strength = 1.0 if data.endswith("bars") else 1000.0**0.5
    model = Model(normalized_inverse_gaussian(strength), DirichletMultinomial(alpha))
    state = _streamed(update, model, alpha, rows, Settings(0.5, 1e-4))
    return {
        "log_predictive": float(_log_predictive(model, state, held_out).mean()),
        "clusters": state.n_clusters,
    }


def steps(settings: Any) -> list[Step]:
    """Return exact enumerations of many sets of few rows, and every update on every small set."""
    return [
        *each(solve, seed=list(range(settings.n_few)), n_words=100),
        *each(
            enumerate_few,
            kind=list(FEW),
            seed=list(range(settings.n_few)),
            n_rows=settings.few_rows,
        ),
        *each(
            update_words,
            data=list(SETS),
            update=list(UPDATES),
            seed=list(range(settings.n_orders)),
            n_rows=settings.update_rows,
        ),
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Draw the divergences; tabulate the small sets; say whether it was worth it."""
    _draw({one: found.values(enumerate_few, one, kind=next(iter(FEW))) for one in UPDATES}, show)
    _tabulate_few(found, show)
    rows, leads = [], {}
    for data, title in SETS.items():
        base = found.values(update_words, "log_predictive", data=data, update=FIELD)
        for update in UPDATES:
            values, clusters = (
                found.values(update_words, key, data=data, update=update)
                for key in ("log_predictive", "clusters")
            )
            leads[data, update] = ahead(values, base)
            rows.append(
                (
                    title,
                    update,
                    spread(*mean_and_error(values), 3),
                    signed(*leads[data, update]) if update != FIELD else "",
                    spread(*mean_and_error(clusters), 1),
                )
            )
    show.table(
        "updates",
        ("rows", "update of q(theta)", "nats per row", "ahead of mean field", "clusters"),
        rows,
        f"Section 3 of the paper and section 1 of the supplement: {found.settings.update_rows} "
        f"rows, as many held out, {found.settings.n_orders} sets each; NIG, epsilon .5. Exact "
        "matches E[log theta], which minimises the KL divergence; moments matches the mean of "
        "theta and its summed second moment. Both ignore that a cluster can be chosen only if it "
        "exists: if the row that opened it is doubtful, the marginal of theta is partly the prior, "
        "although every prediction with the cluster assumes that it exists. Mean field ignores "
        "this too, but even a share of a row moves its mean most of the way.",
    )
    farther = {kind: _farther(found, kind, "exact") for kind in FEW}
    real = [data for data in SETS if beyond_noise(leads[data, "exact"])]
    residual = max(one["residual"] for one in found.of(solve))
    return [
        Claim.of(
            "An exact ADF update of q(theta) is possible.",
            "Section 3, a remark",
            "it is, by Newton's method: E[log theta] of the marginal and of the Dirichlet agree to "
            f"{residual:.0e}",
            residual < SOLVED,
        ),
        Claim.of(
            "The mean field update approximates the exact one, which would be optimal.",
            "Section 3 and supplement, section 1, no figure",
            f"over {found.settings.few_rows} rows, whose posterior can be enumerated, the "
            "predictive of the next document is farther from the exact one, in nats, with the "
            "exact update than with mean field by "
            + ", ".join(f"{text_of(farther[kind], 4)} ({kind})" for kind in FEW)
            + ". Held-out nats per row that the exact update is ahead: "
            + ", ".join(f"{data} {text_of(leads[data, 'exact'])}" for data in SETS)
            + (f"; beyond the noise for {', '.join(real)}" if real else "; within the noise"),
            not any(mean > 0 and beyond_noise((mean, error)) for mean, error in farther.values()),
        ),
    ]


def _farther(found: Results, kind: str, update: str) -> tuple[float, float]:
    """Return how much farther from the exact predictive an update is than mean field."""
    one, other = (found.values(enumerate_few, each, kind=kind) for each in (update, FIELD))
    return ahead(one, other)


def _tabulate_few(found: Results, show: Show) -> None:
    rows = []
    for kind, few in FEW.items():
        values = {one: found.values(enumerate_few, one, kind=kind) for one in UPDATES}
        about = f"{few.n_words} words, {few.length} a document, alpha {few.alpha:g}, {few.prior}"
        for update in UPDATES:
            nearer = f"{np.mean(values[update] < values[FIELD]):.0%}" if update != FIELD else ""
            farther = signed(*_farther(found, kind, update), 4) if update != FIELD else ""
            mean = spread(*mean_and_error(values[update]), 4)
            rows.append((f"{kind}: {about}", update, mean, farther, nearer))
    show.table(
        "updates-few",
        (
            "documents",
            "update of q(theta)",
            "nats from the exact predictive",
            "farther than mean field",
            "sets in which it is nearer",
        ),
        rows,
        f"{found.settings.few_rows} rows, every cluster kept, {found.settings.n_few} sets of each "
        "kind. Limits: few rows, of which the first weigh most; one order; documents are drawn "
        "from the model.",
    )


def _draw(divergence: Any, show: Show) -> None:
    figure, ax = show.panels(1, size=(3.8, 3.6))
    for update, (colour, mark) in STYLES.items():
        ax.plot(
            divergence[FIELD],
            divergence[update],
            mark,
            color=colour,
            markersize=4,
            alpha=0.8,
            label=update,
        )
    ax.axline((0.0, 0.0), slope=1.0, color="#777777", linewidth=0.8)
    ax.set_xlim(0.0, 1.05 * divergence[FIELD].max())
    from_zero(ax)
    ax.locator_params(axis="x", nbins=4)
    tidy(ax).set(xlabel="mean field, nats", ylabel="other update, nats")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    show.figure(
        "updates",
        figure,
        "Section 3 of the paper: how far the predictive of the next document is from the exact one "
        "(KL divergence), one dot per set of a few rows. Below the line, the other update is "
        "closer than the paper's.",
    )
