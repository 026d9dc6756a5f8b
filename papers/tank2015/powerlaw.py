"""Power-law clusters: DP and NIG on documents of a Pitman-Yor mixture."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bnpstream import PitmanYor
from bnpstream.plots.style import stream_axes
from tank2015.differences import text_of
from tank2015.modelling import (
    COLOURS,
    LINES,
    NAMES,
    THRESHOLD,
    fixed_prior,
    labelled_log_predictive,
    mixture,
    refined,
    tuned,
    tuning_found,
    watched,
)
from tank2015.parts import POWERLAW_ALPHA, POWERLAW_SIZES, powerlaw_parts
from tank2015.showing import WHOLE, Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

TITLE = (
    "Figure 2: documents of a Pitman-Yor(.75, 1) mixture of multinomials. The paper gives neither "
    "the number of words nor the length of a document: here 100 and 50."
)
TRUTH = PitmanYor(concentration=1.0, discount=0.75)
KEYS = {"log_predictive": 0, "clusters": 1}
"""Digits to show of what is compared."""


@dataclass(frozen=True)
class Settings:
    """How much of everything."""

    scale: float
    n_orders: int
    n_epochs: int
    n_marks: int


FULL = Settings(scale=1.0, n_orders=5, n_epochs=50, n_marks=10)
SMALL = Settings(scale=0.25, n_orders=2, n_epochs=5, n_marks=4)


@cache
def _tuned(prior: str, scale: float) -> Found:
    return tuning_found(tuned(prior, powerlaw_parts(scale).tuning, POWERLAW_ALPHA))


def tune(prior: str, scale: float) -> Found:
    """Search the paper's grid."""
    return _tuned(prior, scale)


def learn(prior: str, order: int, scale: float, n_epochs: int, n_marks: int) -> Found:
    """Stream the documents in some order, then revisit them."""
    _, rows, held_out, _ = powerlaw_parts(scale)
    rows = rows[np.random.default_rng(order).permutation(rows.shape[0])]
    best = fixed_prior(prior, _tuned(prior, scale)["best"])
    model = mixture(best, POWERLAW_ALPHA, keep_sites=True)
    adf = watched(model, rows, held_out, _marks(rows.shape[0], n_marks))
    return {"adf": adf, "ep": refined(model, rows, held_out, n_epochs, every=n_epochs)}


def told(order: int, scale: float, n_marks: int) -> Found:
    """Predict with the labels known."""
    _, rows, held_out, labels = powerlaw_parts(scale)
    order = np.random.default_rng(order).permutation(rows.shape[0])
    marks = _marks(rows.shape[0], n_marks)
    firsts = [order[:mark] for mark in marks]
    return {
        "rows": marks,
        "log_predictive": [
            labelled_log_predictive(TRUTH, POWERLAW_ALPHA, rows[first], labels[first], held_out)
            for first in firsts
        ],
        "clusters": [int(np.unique(labels[first]).size) for first in firsts],
    }


def _marks(n: int, count: int) -> list[int]:
    """Return where to look: evenly, and twice before the first of these."""
    step = n / count
    return [round(step / 4), round(step / 2), *(round(step * i) for i in range(1, count + 1))]


