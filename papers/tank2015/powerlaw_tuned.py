"""Priors on power-law clusters, each at the strength and the threshold that the stream prefers."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bnpstream import GeneralizedGamma, PitmanYor, normalized_stable
from bnpstream.evaluation import agreement
from bnpstream.plots.style import BLUE, GREEN, ORANGE, PURPLE, stream_axes
from bnpstream.priors import Prior
from tank2015.differences import ahead, signed, text_of
from tank2015.modelling import labelled_log_predictive, mixture, thin, watched
from tank2015.parts import POWERLAW_ALPHA, powerlaw_parts
from tank2015.showing import WHOLE, Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

ORDER = 1000
"""The order by which strengths and thresholds are chosen; no other run has it."""
DISCOUNTS = {"DP": 0.0, "NGG .25": 0.25, "NIG": 0.5, "NGG .75": 0.75}
FAMILY = ("NGG .25", "NIG", "NGG .75")
STYLES = {
    "NGG .25": (GREEN, "--"),
    "NIG": (ORANGE, "-"),
    "NGG .75": (PURPLE, "-"),
    "stable": ("#000000", ":"),
    "Pitman-Yor": (BLUE, "-."),
}
NAMES = ("DP", *STYLES)


class Point(NamedTuple):
    """A prior to try, and a threshold for it."""

    sigma: float
    strength: float
    epsilon: float

    def prior(self, name: str) -> Prior:
        """Return the prior of this kind."""
        if name == "stable":
            return normalized_stable(self.sigma)
        if name == "Pitman-Yor":
            return PitmanYor(self.strength, self.sigma)
        return GeneralizedGamma(self.strength, self.sigma)


def points(name: str, exponents: tuple[float, ...], epsilons: tuple[float, ...]) -> list[Point]:
    """Return all points of a kind: no threshold is below its discount."""
    sigmas = [DISCOUNTS[name]] if name in DISCOUNTS else [0.25, 0.5, 0.75]
    strengths = [0.0] if name == "stable" else [10.0**exponent for exponent in exponents]
    return [
        Point(sigma, strength, epsilon)
        for sigma in sigmas
        for strength in strengths
        for epsilon in epsilons
        if epsilon >= sigma
    ]


def _ordered(scale: float, order: int) -> tuple[Any, Any]:
    part = powerlaw_parts(scale)
    chosen = np.random.default_rng(order).permutation(part.rows.shape[0])
    return part.rows[chosen], part.labels[chosen]


@cache
def _weighed(name: str, scale: float, exponents: Any, epsilons: Any) -> Found:
    rows, _ = _ordered(scale, ORDER)
    tried = points(name, tuple(exponents), tuple(epsilons))
    evidence = []
    for point in tried:
        model = mixture(point.prior(name), POWERLAW_ALPHA, new_cluster_threshold=point.epsilon)
        evidence.append(model.fit(rows).total_log_evidence_ / rows.shape[0])
    best = int(np.argmax(evidence))
    return {"points": [point._asdict() for point in tried], "evidence": evidence, "best": best}


def weigh(name: str, scale: float, exponents: tuple[float, ...], epsilons: Any) -> Found:
    """Return the one-step-ahead evidence of the stream at every point, in nats per document."""
    return _weighed(name, scale, tuple(exponents), tuple(epsilons))


def learn(
    name: str, order: int, scale: float, exponents: Any, epsilons: Any, n_marks: int
) -> Found:
    """Stream the documents with the best point of a prior."""
    weighed = _weighed(name, scale, tuple(exponents), tuple(epsilons))
    best = Point(**weighed["points"][weighed["best"]])
    rows, labels = _ordered(scale, order)
    held_out = powerlaw_parts(scale).held_out
    model = mixture(best.prior(name), POWERLAW_ALPHA, new_cluster_threshold=best.epsilon)
    marks = thin(rows.shape[0], n_marks)
    seen = watched(model, rows, held_out, marks)
    return {
        "rows": marks,
        "log_predictive": np.array(seen["log_predictive"]) / held_out.shape[0],
        "clusters": seen["clusters"],
        "ari": agreement(labels, model.predict(rows)).ari,
        "seconds": seen["seconds_in_pass"],
    }


def bound(name: str, scale: float, exponents: Any) -> Found:
    """Predict with the labels known, at the strength that these make most probable."""
    _, rows, held_out, labels = powerlaw_parts(scale)
    sizes = np.unique(labels, return_counts=True)[1].astype(float)
    tried = points(name, tuple(exponents), (1.0,))
    best = tried[int(np.argmax([point.prior(name).log_eppf(sizes) for point in tried]))]
    told = labelled_log_predictive(best.prior(name), POWERLAW_ALPHA, rows, labels, held_out)
    return {"log_predictive": told / held_out.shape[0], **best._asdict()}


def steps(settings: Any) -> list[Step]:
    """Return the search, the streams and the bound of every prior."""
    names, given = list(NAMES), {"scale": settings.scale, "exponents": settings.exponents}
    orders = list(range(settings.n_orders))
    ways = given | {"epsilons": settings.epsilons}
    return [
        step
        for name in names
        for step in (
            *each(weigh, name=name, **ways),
            *each(learn, name=name, order=orders, **ways, n_marks=settings.n_marks),
            *each(bound, name=name, **given),
        )
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Draw leads and evidence; judge the paper's sentences at each prior's own settings."""
    ends = {
        (name, key): found.values(learn, key, name=name)
        for name in NAMES
        for key in ("log_predictive", "clusters", "ari")
    }
    _draw(found, ends, show)
    _tabulate(found, ends, show)
    return _claims(found, ends)


