"""Priors side by side: more discounts than the paper's two, the stable limit, and Pitman-Yor."""

from functools import cache
from typing import Any

import numpy as np

from bnpstream import PitmanYor, normalized_stable
from bnpstream.plots.style import BLUE, GREEN, ORANGE, PURPLE, stream_axes
from bnpstream.priors import Prior
from bnpstream.search import grid_search, paper_grid
from tank2015.beyond_streams import ALPHAS, STREAMS, STRENGTHS, parts, streamed
from tank2015.differences import ahead, from_zero, signed, text_of
from tank2015.modelling import PAPER_CONCENTRATIONS, mixture, thin
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

THRESHOLD = 0.75
"""Epsilon of all priors alike: none below the largest discount is possible."""
DISCOUNTS = (0.25, 0.5, 0.75)
STYLES: dict[str, tuple[str, str]] = {
    "DP": (BLUE, "-"),
    "NGG .25": (GREEN, "--"),
    "NIG": (ORANGE, "-"),
    "NGG .75": (PURPLE, "-"),
    "stable": ("#000000", ":"),
    "Pitman-Yor": ("#e69f00", "-."),
}
NAMES = tuple(STYLES)
FAMILY = ("NGG .25", "NIG", "NGG .75")


def candidates(name: str) -> list[Prior]:
    """Return the priors among which the tuning documents choose.

    The paper's grid over (a, tau) for a normalized generalized gamma process, its four values of a
    and three discounts for Pitman-Yor, the discounts for a stable process: it has nothing else.
    """
    if name == "stable":
        return [normalized_stable(sigma) for sigma in DISCOUNTS]
    if name == "Pitman-Yor":
        return [PitmanYor(a, sigma) for sigma in DISCOUNTS for a in PAPER_CONCENTRATIONS]
    sigma = {"DP": 0.0, "NGG .25": 0.25, "NIG": 0.5, "NGG .75": 0.75}[name]
    return paper_grid((sigma,), None, PAPER_CONCENTRATIONS)["prior"]


@cache
def _chosen(stream: str, name: str, scale: float) -> Prior:
    model = mixture(candidates(name)[0], ALPHAS[stream], new_cluster_threshold=THRESHOLD)
    rows = parts(stream, scale).tuning
    found = grid_search(model, rows, {"prior": candidates(name)}, n_prefix=rows.shape[0])
    chosen: Prior = found.best.parameters["prior"]
    return chosen


def compare(stream: str, prior: str, order: int, scale: float, n_marks: int) -> Found:
    """Stream with the prior that the tuning documents choose of its kind."""
    chosen: Any = _chosen(stream, prior, scale)
    marks = thin(parts(stream, scale).rows.shape[0], n_marks)
    found = streamed(stream, scale, order, chosen, marks, new_cluster_threshold=THRESHOLD)
    own = {"concentration": chosen.concentration, "discount": chosen.discount}
    return found | {"documents": marks, **own}


def steps(settings: Any) -> list[Step]:
    """Return every prior on every stream in every order."""
    orders = list(range(settings.n_orders))
    rest = {"order": orders, "scale": settings.scale, "n_marks": settings.n_marks}
    return each(compare, stream=list(STREAMS), prior=list(NAMES), **rest)


def report(found: Results, show: Show) -> list[Claim]:
    """Draw all priors; judge what the paper says of the family."""
    curves = {
        (stream, name, key): found.values(compare, key, stream=stream, prior=name)
        for stream in STREAMS
        for name in NAMES
        for key in ("log_predictive", "clusters")
    }
    _draw(found, curves, show)
    _tabulate(found, curves, show)
    return _claims(found, curves)


def _draw(found: Results, curves: Any, show: Show) -> None:
    figure, panels = show.panels(2, 2, size=(5.8, 5.0))
    for row, (stream, title) in zip(panels, STREAMS.items(), strict=True):
        marks = found.of(compare, stream=stream)[0]["documents"]
        for name, (colour, line) in STYLES.items():
            style = {"color": colour, "linestyle": line, "linewidth": 1.6, "label": name}
            lead = curves[stream, name, "log_predictive"] - curves[stream, "DP", "log_predictive"]
            row[0].plot(marks, lead.mean(axis=0), **style)
            row[1].plot(marks, curves[stream, name, "clusters"].mean(axis=0), **style)
        for ax in row:
            stream_axes(ax, marks[-1])
            ax.set(xlabel="documents streamed", title=title)
        row[0].set_ylabel("ahead of DP,\nnats per document")
        row[1].set_ylabel("clusters")
        from_zero(row[1])
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    show.figure(
        "priors",
        figure,
        "Beyond Figures 2 and 4 of the paper: log predictive, as a difference from the Dirichlet "
        f"process, and clusters along both streams; means of {found.settings.n_orders} orders. "
        "NGG is the normalized generalized gamma process with this discount.",
    )