def steps(settings: Settings) -> list[Step]:
    """Return tuning, streams in several orders, and the baseline."""
    orders = list(range(settings.n_orders))
    priors, scale = ["dp", "nig"], settings.scale
    looks = {"n_epochs": settings.n_epochs, "n_marks": settings.n_marks}
    return [
        *each(tune, prior=priors, scale=scale),
        *each(told, order=orders, scale=scale, n_marks=settings.n_marks),
        *each(learn, prior=priors, order=orders, scale=scale, **looks),
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Draw both curves; judge the paper's sentences."""
    n_held_out = round(found.settings.scale * POWERLAW_SIZES[2])
    marks = found.of(told)[0]["rows"]
    curves = {
        (prior, key): np.array([one["adf"][key] for one in found.of(learn, prior=prior)])
        for prior in NAMES
        for key in KEYS
    }
    after = {
        (prior, key): np.array([one["ep"][key][-1] for one in found.of(learn, prior=prior)])
        for prior in NAMES
        for key in KEYS
    }
    truth = {key: found.values(told, key) for key in KEYS}
    _draw(marks, curves, after, truth, n_held_out, show)
    _tabulate(curves, after, truth, found, show)
    return _claims(marks, curves, after, truth, n_held_out, found)


def _draw(
    marks: list[int], curves: Any, after: Any, truth: Any, n_held_out: int, show: Show
) -> None:
    figure, (left, right) = show.panels(size=(5.8, 3.0))
    for ax, key, unit in ((left, "log_predictive", n_held_out), (right, "clusters", 1)):
        for prior, name in NAMES.items():
            style = {"color": COLOURS[prior], "linewidth": 1.5}
            mean = curves[prior, key].mean(axis=0) / unit
            ax.plot(marks, mean, label=f"{name}, ADF", linestyle=LINES[prior], **style)
            last = after[prior, key].mean() / unit
            ax.plot(marks[-1], last, "^", color=COLOURS[prior], markersize=7, clip_on=False)
        mean = truth[key].mean(axis=0) / unit
        ax.plot(marks, mean, color=COLOURS["truth"], linestyle=LINES["truth"], label="true labels")
        stream_axes(ax, marks[-1])
        ax.set_xlabel("documents streamed")
        ax.xaxis.set_major_formatter(WHOLE)
    left.set_ylabel("log predictive,\nnats per held-out document")
    right.set_ylabel("clusters")
    right.yaxis.set_major_formatter(WHOLE)
    left.plot([], [], "^", color="#555555", markersize=7, label="after EP")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    show.figure(
        "curves",
        figure,
        "Figure 2 of the paper: mean log predictive (left) and clusters (right) against documents. "
        "Triangles are EP after all epochs; the dotted line is the true model given the labels. "
        "Standard errors over orders are smaller than the symbols.",
    )


def _tabulate(curves: Any, after: Any, truth: Any, found: Results, show: Show) -> None:
    rows: list[tuple[Any, ...]] = []
    for prior, name in NAMES.items():
        best = f"{name}, a tau^sigma = {found.one(tune, prior=prior)['best']:.3g}"
        last = {key: curves[prior, key][:, -1] for key in KEYS}
        rows.append((best, "ADF", *_cells(last)))
        last = {key: after[prior, key] for key in KEYS}
        rows.append((best, f"EP, {found.settings.n_epochs} epochs", *_cells(last)))
    last = {key: truth[key][:, -1] for key in KEYS}
    rows.append(("true Pitman-Yor", "true labels", *_cells(last)))
    show.table(
        "final",
        ("prior", "method", "log predictive", "clusters"),
        rows,
        f"After all documents, {found.settings.n_orders} orders.",
    )


def _cells(last: Any) -> list[tuple[float, str]]:
    return [spread(*mean_and_error(last[key]), digits) for key, digits in KEYS.items()]


def _claims(
    marks: list[int], curves: Any, after: Any, truth: Any, n_held_out: int, found: Results
) -> list[Claim]:
    lead = (curves["nig", "log_predictive"] - curves["dp", "log_predictive"]) / n_held_out
    mean_lead = lead.mean(axis=0)
    middle = len(marks) // 2
    last = {prior: curves[prior, "log_predictive"][:, -1].mean() for prior in NAMES}
    told_last = truth["log_predictive"][:, -1].mean()
    off = {p: abs(curves[p, "clusters"][:, -1] - truth["clusters"][:, -1]) for p in NAMES}
    off_after = {p: abs(after[p, "clusters"] - truth["clusters"][:, -1]) for p in NAMES}
    clusters = {prior: curves[prior, "clusters"][:, -1].mean() for prior in NAMES}
    true_clusters = truth["clusters"][:, -1].mean()
    behind = (told_last - last["nig"]) / n_held_out
    early = (told_last - curves["nig", "log_predictive"][:, 0].mean()) / n_held_out
    gains = {
        p: mean_and_error(after[p, "log_predictive"] - curves[p, "log_predictive"][:, -1])
        for p in NAMES
    }
    ep_clusters = {prior: after[prior, "clusters"].mean() for prior in NAMES}
    best = {prior: found.one(tune, prior=prior)["best"] for prior in NAMES}
    return [
        Claim.reported(
            "DP and NIG perform similarly for small n.",
            "Figure 2, left",
            f"NIG ahead by {mean_lead[0]:+.3f} nats per document after {marks[0]:,} documents, "
            f"{mean_lead[-1]:+.3f} after {marks[-1]:,}",
        ),
        Claim.ahead(
            "As data increase, NIG gives an increasingly better fit: log-likelihood.",
            "Figure 2, left",
            f"lead of NIG {mean_lead[0]:+.3f}, {mean_lead[middle]:+.3f}, {mean_lead[-1]:+.3f} nats "
            f"per document after {marks[0]:,}, {marks[middle]:,}, {marks[-1]:,}, with strengths of "
            f"the paper's grid and epsilon {THRESHOLD}; [powerlaw-full](#powerlaw-full) has each "
            "at its own",
            [
                mean_and_error(lead[:, middle] - lead[:, 0]),
                mean_and_error(lead[:, -1] - lead[:, middle]),
                mean_and_error(lead[:, -1]),
            ],
            unit="nats per document",
        ),
        Claim.ahead(
            "As data increase, NIG gives an increasingly better fit: number of clusters.",
            "Figure 2, right",
            f"{clusters['dp']:.0f} (DP) and {clusters['nig']:.0f} (NIG) of {true_clusters:.0f}",
            [mean_and_error(off["dp"] - off["nig"])],
            unit="clusters",
        ),
        Claim.of(
            "One pass of ADF comes close to the baseline that knows the labels, in spite of the "
            "wrong prior.",
            "Figure 2, left",
            f"{behind:.2f} nats per document behind it, of {-told_last / n_held_out:.1f}; "
            f"{early:.2f} behind after {marks[0]:,} documents",
            behind < 0.01 * -told_last / n_held_out,
        ),
        Claim.ahead(
            "EP improves the predictions of both.",
            "Figure 2, left, triangles",
            f"{text_of(gains['dp'], 0)} (DP) and {text_of(gains['nig'], 0)} (NIG) nats over "
            f"{n_held_out:,} documents",
            list(gains.values()),
        ),
        Claim.ahead(
            "EP improves the match of the number of clusters for both.",
            "Figure 2, right, triangles",
            f"{clusters['dp']:.0f} to {ep_clusters['dp']:.0f} (DP), {clusters['nig']:.0f} to "
            f"{ep_clusters['nig']:.0f} (NIG), {true_clusters:.0f} in truth",
            [mean_and_error(off[prior] - off_after[prior]) for prior in NAMES],
            unit="clusters",
        ),
        Claim.reported(
            "The grid chooses a = 100 for DP, and a = 1, tau = 1000 for NIG.",
            "Supplement, section 3.1: a tau^sigma = 100 and 31.6",
            f"a tau^sigma = {best['dp']:g} and {best['nig']:.3g}",
        ),
    ]