def _draw(found: Results, ends: Any, show: Show) -> None:
    figure, (left, right) = show.panels(size=(5.8, 3.2))
    for name in NAMES:
        weighed = found.one(weigh, name=name)
        best: dict[float, float] = {}
        for point, value in zip(weighed["points"], weighed["evidence"], strict=True):
            best[point["strength"]] = max(value, best.get(point["strength"], -np.inf))
        colour, line = STYLES.get(name, ("#000000", "-"))
        if len(best) > 1:
            left.plot(*zip(*best.items(), strict=True), color=colour, linestyle=line, label=name)
    left.set(xscale="log", xlabel="strength", ylabel="evidence,\nnats per document")
    marks = found.of(learn)[0]["rows"]
    for name, (colour, line) in STYLES.items():
        lead = (ends[name, "log_predictive"] - ends["DP", "log_predictive"]).mean(axis=0)
        right.plot(marks, lead, color=colour, linestyle=line, label=name)
    stream_axes(right, marks[-1])
    right.xaxis.set_major_formatter(WHOLE)
    right.set(xlabel="documents streamed", ylabel="held out, ahead of DP,\nnats per document")
    handles, labels = right.get_legend_handles_labels()
    dp = left.get_legend_handles_labels()
    handles, labels = [dp[0][0], *handles], [dp[1][0], *labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    show.figure(
        "tuned",
        figure,
        "One-step-ahead evidence of the stream by strength, at the best threshold and discount for "
        "each strength (left); lead over the Dirichlet process at the chosen points, means of "
        f"{found.settings.n_orders} other orders (right).",
    )


def _tabulate(found: Results, ends: Any, show: Show) -> None:
    rows = []
    for name in NAMES:
        weighed = found.one(weigh, name=name)
        best, told = weighed["points"][weighed["best"]], found.one(bound, name=name)
        last = ends[name, "log_predictive"][:, -1]
        lead = ahead(last, ends["DP", "log_predictive"][:, -1])
        rows.append(
            (
                name,
                f"{best['sigma']:g}",
                "none" if name == "stable" else f"{best['strength']:.3g}",
                f"{best['epsilon']:g}",
                (weighed["evidence"][weighed["best"]], f"{max(weighed['evidence']):.3f}"),
                spread(*mean_and_error(last), 3),
                signed(*lead) if name != "DP" else "",
                spread(*mean_and_error(ends[name, "clusters"][:, -1]), 1),
                spread(*mean_and_error(ends[name, "ari"]), 3),
                (told["log_predictive"], f"{told['log_predictive']:.3f}"),
                "none" if name == "stable" else f"{told['strength']:.3g}",
            )
        )
    labels = powerlaw_parts(found.settings.scale).labels
    sizes = np.unique(labels, return_counts=True)[1]
    show.table(
        "tuned",
        (
            "prior",
            "sigma",
            "strength",
            "epsilon",
            "evidence",
            "held out",
            "ahead of DP",
            "clusters",
            "ARI",
            "told the labels",
            "strength told",
        ),
        rows,
        f"Nats per document; {found.settings.n_orders} orders. Sigma (of stable and Pitman-Yor), "
        "strength and epsilon have the highest evidence of the stream, on a grid with "
        f"{len(found.settings.exponents)} strengths and epsilon in {found.settings.epsilons}"
        f"{_edges(found)}. Told the labels: the same prior given the true clusters, at the "
        f"strength of the grid that makes these most probable. Of {sizes.size:,} true clusters "
        f"{int((sizes == 1).sum()):,} have a single document.",
    )


def _edges(found: Results) -> str:
    """Say for which priors a better strength may lie beyond the grid."""
    ends = {10.0 ** found.settings.exponents[place] for place in (0, -1)}
    at = []
    for name in NAMES:
        weighed = found.one(weigh, name=name)
        if weighed["points"][weighed["best"]]["strength"] in ends:
            at.append(name)
    return f"; the choice is at an end of the strengths for {' and '.join(at)}" if at else ""


def _claims(found: Results, ends: Any) -> list[Claim]:
    marks = found.of(learn)[0]["rows"]
    lead = ends["NIG", "log_predictive"] - ends["DP", "log_predictive"]
    middle = len(marks) // 2
    leads = {
        name: ahead(ends[name, "log_predictive"][:, -1], ends["DP", "log_predictive"][:, -1])
        for name in NAMES[1:]
    }
    true_clusters = np.unique(powerlaw_parts(found.settings.scale).labels).size
    off = {name: abs(ends[name, "clusters"][:, -1] - true_clusters) for name in ("DP", "NIG")}
    means = {name: ends[name, "clusters"][:, -1].mean() for name in ("DP", "NIG")}
    told = {name: found.one(bound, name=name)["log_predictive"] for name in NAMES}
    return [
        Claim.ahead(
            "As data increase, NIG gives an increasingly better fit than DP, each at its own "
            "strength and threshold: log-likelihood.",
            "Figure 2, left, at the paper's strengths",
            f"lead of NIG {text_of(mean_and_error(lead[:, 0]))}, "
            f"{text_of(mean_and_error(lead[:, middle]))}, {text_of(mean_and_error(lead[:, -1]))} "
            f"nats per document after {marks[0]:,}, {marks[middle]:,}, {marks[-1]:,}",
            [
                mean_and_error(lead[:, middle] - lead[:, 0]),
                mean_and_error(lead[:, -1] - lead[:, middle]),
                mean_and_error(lead[:, -1]),
            ],
            unit="nats per document",
        ),
        Claim.ahead(
            "NIG's number of clusters is nearer to the truth than DP's, each at its own strength "
            "and threshold.",
            "Figure 2, right, at the paper's strengths",
            f"{means['DP']:.0f} (DP) and {means['NIG']:.0f} (NIG) of {true_clusters}",
            [mean_and_error(off["DP"] - off["NIG"])],
            unit="clusters",
        ),
        Claim.ahead(
            "It matters to consider normalized random measures beyond the DP (discussion): "
            "power-law clusters.",
            "Figure 2, sigma 0 and .5 only",
            "nats per document ahead of the DP, each at its own strength and threshold: "
            + ", ".join(f"{name} {text_of(leads[name])}" for name in NAMES[1:])
            + "; told the labels: "
            + ", ".join(f"{name} {told[name] - told['DP']:+.3f}" for name in NAMES[1:]),
            [leads[name] for name in FAMILY],
            needs=any,
            unit="nats per document",
        ),
    ]