def _tabulate(found: Results, curves: Any, show: Show) -> None:
    rows = []
    for stream, title in STREAMS.items():
        for name in NAMES:
            last = {key: curves[stream, name, key][:, -1] for key in ("log_predictive", "clusters")}
            lead = ahead(last["log_predictive"], curves[stream, "DP", "log_predictive"][:, -1])
            one = found.of(compare, stream=stream, prior=name)[0]
            rows.append(
                (
                    title,
                    name,
                    f"{one['discount']:g}",
                    "none" if name == "stable" else f"{one['concentration']:.3g}",
                    spread(*mean_and_error(last["log_predictive"]), 3),
                    signed(*lead) if name != "DP" else "",
                    spread(*mean_and_error(last["clusters"]), 1),
                    signed(*mean_and_error(_growth(found, stream, name)), 2),
                )
            )
    labels = parts("powerlaw", found.settings.scale).labels
    show.table(
        "priors",
        (
            "stream",
            "prior",
            "sigma",
            "strength",
            "nats per document",
            "ahead of DP",
            "clusters",
            "growth",
        ),
        rows,
        f"Epsilon {THRESHOLD} for all. Strength is a tau^sigma, or theta of Pitman-Yor, chosen by "
        "the tuning documents, as is sigma for stable and Pitman-Yor. Growth is the exponent of "
        "clusters against documents over the second half. The power-law stream has "
        f"{np.unique(labels).size:,} true clusters and sigma .75.",
    )


def _growth(found: Results, stream: str, name: str) -> list[float]:
    """Return d log clusters / d log documents over the second half of every order."""
    exponents = []
    for one in found.of(compare, stream=stream, prior=name):
        marks, clusters = np.array(one["documents"]), np.array(one["clusters"])
        middle = (marks.size - 1) // 2
        exponents.append(
            float(np.log(clusters[-1] / clusters[middle]) / np.log(marks[-1] / marks[middle]))
        )
    return exponents


def _claims(found: Results, curves: Any) -> list[Claim]:
    leads = {
        (stream, name): ahead(
            curves[stream, name, "log_predictive"][:, -1],
            curves[stream, "DP", "log_predictive"][:, -1],
        )
        for stream in STREAMS
        for name in NAMES[1:]
    }

    def said(stream: str) -> str:
        return ", ".join(f"{name} {text_of(leads[stream, name])}" for name in NAMES[1:])

    def tuned(stream: str) -> str:
        strength = found.of(compare, stream=stream, prior="DP")[0]["concentration"]
        paper = STRENGTHS[stream, 0.0]
        return f"(a = {strength:g} by tuning at epsilon {THRESHOLD}, {paper:g} in the paper)"

    def useful(stream: str) -> dict[str, Any]:
        family = [leads[stream, name] for name in FAMILY]
        return {"differences": family, "needs": any, "unit": "nats per document"}

    clusters = {name: curves["powerlaw", name, "clusters"][:, -1].mean() for name in NAMES}
    growth = {name: np.array(_growth(found, "powerlaw", name)) for name in NAMES}
    faster = {name: ahead(growth[name], growth["DP"]) for name in FAMILY}
    return [
        Claim.ahead(
            "It matters to consider normalized random measures beyond the DP (discussion): "
            "power-law clusters.",
            "Figure 2, sigma 0 and .5 only",
            f"nats per document ahead of the DP {tuned('powerlaw')}: {said('powerlaw')}",
            **useful("powerlaw"),
        ),
        Claim.ahead(
            "It matters to consider normalized random measures beyond the DP (discussion): KOS.",
            "Table 1, sigma 0 and .5 only",
            f"nats per document ahead of the DP {tuned('kos')}: {said('kos')}",
            **useful("kos"),
        ),
        Claim.ahead(
            "Clusters, and with them the work a row, grow faster with an NGG than with a DP, but "
            "less than linearly in n (section 3.2).",
            "Theory: a log n, and n^sigma, before any data",
            "power law: "
            + ", ".join(f"{n} {clusters[n]:.0f} ~ n^{growth[n].mean():.2f}" for n in NAMES)
            + "; exponents larger than the DP's by "
            + ", ".join(f"{text_of(faster[name], 2)} ({name})" for name in FAMILY)
            + _counted(clusters),
            [*faster.values(), *(ahead(1.0, growth[name]) for name in FAMILY)],
            unit="in the exponent",
        ),
    ]


def _counted(clusters: dict[str, float]) -> str:
    """Say where the verdict, which goes by exponents, would be another one by counts."""
    fewer = [name for name in FAMILY if clusters[name] < clusters["DP"]]
    if not fewer:
        return ". Judged by the exponents; the counts agree"
    return (
        f". Judged by the exponents; by the counts at this n it does not hold for "
        f"{' and '.join(fewer)}, which have fewer clusters than the tuned DP"
    )
